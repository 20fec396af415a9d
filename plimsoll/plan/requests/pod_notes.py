"""Events on pending pods: one for each pod and state."""

from collections.abc import Iterator
from typing import Final

from plimsoll.cluster.queues import NO_QUEUE, OVER_LIMIT, OVER_QUOTA
from plimsoll.model.api import PodNote, PodState
from plimsoll.plan.demand import Demand

_BY_QUEUE: Final = tuple(f"{each}:" for each in (OVER_LIMIT, OVER_QUOTA, NO_QUEUE))
"""How a reason starts if the queue does not admit the pod."""


def pod_notes(demand: Demand, *, created: bool) -> tuple[PodNote, ...]:
    """The events for the pods of a demand, sorted by the pods' UIDs. `created` says whether its new nodes are
    requested."""
    return tuple(sorted(_notes(demand, created=created), key=lambda note: note.uid))


def _notes(demand: Demand, *, created: bool) -> Iterator[PodNote]:
    requested = {uid for uids in (demand.awaiting, *demand.on_requested.values()) for uid in uids}
    requested |= demand.on_new.keys() if created else set()
    for uid, each in {**demand.pods, **demand.whole_gpu_pods}.items():
        why = demand.refused.get(uid) or demand.kept_out.get(uid, "")
        if why.startswith(_BY_QUEUE):
            yield PodNote.of(
                uid, each.pod.key, PodState.KEPT_OUT, f"not admitted by queue {demand.demand_class.queue}: {why}"
            )
        elif uid in demand.unfit:
            yield PodNote.of(uid, each.pod.key, PodState.FITS_NOTHING, f"fits no instance type of a NodePool: {why}")
        elif why:
            yield PodNote.of(uid, each.pod.key, PodState.NOT_REQUESTED, f"no capacity requested: {why}")
        elif uid in requested:
            note = f"capacity requested: {each.share}; see GPUDemand {demand.name}"
            yield PodNote.of(uid, each.pod.key, PodState.REQUESTED, note)
