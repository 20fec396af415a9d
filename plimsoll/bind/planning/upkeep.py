"""The steps for existing reservations that failed, are late, are no longer needed, or were deleted while their pods
run.

A reservation that was deleted while pods run is created again. The device plugin chooses its GPU. As long as this is
not the GPU of the pods, the reservation is kept, so that the next one gets another GPU; when one holds the right GPU,
the others are deleted. If the node has no free GPU left, another pod has the right one: the reservations are deleted,
and the pods are evicted. As long as PodDisruptionBudgets keep them, the right GPU is rarely tried for again, because
that takes every free GPU of the node for a moment. On each node, groups are repaired one after the other, because two
of them could otherwise get each other's GPU.
"""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import cached_property

from plimsoll.bind.planning.backoff import FirstSeen, NodeBackoff
from plimsoll.bind.planning.groups import GroupKey, ReservedGroup, is_own, is_unknown, reserved_gpu
from plimsoll.bind.planning.reservation import reservation_name
from plimsoll.bind.planning.steps import BindStep, DeleteReservation, Evict, MarkUnknown, Reserve
from plimsoll.cluster.ledger import GpuAccount, GpuLedger
from plimsoll.labels import VISIBLE_DEVICES
from plimsoll.model.api import BinderSettings
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import condition_of


