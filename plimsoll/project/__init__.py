"""Pulumi projects of users: a new one, and the settings that take over what a cluster has."""

from plimsoll.project.adopting import Adoption, adopt
from plimsoll.project.kinds import ClusterKind, Language
from plimsoll.project.writing import ENVIRONMENT, check_wheel, project_files, template_files, write_project

__all__ = [
    "ENVIRONMENT",
    "Adoption",
    "ClusterKind",
    "Language",
    "adopt",
    "check_wheel",
    "project_files",
    "template_files",
    "write_project",
]
