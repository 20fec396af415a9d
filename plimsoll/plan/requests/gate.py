"""When the gate of a share pod is lifted: its GPUs are there, and its queue admits it."""

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from plimsoll.model import Lift, ObjectKey, Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup
from plimsoll.plan.classes import gangs, gated, is_ours, uid_of
from plimsoll.plan.demand import Demand
from plimsoll.plan.pods import marked_pods, node_of

NOT_SERVED: Final = "its demand is not planned here"


def lifts(
    snapshot: Snapshot, demands: Iterable[Demand], reserved_nodes: Container[str] = frozenset()
) -> tuple[Lift, ...]:
    """The gates to lift, by pod.

    A pod's GPUs are there where its demand has a place for it on a node that is; the pods of a gang go together. Demand
    that the queue does not admit has no place, nor is there one on `held_nodes` yet. Pods whose demand is not planned
    at all are not held.
    """
    waiting = [pod for pod in marked_pods(snapshot.pods) if pod.scheduling_gates]
    gated_pods = {uid_of(pod): pod for pod in waiting if gated(pod) and not pod.deleting and not pod.finished}
    if not gated_pods:
        return ()
    there = {node.name for node in snapshot.nodes if node.usable and node.name not in reserved_nodes}
    places = {
        uid: f"its GPUs are free on {node}"
        for demand in demands
        for node, uids in demand.on_nodes.items()
        if node in there
        for uid in uids
    }
    settings = snapshot.environment.spec.demand
    groups = MappingProxyType({(each.namespace, each.name): each for each in snapshot.pod_groups})
    split = _split_gangs(snapshot, gated_pods, places, groups)
    found = []
    for uid, pod in gated_pods.items():
        served = pod.scheduler_name in settings.schedulers and not is_ours(pod, settings)
        why = (places.get(uid, "") if uid not in split else "") if served else NOT_SERVED
        if why:
            key = ObjectKey(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name)
            found.append(Lift(key=key, uid=pod.uid, message=why))
    return tuple(sorted(found, key=lambda lift: (lift.key.namespace, lift.key.name)))


def _split_gangs(
    snapshot: Snapshot,
    gated_pods: Mapping[str, Pod],
    places: Mapping[str, str],
    groups: Mapping[tuple[str, str], PodGroup],
) -> set[str]:
    """Pods of gangs of which too few have a place to start."""
    others = (pod for pod in snapshot.pods if uid_of(pod) not in gated_pods and (node_of(pod) or uid_of(pod) in places))
    found = gangs(gated_pods, others, groups)
    return {uid for gang in found if gang.lacking(lambda uid: uid in places) for uid in gang.pods}
