"""What an Environment allows the Workspaces of a namespace, as far as a Workspace alone says what it uses.

What depends on nodes (NodePools, GPUs in all) is judged where nodes are known.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from plimsoll.model.api.environment import EnvironmentSpec

NAMESPACE_NOT_NAMED: Final = (
    "namespace '{namespace}' may use nothing here: no entry of the Environment's access names it or '*'"
)
QUEUE_NOT_ALLOWED: Final = "namespace '{namespace}' may not use queue '{queue}': allowed are {allowed}"
TYPE_NOT_ALLOWED: Final = "namespace '{namespace}' may not use instance type '{instance_type}': allowed are {allowed}"
NONE_ALLOWED: Final = "none"
"""Stands for an empty list of what is allowed."""


class Violation(NamedTuple):
    field: str
    """Path of the field in the Workspace's manifest."""
    message: str


def tenancy_violation(
    environment: EnvironmentSpec, namespace: str, *, queue: str | None, instance_type: str | None
) -> Violation | None:
    """What a Workspace of the namespace may not use of what it asks for; None where it may use all of it."""
    try:
        access = environment.access_of(namespace)
    except KeyError:
        return Violation("metadata.namespace", NAMESPACE_NOT_NAMED.format(namespace=namespace))
    if access is None:
        return None
    if queue and access.queues is not None and queue not in access.queues:
        said = QUEUE_NOT_ALLOWED.format(namespace=namespace, queue=queue, allowed=_listed(access.queues))
        return Violation("spec.queue", said)
    types = access.instance_types
    if not instance_type or types is None or not environment.auto_provisioning:
        return None
    if instance_type.casefold() not in {each.casefold() for each in types}:
        said = TYPE_NOT_ALLOWED.format(namespace=namespace, instance_type=instance_type, allowed=_listed(types))
        return Violation("spec.resource.instanceType", said)
    return None


def _listed(allowed: Sequence[str]) -> str:
    return ", ".join(allowed) or NONE_ALLOWED