class ReservationUpkeep:
    """The steps for the reservations of one moment. `lost` are groups whose GPU was assigned to another pod, and until
    when they are not repaired."""

    def __init__(
        self,
        settings: BinderSettings,
        ledger: GpuLedger,
        *,
        backoff: NodeBackoff,
        seen: FirstSeen,
        lost: MutableMapping[GroupKey, float],
        now: float,
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._backoff = backoff
        self._seen = seen
        self._lost = lost
        self._now = now
        self._repairing: set[str] = set()
        """Nodes on which a group is being repaired."""
        self._freeing: set[str] = set()
        """Nodes on which a reservation is about to free its GPU."""
        self.late: set[str] = set()
        """UIDs of reservations of others whose GPU did not become known in time."""

    def steps(self, groups: Mapping[GroupKey, ReservedGroup], pods: Iterable[Pod]) -> Iterator[BindStep]:
        """`pods` are all pods of the cluster."""
        in_use = _GpusInUse(pods, self._settings.scheduler_name)
        for (node, name), group in sorted(groups.items()):
            for reservation in group.reservations:
                if reservation.deleting:
                    self._freeing.add(node)
                else:
                    yield from self._of_reservation(node, group, reservation)
            if group.empty:
                yield from self._of_empty(node, name, group, in_use)
        # The group that holds wrong GPUs is repaired first, which frees them.
        bound = [(not group.reservations or group.consistent, key) for key, group in groups.items() if group.bound]
        for _, (node, name) in sorted(bound):
            yield from self._of_bound(node, name, groups[(node, name)])

    def _of_reservation(self, node: str, group: ReservedGroup, reservation: Pod) -> Iterator[BindStep]:
        if reservation.finished:
            self._backoff.failed(node, reservation.uid, self._now)
            if is_own(reservation):
                yield DeleteReservation(reservation, f"it ended as {reservation.phase}", group_is_empty=False)
        elif is_unknown(reservation):
            self._backoff.failed(node, reservation.uid, self._now)
            if is_own(reservation) and not group.bound:
                yield DeleteReservation(reservation, "its GPU did not become known in time", group_is_empty=False)
        elif reserved_gpu(reservation):
            # Once: a reservation that has its GPU says nothing about those that the node refuses now.
            if self._seen.begins(("known", reservation.uid)):
                self._backoff.succeeded(node)
        elif self._seen.lasted(reservation.uid, self._settings.reservation.deadline_seconds, self._now):
            self._backoff.failed(node, reservation.uid, self._now)
            if is_own(reservation):
                yield MarkUnknown(reservation)
            else:
                self.late.add(reservation.uid)

    def _of_empty(self, node: str, name: str, group: ReservedGroup, in_use: "_GpusInUse") -> Iterator[BindStep]:
        own = [each for each in group.live if is_own(each)]
        if own and self._seen.lasted((node, name), self._settings.reservation.grace_seconds, self._now):
            for reservation in own:
                if not in_use.has(node, reserved_gpu(reservation)):
                    yield DeleteReservation(reservation, "no pod of its group is left")

    def _of_bound(self, node: str, name: str, group: ReservedGroup) -> Iterator[BindStep]:
        pods = [pod for pod in group.bound if not pod.deleting]
        gpu = group.gpu_of_pods
        if not (pods and gpu and all(pod.scheduler_name == self._settings.scheduler_name for pod in pods)):
            return
        live = [each for each in group.live if each.uid not in self.late]
        if any(reserved_gpu(each) == gpu for each in live):
            for other in live:
                if is_own(other) and reserved_gpu(other) != gpu:
                    self._freeing.add(node)
                    yield DeleteReservation(
                        other, f"it does not hold {gpu}, on which the pods run", group_is_empty=False
                    )
            self._lost.pop((node, name), None)
            return
        if any(_was_given(each, pod) for each in live for pod in pods):
            return  # somebody changed the annotation of the pod: it runs on the GPU of this reservation
        if (node, name) in self._lost:
            yield from self._given_up(node, gpu, pods, live)
            return
        if node in self._repairing:
            return
        self._repairing.add(node)
        if any(not reserved_gpu(each) for each in live) or any(each.deleting for each in group.reservations):
            return
        account = self._ledger.account(node)
        if account is None or account.node.ready is False:
            return
        if _unreserved(account) > 0 and not any(each.finished for each in group.reservations):
            if account.free_pods > 0:  # otherwise the kubelet would reject it, which is no reason to evict
                yield Reserve(node, name, pods[0], self._free_attempt(node, name, group))
            return
        if node in self._freeing:
            return
        self._lost[(node, name)] = self._now + self._settings.hold_limit_seconds
        yield from self._given_up(node, gpu, pods, live)

    def _given_up(self, node: str, gpu: str, pods: list[Pod], live: list[Pod]) -> Iterator[BindStep]:
        for pod in pods:
            yield Evict(pod, f"its GPU {gpu} on {node} is no longer reserved, and is assigned to another pod")
        for other in live:
            if is_own(other):
                self._freeing.add(node)
                yield DeleteReservation(other, "another pod has the GPU of its group", group_is_empty=False)

    def _free_attempt(self, node: str, name: str, group: ReservedGroup) -> int:
        taken = {each.name for each in group.reservations}
        attempt = 0
        while reservation_name(self._settings.reservation, node, name, attempt) in taken:
            attempt += 1
        return attempt


class _GpusInUse:
    """The GPUs that running pods were given by the binder, by their annotation; found when one is asked for. Anyone who
    may change a pod can take it out of its group, and it still uses the GPU."""

    def __init__(self, pods: Iterable[Pod], scheduler_name: str) -> None:
        self._pods = pods
        self._scheduler_name = scheduler_name

    def has(self, node: str, gpu: str) -> bool:
        return bool(gpu) and (node, gpu) in self._found

    @cached_property
    def _found(self) -> frozenset[tuple[str, str]]:
        ours = (pod for pod in self._pods if pod.scheduler_name == self._scheduler_name and pod.node_name)
        return frozenset(
            (pod.node_name, gpu)
            for pod in ours
            if not pod.finished
            for gpu in pod.annotations.get(VISIBLE_DEVICES, "").split(",")
        )


def _was_given(reservation: Pod, pod: Pod) -> bool:
    """Whether the pod was bound while the reservation held its GPU. Within the same second the order is not known."""
    bound, created = condition_of(pod.conditions, "PodScheduled"), reservation.creation_timestamp
    if bound is None or bound.status != "True" or not (created and reserved_gpu(reservation)):
        return False
    return created < bound.last_transition_time


def _unreserved(account: GpuAccount) -> int:
    """Number of GPUs that the device plugin can assign, including those of groups without a reservation."""
    lost = sum(not group.holders and not group.joinable for group in account.groups)
    return account.gpus - account.taken + lost
