"""How presets are served: the pods of vLLM, alone or as a Ray cluster, and the Service before them. Pure."""

from plimsoll.serving.group import follow, lead
from plimsoll.serving.names import ObjectName, name_problem, object_names
from plimsoll.serving.pod_settings import refused_option, resources_of, settings_of
from plimsoll.serving.server import serve_preset, startup_seconds
from plimsoll.serving.service import service_manifest, service_name

__all__ = [
    "ObjectName",
    "follow",
    "lead",
    "name_problem",
    "object_names",
    "refused_option",
    "resources_of",
    "serve_preset",
    "service_manifest",
    "service_name",
    "settings_of",
    "startup_seconds",
]
