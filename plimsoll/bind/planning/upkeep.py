"""The steps for existing reservations that failed, are late, are no longer needed, or were deleted while their pods
run.

A reservation that was deleted while pods run is created again. The device plugin chooses its GPU. As long as this is
not the GPU of the pods, the reservation is kept, so that the next one gets another GPU; when one holds the right GPU,
the others are deleted. If the node has no free GPU left, another pod has the right one: the reservations are deleted,
and the pods are evicted. As long as PodDisruptionBudgets keep them, the right GPU is rarely tried for again, because
that takes every free GPU of the node for a moment. On each node, groups are repaired one after the other, because two
of them could otherwise get each other's GPU.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping
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
            yield from self._of_bound(node, groups[(node, name)])

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

    def _of_bound(self, node: str, group: ReservedGroup) -> Iterator[BindStep]:
        running = _Running(node, group, self.late)
        if not running.as_bound_by(self._settings.scheduler_name):
            return
        if running.is_reserved:
            self._lost.pop(running.key, None)
            yield from self._without_wrong_ones(running)
        elif running.has_moved:
            return
        elif running.key in self._lost:
            yield from self._given_up(running)
        elif node not in self._repairing:
            self._repairing.add(node)
            if running.settled:
                yield from self._of_unreserved(running)

    def _without_wrong_ones(self, running: "_Running") -> Iterator[BindStep]:
        for other in running.live:
            if is_own(other) and reserved_gpu(other) != running.gpu:
                self._freeing.add(running.node)
                why = f"it does not hold {running.gpu}, on which the pods run"
                yield DeleteReservation(other, why, group_is_empty=False)

    def _of_unreserved(self, running: "_Running") -> Iterator[BindStep]:
        account = self._ledger.account(running.node)
        if account is None or account.node.ready is False:
            return
        if _unreserved(account) > 0 and not any(each.finished for each in running.reservations):
            if account.free_pods > 0:  # otherwise the kubelet would reject it, which is no reason to evict
                yield Reserve(*running.key, running.pods[0], self._free_attempt(running))
        elif running.node not in self._freeing:
            self._lost[running.key] = self._now + self._settings.hold_limit_seconds
            yield from self._given_up(running)

    def _given_up(self, running: "_Running") -> Iterator[BindStep]:
        for pod in running.pods:
            yield Evict(
                pod, f"its GPU {running.gpu} on {running.node} is no longer reserved, and is assigned to another pod"
            )
        for other in running.live:
            if is_own(other):
                self._freeing.add(running.node)
                yield DeleteReservation(other, "another pod has the GPU of its group", group_is_empty=False)

    def _free_attempt(self, running: "_Running") -> int:
        taken = {reservation.name for reservation in running.reservations}
        attempt = 0
        while reservation_name(self._settings.reservation, *running.key, attempt) in taken:
            attempt += 1
        return attempt


class _Running:
    """A group with bound pods: the pods that stay, the GPU that they all were given, empty if none or several, and the
    reservations that hold a GPU or are not late in telling theirs."""

    def __init__(self, node: str, group: ReservedGroup, late: Container[str]) -> None:
        self.node = node
        self.key = (node, group.name)
        self.gpu = group.gpu_of_pods
        self.pods = [pod for pod in group.bound if not pod.deleting]
        self.reservations = group.reservations
        self.live = [reservation for reservation in group.live if reservation.uid not in late]

    def as_bound_by(self, scheduler_name: str) -> bool:
        return bool(self.pods and self.gpu) and all(pod.scheduler_name == scheduler_name for pod in self.pods)

    @property
    def is_reserved(self) -> bool:
        return any(reserved_gpu(reservation) == self.gpu for reservation in self.live)

    @property
    def has_moved(self) -> bool:
        """Whether somebody changed the annotation of a pod: it runs on the GPU of one of the reservations."""
        return any(_was_given(reservation, pod) for reservation in self.live for pod in self.pods)

    @property
    def settled(self) -> bool:
        """Whether no reservation is about to get, or to free, its GPU."""
        return all(reserved_gpu(reservation) for reservation in self.live) and not any(
            reservation.deleting for reservation in self.reservations
        )


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
