"""Where commands keep what clouds say of their instance types, and how they add it to a snapshot."""

from pathlib import Path

from plimsoll import home
from plimsoll.model.snapshot import Snapshot
from plimsoll.observe.cloud_types import CloudTypes


def folder() -> Path:
    return home.cache() / "ec2"


def with_cloud_types(snapshot: Snapshot) -> Snapshot:
    """With the types of the Environment's region, where it names one."""
    return CloudTypes(folder()).completed(snapshot)
