"""Chooses the node and GPU groups for a share by best fit."""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, NamedTuple

from plimsoll.cluster.ledger import GpuAccount, GpuGroup, GpuLedger
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import GPUShare, ReservationSettings
from plimsoll.model.meta import HostRequest, Placement
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.quantity import parse_bytes, parse_cpu_milli, parse_memory_mib

_GROUPS = uuid.UUID("6ba4b812-41c5-4c9e-9d1f-5d8a1b5f0c77")
"""UUID namespace for the names of new groups."""
_MOST_CHOICES: Final = 16

_Request = tuple[Placement, GPUShare, HostRequest, tuple[tuple[str, int], ...]]
"""What determines whether a pod fits a node."""


@dataclass(frozen=True, slots=True)
class ShareAssignment:
    """A node, and the names of the GPU groups on it, one for each GPU."""

    node: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoFit:
    """No node fits the share."""

    message: str
    """How many nodes lack what. Equal for equal clusters, so that it is written once."""


class HostRoom:
    """Room of nodes for pods, as the scheduler counts it: with the reservation pods that are still missing."""

    def __init__(self, ledger: GpuLedger, settings: ReservationSettings) -> None:
        self._ledger = ledger
        self._cpu = parse_cpu_milli(settings.requests.get("cpu", 0))
        self._memory = parse_memory_mib(settings.requests.get("memory", 0))

    def lacks(self, account: GpuAccount, pod: Pod, *, new: int = 0, counted: bool = False) -> str:
        """Which resource of the node is short for the pod and its `new` groups; empty if there is enough. `counted`:
        whether the account has the pod already. Who requests none of a resource needs none, even if there is less."""
        own, host = int(counted), pod.host
        if 1 + new > account.pod_room + own:
            return "without room for more pods"
        reservations = new + account.missing_reservations
        cpu = host.cpu_milli + reservations * self._cpu
        if 0 < cpu > account.cpu_milli + own * host.cpu_milli:
            return "without enough CPU"
        memory = host.memory_mib + reservations * self._memory
        if 0 < memory > account.host_memory_mib + own * host.memory_mib:
            return "without enough memory"
        for resource, amount in pod.other_requests.items():
            used = self._ledger.requested(account.node.name, resource) - own * amount
            if 0 < amount > _allocatable(account, resource) - used:
                return f"without enough {resource}"
        return ""


def _allocatable(account: GpuAccount, resource: str) -> int:
    try:
        return parse_bytes(account.node.allocatable.get(resource, 0))
    except ValueError:
        return 0


class _Fit(NamedTuple):
    """How a share fits a node; the smallest of them is the best: the fewest new GPUs, then the least capacity left on
    the GPUs that it uses."""

    new: int
    left: Milli
    free_gpus: int
    node: str
    joined: tuple[str, ...]
    """Names of the existing groups that it joins."""


