"""Names that two Workspaces would both need: in labels, of their Services, and of the StatefulSets behind a
LeaderWorkerSet."""

from collections import defaultdict
from collections.abc import Mapping

from plimsoll.estimating import Sizing
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import Workspace, WorkspaceRef
from plimsoll.plan.owned import by_age
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces.workload import workload_kind
from plimsoll.serving import ObjectName, object_names, service_name

Key = tuple[str, str]
"""(namespace, name)"""


def name_conflicts(view: ClusterView, sizings: Mapping[Key, Sizing | Refusal]) -> dict[Key, Refusal]:
    """Refusals of the accepted Workspaces that need a name of another one.

    A name belongs first to what runs, then to the Workspace of that name, then to the older one.
    """
    owners = _Owners()
    refusals = {}
    order = sorted(view.snapshot.workspaces, key=lambda made: (service_name(made) not in ("", made.name), by_age(made)))
    for workspace in order:
        for workload in view.ownership.workloads_of(workspace):
            for name in object_names(workspace, workload.kind, workload.replicas):
                owners.add(workspace, name)
    for workspace in order:
        sizing, inference = sizings[workspace.key], workspace.spec.inference
        if isinstance(sizing, Refusal) or workspace.deleting:
            continue
        labelled = view.ownership.labelled(workspace)
        if labelled.name != workspace.name:
            refusals[workspace.key] = _same_labels(workspace, labelled)
            continue
        if inference is None:
            continue
        names = object_names(workspace, workload_kind(inference, sizing.per_replica)[1], workspace.replicas)
        taken = next(filter(None, (owners.taken(workspace, name) for name in names)), None)
        if taken is not None:
            refusals[workspace.key] = _refusal(workspace, *taken)
            continue
        for name in names:
            owners.add(workspace, name)
    return refusals


class _Owners:
    """Whose names are. Numbered ones are not listed: there may be thousands, and anyone may ask for them."""

    def __init__(self) -> None:
        self._single: dict[tuple[str, str, str], Workspace] = {}
        """By namespace, kind and name."""
        self._with_number = defaultdict[tuple[str, str, str], dict[int, Workspace]](dict)
        """Of these, those that end in a number, by what comes before it."""
        self._numbered: dict[tuple[str, str, str], tuple[int, Workspace]] = {}
        """How many there are, by namespace, kind and the name without a number, which is that of the Workspace."""

    def add(self, workspace: Workspace, name: ObjectName) -> None:
        """Those that have an owner keep it."""
        key = workspace.namespace, name.kind, name.name
        if name.numbered:
            before, _ = self._numbered.get(key, (0, workspace))
            self._numbered[key] = max(before, name.numbered), workspace
            return
        owner = self._single.setdefault(key, workspace)
        if (split := _split(name.name)) is not None:
            self._with_number[workspace.namespace, name.kind, split[0]][split[1]] = owner

    def taken(self, workspace: Workspace, name: ObjectName) -> tuple[ObjectName, Workspace] | None:
        """The first of the names that another Workspace has, and that one."""
        key = workspace.namespace, name.kind, name.name
        if name.numbered:
            others = self._with_number.get(key, {}).items()
            found = min((number for number, owner in others if owner is not workspace), default=name.numbered)
            if found >= name.numbered:
                return None
            return ObjectName(name.kind, f"{name.name}-{found}"), self._with_number[key][found]
        owner = self._single.get(key, workspace)
        if owner is workspace and (split := _split(name.name)) is not None:
            count, numbered = self._numbered.get((workspace.namespace, name.kind, split[0]), (0, workspace))
            owner = numbered if split[1] < count else workspace
        return None if owner is workspace else (name, owner)


def _split(name: str) -> tuple[str, int] | None:
    """The name without the number at its end, and that; None if it has none as Kubernetes writes them."""
    head, _, number = name.rpartition("-")
    if not head or not number.isdecimal() or not number.isascii() or (number[0] == "0" and number != "0"):
        return None
    return head, int(number)


def _same_labels(workspace: Workspace, other: WorkspaceRef) -> Refusal:
    return Refusal(
        Reason.INVALID_SPEC,
        f"metadata.name has {len(workspace.name)} characters, and the labels of its nodes would be those of Workspace "
        f"{other}: create the Workspace with another name, of at most 63 characters",
    )


def _refusal(workspace: Workspace, name: ObjectName, owner: Workspace) -> Refusal:
    inference = workspace.spec.inference
    if name == ObjectName("Service", service_name(workspace)):
        named = inference is not None and inference.service.name is not None
        field = "inference.service.name" if named else "metadata.name"
        other = "another name" if named else "inference.service.name to another name"
        message = (
            f"{field} is {name.name!r}, and Workspace {owner.ref} has the Service of this name: set {other}, or "
            "inference.service.enabled to false"
        )
    else:
        replica = name.name.removeprefix(f"{workspace.name}-")
        whose = f"replica {replica}" if name.name != workspace.name else "its workload"
        fewer = f", or set inference.replicas to at most {replica}" if replica.isdecimal() and replica != "0" else ""
        message = (
            f"metadata.name is {workspace.name!r}: {whose} needs a {name.kind} named {name.name!r}, which Workspace "
            f"{owner.ref} has: create the Workspace with another name{fewer}"
        )
    return Refusal(Reason.INVALID_SPEC, message)
