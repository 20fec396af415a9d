"""Which capacity gates to remove: those of pods that their queue admits and, for shares, whose GPUs are available."""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from plimsoll.cluster.pods import PodShare, gated, marked_pods, node_of, recently_ungated
from plimsoll.model import GateRemoval, ObjectKey, Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import POD_GROUP_NAME, PodGroup
from plimsoll.plan.classes import gangs, uid_of
from plimsoll.plan.demand import Demand

NOT_SERVED: Final = "Plimsoll does not plan capacity for this pod"


def gate_removals(
    snapshot: Snapshot, demands: Sequence[Demand], reserved_nodes: Container[str] = frozenset()
) -> tuple[GateRemoval, ...]:
    """The gates to remove, sorted by pod.

    A pod's GPUs are available if its demand places it on a usable node that is not in `reserved_nodes`. The pods of a
    gang are released together. Pods that their queue does not admit have no place. A pod with whole GPUs needs none: an
    autoscaler provides its node. A pod of no demand is released at once, as one whose claims ask for no GPUs.
    """
    waiting = [pod for pod in marked_pods(snapshot.pods) if pod.scheduling_gates]
    gated_pods = {uid_of(pod): pod for pod in waiting if gated(pod) and not pod.deleting and not pod.finished}
    if not gated_pods:
        return ()
    usable_nodes = {node.name for node in snapshot.nodes if node.usable and node.name not in reserved_nodes}
    places: dict[str, str] = {}
    for demand in demands:
        here = {uid: node for node, uids in demand.on_nodes.items() if node in usable_nodes for uid in uids}
        here = _released_first(demand, here)
        # The scheduler may use any of these places for a pod whose gate was removed and that is not bound yet.
        if not any(recently_ungated(share.pod) for uid, share in demand.pods.items() if uid not in here):
            places |= {uid: f"its GPUs are free on {node}" for uid, node in here.items()}
        places |= dict.fromkeys(demand.whole_gpu_pods.keys() - demand.kept_out.keys(), "its queue admits it")
    groups = MappingProxyType({(each.namespace, each.name): each for each in snapshot.pod_groups})
    known = {uid for demand in demands for uid in (*demand.pods, *demand.refused, *demand.whole_gpu_pods)}
    split = _split_gangs(snapshot, gated_pods, places, groups)
    removals = []
    for uid, pod in gated_pods.items():
        why = (places.get(uid, "") if uid not in split else "") if uid in known else NOT_SERVED
        if why:
            key = ObjectKey(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name)
            removals.append(GateRemoval(key=key, uid=pod.uid, message=why))
    return tuple(sorted(removals, key=lambda removal: (removal.key.namespace, removal.key.name)))


def _released_first(demand: Demand, places: Mapping[str, str]) -> dict[str, str]:
    """The nodes by UID, with pods whose gates were just removed in place of gated ones that need the same: which of
    these has a place, the plan chooses by their names."""
    held, gated_pods = dict(places), defaultdict[tuple[object, ...], list[str]](list)
    for uid in places:
        if gated(demand.pods[uid].pod):
            gated_pods[_needs(demand.pods[uid])].append(uid)
    for uid, share in demand.pods.items():
        if uid not in held and recently_ungated(share.pod) and (alike := gated_pods[_needs(share)]):
            held[uid] = held.pop(alike.pop())
    return held


def _needs(share: PodShare) -> tuple[object, ...]:
    """Equal for pods of a class that can be on the same nodes, if these have rules about no other pods."""
    pod = share.pod
    return share.share, pod.host, pod.annotations.get(POD_GROUP_NAME), pod.rules and uid_of(pod)


def _split_gangs(
    snapshot: Snapshot,
    gated_pods: Mapping[str, Pod],
    places: Mapping[str, str],
    groups: Mapping[tuple[str, str], PodGroup],
) -> set[str]:
    """UIDs of the pods of gangs that have too few places to start."""
    present = (pod for pod in snapshot.pods if not pod.finished and not pod.deleting and uid_of(pod) not in gated_pods)
    others = (pod for pod in present if node_of(pod) or uid_of(pod) in places)
    present_gangs = gangs(gated_pods, others, groups)
    return {uid for gang in present_gangs if gang.lacking(lambda uid: uid in places) for uid in gang.pods}
