"""Workloads whose replicas a HorizontalPodAutoscaler sets: the plan uses its number and never writes it."""

from plimsoll.model import Snapshot
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Workload
from plimsoll.plan.owned import Ownership


def autoscaled(snapshot: Snapshot) -> frozenset[tuple[str, str, str, str]]:
    """(API group, kind, namespace, name) of each workload that an autoscaler targets."""
    return frozenset(each.target for each in snapshot.autoscalers if not each.deleting)


def scaled(snapshot: Snapshot, ownership: Ownership) -> tuple[Workspace, ...]:
    """The Workspaces, where `inference.replicas` of each is what the autoscaler of its workload set.

    Before the workload exists, the declared number counts. The same object if there are no autoscalers.
    """
    targets = autoscaled(snapshot)
    live = [each for each in snapshot.workloads if each.target in targets and not each.deleting]
    if not live:
        return snapshot.workspaces
    return tuple(_followed(each, ownership.workloads_of(each), live) for each in snapshot.workspaces)


def _followed(workspace: Workspace, own: list[Workload], live: list[Workload]) -> Workspace:
    workload = next((each for each in own if each in live), None)
    inference = workspace.spec.inference
    if workload is None or inference is None or inference.replicas == workload.replicas:
        return workspace
    spec = workspace.spec.model_copy(update={"inference": inference.model_copy(update={"replicas": workload.replicas})})
    return workspace.model_copy(update={"spec": spec})
