"""What of a Workspace may not change once it is made; the rules of the CRD say the same in CEL."""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.model.api.mode import instance_type_violation
from plimsoll.model.api.workspace import WorkspaceSpec
from plimsoll.model.meta import dig

LABEL_SELECTOR_IMMUTABLE: Final = "labelSelector is immutable: create another Workspace"
PRESET_IMMUTABLE: Final = "preset is immutable: create another Workspace"
COUNT_IMMUTABLE: Final = "count is immutable: inference.replicas says how many nodes, and may change"
PARTITION_IMMUTABLE: Final = "partition is immutable: create another Workspace"
INSTANCE_TYPE_IMMUTABLE: Final = "instanceType cannot be changed once set: create another Workspace"
TEMPLATE_KEPT: Final = "template may change, but neither be added nor removed: create another Workspace"
TUNING_KEPT: Final = "tuning can neither be added nor removed: create another Workspace"

IMMUTABLE: Final = (
    ("resource", "labelSelector", LABEL_SELECTOR_IMMUTABLE),
    ("resource", "count", COUNT_IMMUTABLE),
    ("resource", "partition", PARTITION_IMMUTABLE),
    ("inference", "preset", PRESET_IMMUTABLE),
)
"""Parent, field and message of what is neither set, nor unset, nor changed."""


def changes_refused(old: WorkspaceSpec, new: WorkspaceSpec, *, auto_provisioning: bool) -> list[str]:
    """Messages on each change that is refused in that mode; empty where the update may be made.

    What was wrong before and is left as it is, such as an instance type from another mode, refuses no update.
    """
    before, after = old.manifest(), new.manifest()
    found = [
        message
        for parent, field, message in IMMUTABLE
        if dig(before, f"{parent}.{field}") != dig(after, f"{parent}.{field}")
    ]
    if (dig(before, "inference.template") is None) != (dig(after, "inference.template") is None):
        found.append(TEMPLATE_KEPT)
    if (old.tuning is None) != (new.tuning is None):
        found.append(TUNING_KEPT)
    return found + _instance_type(before, after, auto_provisioning)


def _instance_type(before: Mapping[str, Any], after: Mapping[str, Any], auto_provisioning: bool) -> list[str]:
    """Once set, it may only be cleared, and only where nodes are brought."""
    was, becomes = dig(before, "resource.instanceType"), dig(after, "resource.instanceType")
    if was == becomes:
        return []
    if was and becomes:
        return [INSTANCE_TYPE_IMMUTABLE]
    violation = instance_type_violation(becomes, auto_provisioning=auto_provisioning)
    return [violation] if violation else []
