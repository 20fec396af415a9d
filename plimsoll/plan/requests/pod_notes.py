"""Events on pending pods: one for each pod and state."""

from collections.abc import Iterator
from typing import Final

from plimsoll.cluster.queues import NO_QUEUE, OVER_LIMIT, OVER_QUOTA
from plimsoll.model.api import PodNote, PodState
from plimsoll.plan.demand import Demand

_BY_QUEUE: Final = tuple(f"{each}:" for each in (OVER_LIMIT, OVER_QUOTA, NO_QUEUE))
"""How a reason starts if the queue does not admit the pod."""


def pod_notes(demand: Demand, *, requested: bool) -> tuple[PodNote, ...]:
    """The events for the pods of a demand, sorted by the pods' UIDs. `requested` says whether capacity is requested for
    the pods that are not refused."""
    return tuple(sorted(_notes(demand, requested=requested), key=lambda note: note.uid))


def _notes(demand: Demand, *, requested: bool) -> Iterator[PodNote]:
    without = {uid for uids in (demand.in_grace, *demand.on_nodes.values()) for uid in uids}
    for uid, each in {**demand.pods, **demand.whole_gpu_pods}.items():
        why = demand.refused.get(uid) or demand.kept_out.get(uid, "")
        if why.startswith(_BY_QUEUE):
            yield PodNote.of(
                uid, each.pod.key, PodState.KEPT_OUT, f"not admitted by queue {demand.demand_class.queue}: {why}"
            )
        elif why:
            yield PodNote.of(uid, each.pod.key, PodState.FITS_NOTHING, f"fits no instance type: {why}")
        elif requested and uid in demand.pods and uid not in without:
            note = f"capacity requested: {each.share}; see GPUDemand {demand.name}"
            yield PodNote.of(uid, each.pod.key, PodState.REQUESTED, note)
