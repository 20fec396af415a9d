"""Which pods their queues would admit: gangs as a whole, highest priority first."""

from collections.abc import Iterable, Mapping, Sequence

from plimsoll.cluster.pods import PodShare
from plimsoll.cluster.queues import NOTHING, Amount, QueueGate, QueueRequest
from plimsoll.plan.classes.gang import Gang, in_order


def refused_by_queues(
    gate: QueueGate, pods: Mapping[str, PodShare], requested: Mapping[str, QueueRequest], gangs: Iterable[Gang]
) -> dict[str, str]:
    """For each pod that its queue would not admit, by UID, the reason. Admitted pods count for the pods after them.

    Order: KAI's priority, then age, then UID, as in KAI. Of a gang that can start without some of its pods, the minimum
    is admitted as a whole, and the others one by one; subgroups from their own minimum.
    """
    refused: dict[str, str] = {}

    def rank(uid: str) -> tuple[int, str, str]:
        return -requested[uid].priority, pods[uid].pod.creation_timestamp, uid

    for members, after in in_order(requested, gangs, rank):
        if why := refused.get(after) or _admit(gate, members, requested):
            refused |= dict.fromkeys(members, why)
    return refused


def _admit(gate: QueueGate, members: Sequence[str], requested: Mapping[str, QueueRequest]) -> str:
    """Why the pods are not all admitted; empty if they are. The pods of a gang are mostly of one queue."""
    sums: dict[tuple[str, bool], Amount] = {}
    for uid in members:
        key = (requested[uid].queue, requested[uid].preemptible)
        sums[key] = sums.get(key, NOTHING) + requested[uid].amount
    return gate.admit_all((*key, sums[key]) for key in sorted(sums))
