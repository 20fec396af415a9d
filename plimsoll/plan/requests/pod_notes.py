"""Events on pending pods: one for each pod and state."""

from collections.abc import Mapping

from plimsoll.model.api import PodNote, PodState
from plimsoll.plan.classes import Refusal, RefusalReason
from plimsoll.plan.demand import Demand
from plimsoll.plan.known import Known
from plimsoll.plan.requests.answers import Answer


def pod_notes(
    demand: Demand, by_autoscaler: Mapping[str, Answer], *, created: bool, known: Known
) -> tuple[PodNote, ...]:
    """The events for the pods of a demand, sorted by the pods' UIDs. `by_autoscaler` says, by UID, why an autoscaler
    refuses the node of a pod, and `created` whether the demand's new nodes are requested."""
    pods = (demand.name, demand.pods, demand.whole_gpu_pods, demand.refused_with_event)
    requested = known.result("notes of requested pods", pods, lambda: _requested(demand), subject=demand.name)
    waiting = {uid for uids in (demand.awaiting, *demand.on_requested.values()) for uid in uids}
    waiting |= demand.on_new.keys() if created else set()
    notes = {uid: requested[uid] for uid in waiting if uid in requested}
    for uid, answer in by_autoscaler.items():
        if uid in requested:
            text = f"{answer.by} refuses the requested capacity: {answer.text}; see GPUDemand {demand.name}"
            notes[uid] = _noted(requested[uid], PodState.REFUSED, text)
    for uid, note in requested.items():
        why = demand.refused.get(uid) or demand.kept_out.get(uid)
        if why is not None:
            notes[uid] = _not_requested(demand, note, why)
    return tuple(notes[uid] for uid in sorted(notes))


def _not_requested(demand: Demand, note: PodNote, why: Refusal) -> PodNote:
    more = f"; what would help: plimsoll why pod {note.namespace}/{note.name}"
    if why.reason is RefusalReason.QUEUE:
        return _noted(note, PodState.KEPT_OUT, f"not admitted by queue {demand.demand_class.queue}: {why}{more}")
    if why.reason in (RefusalReason.TOO_LARGE, RefusalReason.NO_NODE):
        return _noted(note, PodState.FITS_NOTHING, f"fits no instance type of a NodePool: {why}{more}")
    return _noted(note, PodState.NOT_REQUESTED, f"no capacity requested: {why}{more}")


def _noted(note: PodNote, state: PodState, text: str) -> PodNote:
    return PodNote.of(note.uid, (note.namespace, note.name), state, text)


def _requested(demand: Demand) -> dict[str, PodNote]:
    """The event on each pod, if capacity is requested for it; of those that are left out, it is not."""
    text = "capacity requested: {}; see GPUDemand {}"
    asking = {**demand.pods, **demand.whole_gpu_pods}
    notes = {
        uid: PodNote.of(uid, asking_pod.pod.key, PodState.REQUESTED, text.format(asking_pod.share, demand.name))
        for uid, asking_pod in asking.items()
    }
    return notes | {
        uid: PodNote.of(uid, pod.key, PodState.NOT_REQUESTED, "") for uid, pod in demand.refused_with_event.items()
    }
