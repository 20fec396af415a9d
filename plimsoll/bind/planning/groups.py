"""The GPU groups of a cluster with their reservation pods and share pods."""

from collections.abc import Iterable
from functools import cached_property

from plimsoll.cluster.pods import gpu_groups, is_reservation, node_of, read_request
from plimsoll.labels import MANAGED_BY, RESERVED_GPU, SHARE_BINDER, UNKNOWN_GPU, VISIBLE_DEVICES
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import ReservationSettings

GroupKey = tuple[str, str]
"""(node, group)"""


class ReservedGroup:
    """The reservations of one group on one node, and the unfinished pods in it. Finished reservations are included."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.reservations: list[Pod] = []
        self.bound: list[Pod] = []
        """Pods on the node, terminating ones too."""
        self.claimed: list[Pod] = []
        """Pods about to be bound."""

    @property
    def empty(self) -> bool:
        return not (self.bound or self.claimed)

    @cached_property
    def live(self) -> list[Pod]:
        """Reservations that hold a GPU or are about to, by name."""
        return sorted((each for each in self.reservations if is_live(each)), key=lambda pod: pod.key)

    @cached_property
    def gpu_of_pods(self) -> str:
        """UUID of the GPU that its bound pods were given; empty if they have none, or contradict each other."""
        gpus = {_given(pod, self.name) for pod in self.bound}
        return gpus.pop() if len(gpus) == 1 else ""

    @cached_property
    def consistent(self) -> bool:
        """Whether another pod may join: the reserved GPU is the one that its pods use."""
        gpu = self.gpu_of_pods
        return not self.bound or (bool(gpu) and [reserved_gpu(each) for each in self.live] == [gpu])

    def with_pod(self, pod: Pod, reserves: bool) -> "ReservedGroup":
        return self._with(*self._lists(None, pod, reserves))

    def without_pod(self, pod: Pod) -> "ReservedGroup":
        return self._with(*self._lists(pod, None, False))

    def _lists(self, gone: Pod | None, new: Pod | None, reserves: bool) -> tuple[list[Pod], list[Pod], list[Pod]]:
        kept = [[pod for pod in pods if pod is not gone] for pods in (self.reservations, self.bound, self.claimed)]
        if new is not None:
            kept[0 if reserves else 1 if new.node_name else 2].append(new)
        return kept[0], kept[1], kept[2]

    def _with(self, reservations: list[Pod], bound: list[Pod], claimed: list[Pod]) -> "ReservedGroup":
        changed = ReservedGroup(self.name)
        changed.reservations, changed.bound, changed.claimed = reservations, bound, claimed
        return changed


class ReservedGroups:
    """The groups of a cluster by node and name. Pods count as in the ledger: only those with a share, or with a request
    that cannot be read. Pods without a node do not count.

    An update costs little for unchanged pods.
    """

    def __init__(self, settings: ReservationSettings) -> None:
        self._namespaces = frozenset(settings.namespaces)
        self._gpu_resource = settings.gpu_resource
        self._pods: dict[tuple[str, str], Pod] = {}
        self.groups: dict[GroupKey, ReservedGroup] = {}

    def update(self, pods: Iterable[Pod]) -> None:
        """Updates the groups with all pods of the cluster."""
        gone = set(self._pods)
        for pod in pods:
            key = (pod.namespace, pod.name)
            gone.discard(key)
            before = self._pods.get(key)
            if before is pod:
                continue
            if before is not None:
                self._take_out(before)
            self._pods[key] = pod
            for group in self._of(pod):
                group_before = self.groups.get(group) or ReservedGroup(group[1])
                self.groups[group] = group_before.with_pod(pod, self._reserves(pod))
        for key in gone:
            self._take_out(self._pods.pop(key))

    def _take_out(self, pod: Pod) -> None:
        for group in self._of(pod):
            left = self.groups[group].without_pod(pod)
            if left.empty and not left.reservations:
                del self.groups[group]
            else:
                self.groups[group] = left

    def _of(self, pod: Pod) -> list[GroupKey]:
        node, names = node_of(pod), gpu_groups(pod)
        if not (node and names) or not (self._reserves(pod) or self._shares(pod)):
            return []
        return [(node, name) for name in names]

    def _shares(self, pod: Pod) -> bool:
        return not pod.finished and read_request(pod, self._gpu_resource).shares_gpus

    def _reserves(self, pod: Pod) -> bool:
        return is_reservation(pod, self._namespaces)


def reserved_gpu(reservation: Pod) -> str:
    """UUID of the GPU that the reservation holds; empty while it is not known."""
    uuid = reservation.annotations.get(RESERVED_GPU, "")
    return "" if uuid == UNKNOWN_GPU else uuid


def is_unknown(reservation: Pod) -> bool:
    """Whether the probe did not find the reservation's GPU in time."""
    return reservation.annotations.get(RESERVED_GPU) == UNKNOWN_GPU


def is_live(reservation: Pod) -> bool:
    """Whether the reservation holds a known GPU, or its GPU may still become known."""
    return not (reservation.finished or reservation.deleting or is_unknown(reservation))


def is_own(reservation: Pod) -> bool:
    """Whether the binder created the reservation. Those of others are never deleted."""
    return reservation.labels.get(MANAGED_BY) == SHARE_BINDER


def _given(pod: Pod, group: str) -> str:
    """The GPU that the pod was given for the group, according to its annotation."""
    groups = gpu_groups(pod)
    gpus = pod.annotations.get(VISIBLE_DEVICES, "").split(",")
    return gpus[groups.index(group)] if len(gpus) == len(groups) else ""
