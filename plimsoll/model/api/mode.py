"""What the mode of an environment asks of a Workspace: brought nodes or provisioned ones, never both."""

from typing import Final

INSTANCE_TYPE_FORBIDDEN: Final = "instanceType must be empty when node auto-provisioning is disabled (BYO scenario)"
INSTANCE_TYPE_GIVEN: Final = (
    f"{INSTANCE_TYPE_FORBIDDEN}: resource.instanceType is '{{given}}'; remove it, and name the nodes by "
    "resource.labelSelector"
)
INSTANCE_TYPE_REQUIRED: Final = (
    "instanceType is required when node auto-provisioning is enabled: set resource.instanceType"
)
PARTITION_FORBIDDEN: Final = (
    "partition must be absent when node auto-provisioning is enabled: a provisioned node is taken whole; remove "
    "resource.partition"
)


def instance_type_violation(instance_type: str | None, *, auto_provisioning: bool) -> str | None:
    """What is wrong with a Workspace's `resource.instanceType` in that mode; None where nothing is."""
    if auto_provisioning:
        return None if instance_type else INSTANCE_TYPE_REQUIRED
    return INSTANCE_TYPE_GIVEN.format(given=instance_type) if instance_type else None
