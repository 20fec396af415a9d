"""Which pods their queues would admit: gangs as a whole, highest priority first."""

from collections.abc import Iterable, Mapping, Sequence

from plimsoll.plan.classes.gang import Gang
from plimsoll.plan.pods import PodShare
from plimsoll.plan.queues import QueueGate, is_preemptible

QueueRequest = tuple[str, int]
"""(queue, thousandths of GPUs in all)"""


def refused_by_queues(
    gate: QueueGate, pods: Mapping[str, PodShare], requested: Mapping[str, QueueRequest], gangs: Iterable[Gang]
) -> dict[str, str]:
    """For each pod that its queue would not admit, by UID, the reason. Admitted pods count for the pods after them.

    Order: priority, then age, then UID, as KAI orders the work of one queue. Of a gang that can start without some of
    its pods, the minimum is admitted as a whole, and the others one by one.
    """
    in_gangs = {uid: gang for gang in gangs for uid in gang.pods}
    refused: dict[str, str] = {}
    seen: set[str] = set()

    def rank(uid: str) -> tuple[int, str, str]:
        return -pods[uid].pod.priority, pods[uid].pod.creation_timestamp, uid

    for uid in sorted(requested, key=rank):
        if uid in seen:
            continue
        gang = in_gangs.get(uid)
        members = [uid] if gang is None else sorted((each for each in gang.pods if each in requested), key=rank)
        needed = 1 if gang is None else gang.lacking(lambda _: False)
        seen.update(members)
        why = _admit(gate, members[:needed], pods, requested) if needed else ""
        if why:
            refused |= dict.fromkeys(members, why)
            continue
        refused |= {each: why for each in members[needed:] if (why := _admit(gate, [each], pods, requested))}
    return refused


def _admit(
    gate: QueueGate, members: Sequence[str], pods: Mapping[str, PodShare], requested: Mapping[str, QueueRequest]
) -> str:
    """Why the pods are not all admitted; empty if they are. The pods of a gang are mostly of one queue."""
    sums: dict[tuple[str, bool], int] = {}
    for uid in members:
        queue, milli = requested[uid]
        key = (queue, is_preemptible(pods[uid].pod))
        sums[key] = sums.get(key, 0) + milli
    if len(sums) == 1:
        ((queue, preemptible), milli), *_ = sums.items()
        return gate.admit(queue, milli, preemptible)
    whys = (gate.why_not(queue, milli, preemptible) for (queue, preemptible), milli in sorted(sums.items()))
    why = next(filter(None, whys), "")
    if not why:
        for (queue, preemptible), milli in sorted(sums.items()):
            gate.admit(queue, milli, preemptible)
    return why
