"""The GPU groups of a cluster with their reservations and pods."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from plimsoll.model.gpu_group import RESERVED_GPU, UNKNOWN_GPU, VISIBLE_DEVICES
from plimsoll.model.labels import MANAGED_BY
from plimsoll.model.pod import Pod
from plimsoll.plan.gpu_groups import gpu_groups, is_reservation, selected_node
from plimsoll.plan.reservation import MANAGER

GroupKey = tuple[str, str]
"""(node, group)"""


@dataclass(slots=True)
class ReservedGroup:
    """Reservations of one group on one node, and the pods that are in it; none of them finished but reservations."""

    reservations: list[Pod] = field(default_factory=list)
    bound: list[Pod] = field(default_factory=list)
    """Pods on the node, terminating ones too."""
    claimed: list[Pod] = field(default_factory=list)
    """Pods about to be bound."""

    @property
    def live(self) -> list[Pod]:
        """Reservations that hold a GPU, or are about to, by name."""
        return sorted((each for each in self.reservations if is_live(each)), key=lambda pod: pod.key)

    @property
    def empty(self) -> bool:
        return not (self.bound or self.claimed)

    def gpu_of_pods(self, group: str) -> str:
        """The GPU that its bound pods were given; empty where they do not say, or contradict each other."""
        said = {_given(pod, group) for pod in self.bound}
        return said.pop() if len(said) == 1 else ""

    def sound(self, group: str) -> bool:
        """Whether another pod may join: what is reserved is the GPU that pods run on."""
        gpu = self.gpu_of_pods(group)
        return not self.bound or (bool(gpu) and [reserved_gpu(each) for each in self.live] == [gpu])


def reserved_groups(pods: Iterable[Pod], namespaces: Collection[str]) -> dict[GroupKey, ReservedGroup]:
    """By node and name; pods count as in the ledger, but for those that name no node."""
    groups: dict[GroupKey, ReservedGroup] = {}
    for pod in pods:
        reserves = is_reservation(pod, namespaces)
        node = pod.node_name or selected_node(pod)
        if not node or (pod.finished and not reserves):
            continue
        for name in gpu_groups(pod):
            group = groups.setdefault((node, name), ReservedGroup())
            if reserves:
                group.reservations.append(pod)
            else:
                (group.bound if pod.node_name else group.claimed).append(pod)
    return groups


def reserved_gpu(reservation: Pod) -> str:
    """Its GPU's UUID; empty while it is not known."""
    uuid = reservation.annotations.get(RESERVED_GPU, "")
    return "" if uuid == UNKNOWN_GPU else uuid


def is_unknown(reservation: Pod) -> bool:
    """Whether its GPU did not become known in time."""
    return reservation.annotations.get(RESERVED_GPU) == UNKNOWN_GPU


def is_live(reservation: Pod) -> bool:
    """Whether it holds a GPU that is known, or may become so."""
    return not (reservation.finished or reservation.deleting or is_unknown(reservation))


def is_own(reservation: Pod) -> bool:
    """Whether the binder made it: others' are never deleted."""
    return reservation.labels.get(MANAGED_BY) == MANAGER


def _given(pod: Pod, group: str) -> str:
    """What VISIBLE_DEVICES says of that group."""
    groups = gpu_groups(pod)
    gpus = pod.annotations.get(VISIBLE_DEVICES, "").split(",")
    return gpus[groups.index(group)] if len(gpus) == len(groups) else ""
