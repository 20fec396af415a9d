"""Which objects the controller created: one answer for planning and for applying."""

from collections.abc import Container
from typing import Final

OF_TENANTS: Final = frozenset({"Deployment", "StatefulSet", "LeaderWorkerSet", "Service", "ResourceClaimTemplate"})
"""Kinds that a Plan creates in the namespaces of tenants, who may create others of them there, with any labels."""


def is_created(kind: str, uid: str, recorded: Container[str] | None) -> bool:
    """Whether the controller created an object that carries its labels.

    `recorded` are the UIDs in the states of the capacity stacks; None if no state was read, as for manifests from
    files. Labels alone suffice where only the controller and administrators may write: of objects of the cluster, and
    of the namespace of capacity requests.
    """
    return kind not in OF_TENANTS or recorded is None or uid in recorded
