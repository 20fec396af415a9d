"""Names that two Workspaces would both need: in labels, of their Services, and of the StatefulSets behind a
LeaderWorkerSet."""

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
    owners: dict[tuple[str, ObjectName], Workspace] = {}
    refusals = {}
    order = sorted(view.snapshot.workspaces, key=lambda made: (service_name(made) not in ("", made.name), by_age(made)))
    for workspace in order:
        for workload in view.ownership.workloads_of(workspace):
            for name in object_names(workspace, workload.kind, workload.replicas):
                owners.setdefault((workspace.namespace, name), workspace)
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
        for name in names:
            owner = owners.get((workspace.namespace, name), workspace)
            if owner is not workspace:
                refusals[workspace.key] = _refusal(workspace, name, owner)
                break
        else:
            owners |= {(workspace.namespace, name): workspace for name in names}
    return refusals


def _same_labels(workspace: Workspace, other: WorkspaceRef) -> Refusal:
    return Refusal(
        Reason.INVALID_SPEC,
        f"metadata.name has {len(workspace.name)} characters, and the labels of its nodes would be those of Workspace "
        f"{other}: create the Workspace with another name, of at most 63 characters",
    )


def _refusal(workspace: Workspace, name: ObjectName, owner: Workspace) -> Refusal:
    inference = workspace.spec.inference
    if name == ("Service", service_name(workspace)):
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
