"""Rules that an Environment sets for Workspaces: mode, reserved labels, immutable fields, access."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from plimsoll.model.api.environment import EnvironmentSpec
from plimsoll.model.api.workspace import WorkspaceSpec
from plimsoll.model.meta import dig

INSTANCE_TYPE_FORBIDDEN: Final = "instanceType must be empty when node auto-provisioning is disabled (BYO scenario)"
INSTANCE_TYPE_GIVEN: Final = (
    f"{INSTANCE_TYPE_FORBIDDEN}: resource.instanceType is '{{given}}'; remove it, and select the nodes "
    "with resource.labelSelector, or set byoInstanceType of the Environment to narrow"
)
INSTANCE_TYPE_REQUIRED: Final = (
    "instanceType is required when node auto-provisioning is enabled: set resource.instanceType"
)
INSTANCE_TYPES_FORBIDDEN: Final = (
    "resource.instanceTypes is for nodes that are provisioned: name one type of existing nodes in resource.instanceType"
)
PARTITION_FORBIDDEN: Final = (
    "partition must be absent when node auto-provisioning is enabled: a replica uses whole provisioned nodes; "
    "remove resource.partition"
)


def instance_type_violation(instance_type: str | None, *, auto_provisioning: bool, narrows: bool = False) -> str | None:
    """The violation of a Workspace's `resource.instanceType` in that mode; None if there is none.

    `narrows` is whether it may narrow the choice of existing nodes.
    """
    if auto_provisioning:
        return None if instance_type else INSTANCE_TYPE_REQUIRED
    return INSTANCE_TYPE_GIVEN.format(given=instance_type) if instance_type and not narrows else None


SELECTOR_RESERVED: Final = (
    "resource.labelSelector uses {keys}: label keys that start with {prefixes} are reserved; select nodes by labels "
    "of your own"
)
_LABELS_RESERVED: Final = " uses {keys}: label keys that start with {prefixes} are reserved; remove them"
TEMPLATE_RESERVED: Final = f"inference.template.metadata.labels{_LABELS_RESERVED}"
PODS_RESERVED: Final = f"inference.pods.labels{_LABELS_RESERVED}"


LABEL_SELECTOR_IMMUTABLE: Final = "labelSelector is immutable: create another Workspace"
PRESET_IMMUTABLE: Final = "preset is immutable: create another Workspace"
COUNT_IMMUTABLE: Final = "count is immutable: inference.replicas says how many nodes, and may change"
PARTITION_IMMUTABLE: Final = "partition is immutable: create another Workspace"
INSTANCE_TYPE_IMMUTABLE: Final = "instanceType cannot be changed once set: create another Workspace"
INSTANCE_TYPES_KEPT: Final = (
    "instanceTypes may change, but instanceType cannot take their place: list the one that is wanted"
)
TEMPLATE_KEPT: Final = "template may change, but neither be added nor removed: create another Workspace"
TUNING_KEPT: Final = "tuning can neither be added nor removed: create another Workspace"

IMMUTABLE: Final = (
    ("resource", "partition", PARTITION_IMMUTABLE),
    ("inference", "preset", PRESET_IMMUTABLE),
)
"""Parent, field and message of fields that cannot be set, unset or changed. Nor can the selector, but it can be written
in another form."""


def changes_refused(
    old: WorkspaceSpec, new: WorkspaceSpec, *, auto_provisioning: bool, narrows: bool = False
) -> list[str]:
    """Messages on each refused change; empty if the update is allowed.

    An existing problem that stays unchanged, such as an instance type from another mode, refuses no update.
    """
    before, after = old.manifest(), new.manifest()
    found = [] if old.resource.label_selector.same(new.resource.label_selector) else [LABEL_SELECTOR_IMMUTABLE]
    found += [
        message
        for parent, field, message in IMMUTABLE
        if dig(before, f"{parent}.{field}") != dig(after, f"{parent}.{field}")
    ]
    counts = old.resource.count, new.resource.count
    if (counts[0] or 1) != (counts[1] or 1) and (new.inference is None or None not in counts):
        found.append(COUNT_IMMUTABLE)
    if (dig(before, "inference.template") is None) != (dig(after, "inference.template") is None):
        found.append(TEMPLATE_KEPT)
    if (old.tuning is None) != (new.tuning is None):
        found.append(TUNING_KEPT)
    return found + _instance_type(before, after, auto_provisioning, narrows)


def _instance_type(
    before: Mapping[str, Any], after: Mapping[str, Any], auto_provisioning: bool, narrows: bool
) -> list[str]:
    """Once set, it can only be removed, and only for existing nodes (BYO) or for `instanceTypes`. The first one of
    these is what the mode allows or forbids."""
    was, becomes = (dig(spec, "resource.instanceType") or "" for spec in (before, after))
    listed = [dig(spec, "resource.instanceTypes") or () for spec in (before, after)]
    if was and becomes and was.casefold() != becomes.casefold():  # clouds' names are looked up whatever their case
        return [INSTANCE_TYPE_IMMUTABLE]
    if becomes and listed[0]:
        return [INSTANCE_TYPES_KEPT]
    first = was or next(iter(listed[0]), None), becomes or next(iter(listed[1]), None)
    old, new = (instance_type_violation(each, auto_provisioning=auto_provisioning, narrows=narrows) for each in first)
    return [new] if new and not old else []


NAMESPACE_NOT_NAMED: Final = (
    "namespace '{namespace}' may use nothing here: no entry in access of the Environment names it or '*'"
)
QUEUE_NOT_ALLOWED: Final = (
    "namespace '{namespace}' may not use queue '{queue}', which is set by spec.queue or a label of "
    "its pods: allowed are {allowed}"
)
POD_QUEUE_NOT_ALLOWED: Final = "namespace '{namespace}' may not use queue '{queue}': allowed are {allowed}"
TYPE_NOT_ALLOWED: Final = "namespace '{namespace}' may not use instance type '{instance_type}': allowed are {allowed}"
NONE_ALLOWED: Final = "none"
"""Used in messages for an empty list."""


def barred_from(environment: EnvironmentSpec, namespace: str) -> str:
    """Why the namespace may use nothing at all; empty if it may use something."""
    try:
        environment.access_of(namespace)
    except KeyError:
        return NAMESPACE_NOT_NAMED.format(namespace=namespace)
    return ""


def barred_from_queue(environment: EnvironmentSpec, namespace: str, queue: str) -> str:
    """Why pods of the namespace may not use a queue; empty if they may, or have none."""
    access = environment.access_of(namespace)
    if not queue or access is None or access.queues is None or queue in access.queues:
        return ""
    return POD_QUEUE_NOT_ALLOWED.format(namespace=namespace, queue=queue, allowed=_listed(access.queues))


class Violation(NamedTuple):
    field: str
    """Path of the field in the Workspace's manifest."""
    message: str


