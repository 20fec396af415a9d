"""Workloads whose replicas an autoscaler sets: the plan follows it, and never writes them itself."""

from plimsoll.model import Snapshot
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Workload
from plimsoll.plan.owned import Ownership


def autoscaled(snapshot: Snapshot) -> frozenset[tuple[str, str, str, str]]:
    """What autoscalers target: (API group, kind, namespace, name)."""
    return frozenset(each.target for each in snapshot.autoscalers if not each.deleting)


def scaled(snapshot: Snapshot, ownership: Ownership) -> Snapshot:
    """The snapshot with `inference.replicas` of each Workspace as the autoscaler of its live workload wants them.

    Before there is a workload the declared number counts. The same snapshot where no autoscaler is at work.
    """
    targets = autoscaled(snapshot)
    live = [each for each in snapshot.workloads if each.target in targets and not each.deleting]
    if not live:
        return snapshot
    workspaces = tuple(_followed(each, ownership.workloads_of(each), live) for each in snapshot.workspaces)
    return snapshot.model_copy(update={"workspaces": workspaces})


def _followed(workspace: Workspace, own: list[Workload], live: list[Workload]) -> Workspace:
    workload = next((each for each in own if each in live), None)
    inference = workspace.spec.inference
    if workload is None or inference is None or inference.replicas == workload.replicas:
        return workspace
    spec = workspace.spec.model_copy(update={"inference": inference.model_copy(update={"replicas": workload.replicas})})
    return workspace.model_copy(update={"spec": spec})
