"""Whom requests and operations are for: the namespaces, queues and instance types of Workspaces and demands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.cluster.queues import queue_of
from plimsoll.model import Plan, Snapshot
from plimsoll.ui.view.filter import Filter


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    namespaces: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    """Instance types that a Workspace names."""


NO_FACTS: Final = OwnerFacts()


def owner_facts(snapshot: Snapshot, wanted: Filter, plan: Plan | None = None) -> Mapping[str, OwnerFacts]:
    """By `Workspace namespace/name` and `GPUDemand name`; none where the filter does not need them.

    The Plan's reports take precedence over the statuses in the cluster.
    """
    if not (wanted.namespace or wanted.queue or wanted.type):
        return {}
    found = {
        f"Workspace {each.ref}": OwnerFacts(
            frozenset({each.namespace}),
            frozenset({each.spec.queue or ""}),
            frozenset(each.spec.resource.named_types or ("",)),
        )
        for each in snapshot.workspaces
    }
    statuses = {each.name: each.status for each in snapshot.gpu_demands}
    if plan is not None:
        statuses |= {each.name: each.status for each in plan.demands if each.status is not None}
    pods = {pod.uid: pod for pod in snapshot.pods} if statuses else {}
    environment = snapshot.environment.spec
    for name, status in statuses.items():
        own = [pod for each in status.pods if (pod := pods.get(each.uid)) is not None]
        found[f"GPUDemand {name}"] = OwnerFacts(
            frozenset(pod.namespace for pod in own), frozenset(queue_of(pod, environment) for pod in own)
        )
    return found


def owner_shown(
    owner: str, namespace: str, wanted: Filter, facts: Mapping[str, OwnerFacts], types: Iterable[str] = ()
) -> bool:
    """Whether the filter shows an operation for that owner, in that namespace and with these instance types."""
    found = facts.get(owner, NO_FACTS)
    return wanted.matches(namespaces={namespace, *found.namespaces}, queues=found.queues, types={*found.types, *types})