def tenancy_violation(
    environment: EnvironmentSpec,
    namespace: str,
    *,
    queue: str | None,
    labels: Mapping[str, str],
    instance_types: Sequence[str],
) -> Violation | None:
    """What the Workspace requests that its namespace may not use; None if it may use everything.

    `labels` are those of its template: KAI reads the queue of its pods there if `queue` is not set.
    """
    barred = barred_from(environment, namespace)
    if barred:
        return Violation("metadata.namespace", barred)
    access = environment.access_of(namespace)
    if access is None:
        return None
    named = queue or environment.node_pool_label.queue_in(labels)
    if named and access.queues is not None and named not in access.queues:
        said = QUEUE_NOT_ALLOWED.format(namespace=namespace, queue=named, allowed=_listed(access.queues))
        return Violation("spec.queue" if queue else "spec.inference.template.metadata.labels", said)
    refused = next((name for name in instance_types if not access.allows_type(name)), None)
    if refused is None or not (environment.auto_provisioning or environment.narrows_by_type):
        return None
    allowed = _listed(access.instance_types)
    said = TYPE_NOT_ALLOWED.format(namespace=namespace, instance_type=refused, allowed=allowed)
    return Violation("spec.resource.instanceType", said)


def _listed(allowed: Sequence[str] | None) -> str:
    return ", ".join(allowed or ()) or NONE_ALLOWED