class _Choice:
    """The nodes for one request. Pods with equal requests share it."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self.unread = set(nodes)
        """Nodes that have changed since they were compared with the request."""
        self._fits: dict[str, _Fit] = {}
        self._queue: list[_Fit] = []
        """A heap, the best first. Those of nodes that have changed since are in it, too."""
        self.lacks: dict[str, str] = {}
        """What nodes lack that do not fit."""

    def put(self, node: str, fit: _Fit | str) -> None:
        self._fits.pop(node, None)
        self.lacks.pop(node, None)
        if isinstance(fit, str):
            self.lacks[node] = fit
        else:
            self._fits[node] = fit
            heappush(self._queue, fit)

    def best(self) -> _Fit | None:
        """How the request fits the best node; None if it fits none."""
        while self._queue and self._fits.get(self._queue[0].node) is not self._queue[0]:
            heappop(self._queue)
        return self._queue[0] if self._queue else None


class SharePlacer:
    """Places shares on the nodes of one moment. `paused` are nodes that get no new reservation; `unjoinable` are the
    (node, group) pairs that no further pod may join."""

    def __init__(
        self,
        accounts: Iterable[GpuAccount],
        room: HostRoom,
        paused: Collection[str] = (),
        unjoinable: Collection[tuple[str, str]] = (),
    ) -> None:
        self._accounts = {account.node.name: account for account in accounts}
        self._room = room
        self._paused = paused
        self._closed = unjoinable
        self._choices: dict[_Request, _Choice] = {}
        """Of the latest requests: each takes memory for every node."""
        self._refused: dict[_Request, NoFit] = {}

    def replace(self, account: GpuAccount) -> None:
        """Replaces the account of a node that changed. Free capacity may only shrink."""
        self._accounts[account.node.name] = account
        for choice in self._choices.values():
            choice.unread.add(account.node.name)

    def place(self, pod: Pod, share: GPUShare) -> ShareAssignment | NoFit:
        """Best fit: uses as few unshared GPUs as possible, then the GPUs with the least capacity left afterwards."""
        request = (pod.placement, share, pod.host, tuple(pod.other_requests.items()))
        if request in self._refused:
            return self._refused[request]  # what did not fit does not fit later, either
        choice = self._choices.get(request)
        if choice is None:
            if len(self._choices) >= _MOST_CHOICES:
                del self._choices[next(iter(self._choices))]
            choice = self._choices[request] = _Choice(self._accounts)
        without = f"without {share} free"
        while choice.unread:
            node = choice.unread.pop()
            choice.put(node, self._fit(self._accounts[node], pod, share) or without)
        if best := choice.best():
            return ShareAssignment(best.node, tuple(sorted([*best.joined, *new_groups(pod, best.node, best.new)])))
        counted = ", ".join(f"{count} {lack}" for lack, count in sorted(Counter(choice.lacks.values()).items()))
        why = f"0/{len(self._accounts)} nodes are available{f': {counted}' if counted else ''}"
        return self._refused.setdefault(request, NoFit(why))

    def _fit(self, account: GpuAccount, pod: Pod, share: GPUShare) -> _Fit | str:
        """What the node lacks if the pod does not fit; empty: a GPU."""
        if lack := unsuitable_because(account, pod):
            return lack
        if account.memory_mib is None and share.memory_mib is not None:
            return ""
        milli = share.milli_of(account.memory_mib or 0)
        if milli > GPU_MILLI:
            return ""
        node = account.node.name
        joined = sorted(
            (group.free_milli, group.name)
            for group in account.groups
            if group.joinable
            and group.free_milli >= milli
            and exists(account, group)
            and (node, group.name) not in self._closed
        )[: share.devices]
        new = share.devices - len(joined)
        if new > (0 if node in self._paused else account.free_gpus):
            return ""
        left = sum(free - milli for free, _ in joined) + new * (GPU_MILLI - milli)
        fit = _Fit(new, left, account.free_gpus, node, tuple(name for _, name in joined))
        return self._room.lacks(account, pod, new=new) or fit


def exists(account: GpuAccount, group: GpuGroup) -> bool:
    """Whether the node has the group's GPU, or one is left for it. If pods use more GPUs than the node has, as one with
    a request that cannot be read seems to, only GPUs that reservations hold are known to exist."""
    return account.taken <= account.gpus or bool(group.gpu)


def new_groups(pod: Pod, node: str, count: int) -> list[str]:
    """Names of the new groups of a pod. They depend on the pod and node only, so that a repeated attempt creates no
    further groups."""
    return [str(uuid.uuid5(_GROUPS, f"{pod.uid}/{node}/{number}")) for number in range(count)]


def unsuitable_because(account: GpuAccount, pod: Pod) -> str:
    """Why the pod cannot run on the node; empty if it can."""
    node = account.node
    if not account.gpus:
        return "without GPUs"
    if node.deleting or node.ready is False:
        return "not ready"
    if node.unschedulable:
        return "cordoned"
    if not account.shareable:
        return "with devices that are not whole GPUs"
    if not pod.placement.allows(node.labels, node.name):
        return "not matching the node selector or affinity"
    if pod.placement.untolerated_taints(node.taints):
        return "with a taint that is not tolerated"
    return ""


def by_priority(pods: Sequence[Pod]) -> list[Pod]:
    """Pods with higher priority first, then older ones."""
    return sorted(pods, key=lambda pod: (-pod.priority, pod.creation_timestamp, pod.namespace, pod.name))
