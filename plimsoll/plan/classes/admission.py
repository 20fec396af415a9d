"""Which pods their namespaces and queues would admit: gangs as a whole, highest priority first."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from plimsoll.cluster.pods import PodShare, gated
from plimsoll.cluster.queues import NOTHING, Amount, QueueGate
from plimsoll.model.dra import ClaimRequest
from plimsoll.packing import Milli
from plimsoll.plan.classes.gang import Gang, in_order
from plimsoll.plan.classes.refusal import Refusal, RefusalReason


class Asked(NamedTuple):
    """What a pod takes of its queue and of its namespace, and its priority among KAI's work."""

    queue: str
    amount: Amount
    preemptible: bool
    priority: int
    rounding: Milli = 0
    """Thousandths of a GPU that KAI compares with limits and quotas above `amount` before it places the pod."""
    namespace: str = ""
    milli: Milli = 0
    """Thousandths of GPUs that it takes of what its namespace may have."""
    resource: str = ""
    """The extended resource of its GPUs, where that is not the Environment's."""
    claims: Sequence[ClaimRequest] = ()
    """Those that Kubernetes has yet to create for it."""


class NamespaceLimits(Protocol):
    """GPUs that each namespace may have, in thousandths, and claims."""

    bounded: bool

    @property
    def released(self) -> Mapping[str, object]:
        """Pods whose capacity gate was removed and that are on no node yet, by UID."""

    def short(self, namespace: str, milli: Milli, resource: str = "", claims: Sequence[ClaimRequest] = ()) -> str:
        """Why the namespace may not have that much more of the resource, or these claims; empty if it may."""

    def exhausted(self, namespace: str) -> str:
        """Why the namespace may have nothing more; empty if it may."""

    def left(self, namespace: str) -> Milli | None:
        """What it may have more; None: as much as it asks for."""

    def subtract(self, namespace: str, milli: Milli, resource: str = "", claims: Sequence[ClaimRequest] = ()) -> None:
        """Counts that much more as in use."""

    def beside(self, planned: Container[str]) -> "NamespaceLimits":
        """As much as is left here beside those of `released` that are not planned for."""

    def copy(self) -> "NamespaceLimits":
        """As much as is left here, to subtract from."""


@dataclass
class Gate:
    """Pods pass where their namespace and their queue admit them, and count there for the pods after them."""

    queues: QueueGate | None = None
    limits: NamespaceLimits | None = None

    def why_not(self, asked: Asked) -> Refusal | None:
        limits, of_namespace = self.limits, (asked.namespace, asked.milli, asked.resource, asked.claims)
        if over := limits.short(*of_namespace) if limits is not None else "":
            return _beyond(asked.namespace, over)
        if self.queues is None:
            return None
        why = self.queues.why_not(asked.queue, asked.amount, asked.preemptible, asked.rounding)
        return Refusal(RefusalReason.QUEUE, why) if why else None

    def count(self, requested: Mapping[str, Asked], refused: Iterable[str]) -> None:
        """Has those of the refused pods count that have no capacity gate any more: their scheduler may place them."""
        if self.limits is None or not (released := self.limits.released.keys() & refused):
            return
        self.limits = self.limits.copy()
        for uid in released:
            self.limits.subtract(requested[uid].namespace, requested[uid].milli, requested[uid].resource)

    def admit(self, asked: Sequence[Asked]) -> Refusal | None:
        """Why not all of these pass together; None if they do. The pods of a gang are mostly of one queue.

        KAI compares each beside those that it has placed, at last the one that is rounded most.
        """
        left = self.limits.copy() if self.limits is not None else None
        for namespace, milli, resource, claims in _of_namespaces(asked) if left is not None else ():
            assert left is not None
            if over := left.short(namespace, milli, resource, claims):
                return _beyond(namespace, over)
            left.subtract(namespace, milli, resource, claims)
        sums: dict[tuple[str, bool], tuple[Amount, Milli]] = {}
        for each in asked:
            key = (each.queue, each.preemptible)
            amount, rounding = sums.get(key, (NOTHING, 0))
            sums[key] = amount + each.amount, max(rounding, each.rounding)
        if self.queues is not None and (why := self.queues.admit_all((*key, *sums[key]) for key in sorted(sums))):
            return Refusal(RefusalReason.QUEUE, why)
        self.limits = left
        return None


def refused_by_gate(
    gate: Gate, pods: Mapping[str, PodShare], requested: Mapping[str, Asked], gangs: Sequence[Gang]
) -> dict[str, Refusal]:
    """For each pod that its namespace or queue would not admit, by UID, the reason. Admitted pods count for the pods
    after them.

    Order: KAI's priority, then age, then UID, as in KAI. Where namespaces have limits, pods that the capacity gate does
    not hold come first: nothing keeps their scheduler from giving them what is free. Of a gang that can start without
    some of its pods, the minimum is admitted as a whole, and the others one by one; subgroups from their own minimum. A
    pod that would not even be admitted alone is none of the minimum.
    """
    refused = _never_admitted(gate, requested, gangs)
    gate.count(requested, refused)
    bounded = gate.limits is not None and gate.limits.bounded

    def rank(uid: str) -> tuple[bool, int, str, str]:
        pod = pods[uid].pod
        return bounded and gated(pod), -requested[uid].priority, pod.creation_timestamp, uid

    for members, after in in_order(requested.keys() - refused.keys(), gangs, rank):
        if why := refused.get(after) or gate.admit([requested[uid] for uid in members]):
            refused |= dict.fromkeys(members, why)
            gate.count(requested, members)
    return refused


def _never_admitted(gate: Gate, requested: Mapping[str, Asked], gangs: Sequence[Gang]) -> dict[str, Refusal]:
    """The pods of gangs that would not be admitted alone, and all pods of gangs that cannot start without them."""
    never = {
        uid: why
        for uid in {uid for gang in gangs for uid in gang.pods if uid in requested}
        if (why := gate.why_not(requested[uid])) is not None
    }
    found = dict(never)
    for gang in gangs if never else ():
        first = next((never[uid] for uid in gang.pods if uid in never), None)
        if first is not None and gang.lacking(lambda uid: uid in requested and uid not in never):
            found |= {uid: never.get(uid, first) for uid in gang.pods if uid in requested}
    return found


def _of_namespaces(asked: Iterable[Asked]) -> Iterator[tuple[str, Milli, str, Sequence[ClaimRequest]]]:
    """Namespaces with thousandths of GPUs of a resource, and claims, that these ask for together."""
    found: dict[tuple[str, str], tuple[Milli, list[ClaimRequest]]] = {}
    for each in asked:
        key = each.namespace, each.resource
        milli, claims = found.get(key) or (0, [])
        claims += each.claims
        found[key] = milli + each.milli, claims
    return ((namespace, milli, resource, claims) for (namespace, resource), (milli, claims) in found.items())


def _beyond(namespace: str, over: str) -> Refusal:
    return Refusal(RefusalReason.NOT_ALLOWED, over, objects=((repr(namespace), "of the pod"),))
