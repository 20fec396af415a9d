"""Chooses the node and GPU groups for a share by best fit, or breadth first."""

import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeVar

from plimsoll.bind.planning.free_gpus import FreeGpuIndex, FreeGpus, milli_of
from plimsoll.cluster.ledger import GpuAccount, GpuGroup, GpuLedger
from plimsoll.cluster.pools import PACKED, Strategies
from plimsoll.labels import NODEPOOL
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import GPUShare, ReservationSettings
from plimsoll.model.meta import EPHEMERAL_STORAGE, HostRequest, Placement
from plimsoll.packing import GPU_MILLI, Milli, exact_milli
from plimsoll.quantity import parse_bytes, parse_cpu_milli, parse_memory_mib

_GROUPS = uuid.UUID("6ba4b812-41c5-4c9e-9d1f-5d8a1b5f0c77")
"""UUID namespace for the names of new groups."""
_MOST_KEPT: Final = 16

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_Host = tuple[HostRequest, tuple[tuple[str, int], ...]]
"""Requests of resources other than GPUs."""
_Request = tuple[Placement, GPUShare, _Host]
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
        self._storage = parse_memory_mib(settings.requests.get(EPHEMERAL_STORAGE, 0))

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
        storage = host.storage_mib + reservations * self._storage
        if 0 < storage > account.storage_mib + own * host.storage_mib:
            return f"without enough {EPHEMERAL_STORAGE}"
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
    """How a share fits a node; the smallest of them is the best."""

    rank: tuple[Milli, ...]
    """The fewest new GPUs first, then the least capacity left on the GPUs that it uses. Then nodes where pods are
    spread, the largest part of their GPUs free first."""
    node: str
    new: int
    joined: tuple[str, ...]
    """Names of the existing groups that it joins."""


class _Suitable(NamedTuple):
    """The nodes that may run pods of one placement, whatever is free on them."""

    nodes: frozenset[str]
    others: Counter[str]
    """Why the other nodes may not, and how many."""


class _Choice:
    """The nodes for one request. Pods with equal requests share it."""

    def __init__(self, nodes: frozenset[str]) -> None:
        self._nodes = nodes
        self.unread = set(nodes)
        """Nodes that have changed since they were compared with the request."""
        self._fits: dict[str, _Fit] = {}
        self._queue: list[_Fit] = []
        """A heap, the best first. Those of nodes that have changed since are in it, too."""
        self.lacks: dict[str, str] = {}
        """What nodes lack that have the GPUs."""

    def changed(self, node: str) -> None:
        if node in self._nodes:
            self.unread.add(node)

    def put(self, node: str, fit: _Fit | str | None) -> None:
        """None: the node does not have the GPUs."""
        self._fits.pop(node, None)
        self.lacks.pop(node, None)
        if isinstance(fit, str):
            self.lacks[node] = fit
        elif fit is not None:
            self._fits[node] = fit
            heappush(self._queue, fit)

    def best(self) -> _Fit | None:
        """How the request fits the best node; None if it fits none."""
        while self._queue and self._fits.get(self._queue[0].node) is not self._queue[0]:
            heappop(self._queue)
        return self._queue[0] if self._queue else None


class SharePlacer:
    """Places shares on the nodes of one moment. `paused` are nodes that get no new reservation; `unjoinable` are the
    (node, group) pairs that no further pod may join.

    A share of one GPU is tried on the nodes that have a GPU for it, the best first, until one has room. A share of
    several GPUs is compared with all nodes, and each share if pods are spread on some of them (`strategies`).
    """

    def __init__(
        self,
        accounts: Iterable[GpuAccount],
        room: HostRoom,
        paused: Collection[str] = (),
        unjoinable: Collection[tuple[str, str]] = (),
        strategies: Strategies = PACKED,
    ) -> None:
        self._accounts = {account.node.name: account for account in accounts}
        self._spread = frozenset(
            name
            for name, account in self._accounts.items()
            if strategies.spread_on(account.node.labels.get(NODEPOOL, ""), {})
        )
        """Nodes on which pods are spread."""
        self._room = room
        self._paused = paused
        self._closed = unjoinable
        self._suitable: dict[Placement, _Suitable] = {}
        self._same_nodes: dict[frozenset[str], frozenset[str]] = {}
        """Most placements allow the same nodes as another one: each set is kept once."""
        # Of the latest requests only, because each takes memory for every node.
        self._lacks: dict[tuple[_Host, int], dict[str, str]] = {}
        """What nodes lack of CPU and others for a pod that shares this many further GPUs; empty: nothing."""
        self._choices: dict[_Request, _Choice] = {}
        """For shares of several GPUs."""
        self._refused: dict[_Request, NoFit] = {}

    def replace(self, account: GpuAccount) -> None:
        """Replaces the account of a node that changed. Free capacity may only shrink."""
        name = account.node.name
        self._index.remove(self._free[name])
        self._accounts[name] = account
        self._free[name] = self._read(account)
        self._index.add(self._free[name])
        for lacks in self._lacks.values():
            lacks.pop(name, None)
        for choice in self._choices.values():
            choice.changed(name)

    def place(self, pod: Pod, share: GPUShare) -> ShareAssignment | NoFit:
        """Best fit: uses as few unshared GPUs as possible, then the GPUs with the least capacity left afterwards. Where
        pods are spread, the GPUs with the most capacity."""
        request = (pod.placement, share, (pod.host, tuple(pod.other_requests.items())))
        if request in self._refused:
            return self._refused[request]  # what did not fit does not fit later, either
        suitable = self._suitable.get(pod.placement) or self._read_suitable(pod)
        best = self._best_of_several if share.devices > 1 or self._spread else self._best_of_one
        found = best(request, pod, suitable.nodes)
        if isinstance(found, _Fit):
            return ShareAssignment(found.node, tuple(sorted([*found.joined, *new_groups(pod, found.node, found.new)])))
        counts = suitable.others + Counter(found)
        counts[f"without {share} free"] += len(suitable.nodes) - len(found)
        counted = ", ".join(f"{count} {lack}" for lack, count in sorted(counts.items()) if count)
        why = f"0/{len(self._accounts)} nodes are available{f': {counted}' if counted else ''}"
        return self._refused.setdefault(request, NoFit(why))

    def _best_of_one(self, request: _Request, pod: Pod, suitable: Collection[str]) -> _Fit | Collection[str]:
        """The best fit; else what each suitable node lacks that has a GPU for the share."""
        _, share, host = request
        known = [_of_latest(self._lacks, (host, new), dict[str, str]) for new in (0, 1)]
        without: dict[str, str] = {}
        for name, new in self._index.fitting(share):
            if name in suitable and name not in without:
                lack = known[new].get(name)
                if lack is None:
                    lack = known[new][name] = self._room.lacks(self._accounts[name], pod, new=new)
                if not lack:
                    return _fit(self._free[name], share) or ()
                without[name] = lack
        return without.values()

    def _best_of_several(self, request: _Request, pod: Pod, suitable: frozenset[str]) -> _Fit | Collection[str]:
        """As `_best_of_one`."""
        choice = _of_latest(self._choices, request, lambda: _Choice(suitable))
        while choice.unread:
            name = choice.unread.pop()
            fit = _fit(self._free[name], request[1])
            choice.put(name, fit and (self._room.lacks(self._accounts[name], pod, new=fit.new) or fit))
        return choice.best() or choice.lacks.values()

    def _read_suitable(self, pod: Pod) -> _Suitable:
        found = {name: unsuitable_because(account, pod) for name, account in self._accounts.items()}
        nodes = frozenset(name for name, why in found.items() if not why)
        suitable = _Suitable(self._same_nodes.setdefault(nodes, nodes), Counter(filter(None, found.values())))
        return self._suitable.setdefault(pod.placement, suitable)

    @cached_property
    def _free(self) -> dict[str, FreeGpus]:
        return {name: self._read(account) for name, account in self._accounts.items()}

    @cached_property
    def _index(self) -> FreeGpuIndex:
        return FreeGpuIndex(self._free.values())

    def _read(self, account: GpuAccount) -> FreeGpus:
        node = account.node.name
        joinable = sorted(
            (group.free_milli, group.name)
            for group in account.groups
            if group.joinable and exists(account, group) and (node, group.name) not in self._closed
        )
        new = 0 if node in self._paused else account.free_gpus
        return FreeGpus(account, tuple(joinable), new, node in self._spread)


def _fit(free: FreeGpus, share: GPUShare) -> _Fit | None:
    """How the share fits the GPUs of a node; None if it does not."""
    account = free.account
    milli = milli_of(share, account.memory_mib)
    if milli is None:
        return None
    able = free.joinable[bisect_left(free.joinable, (milli, "")) :]
    joined = able[::-1][: max(0, share.devices - free.new)] if free.spread else able[: share.devices]
    new = share.devices - len(joined)
    if new > free.new:
        return None
    if free.spread:
        rank: tuple[Milli, ...] = (share.devices + 1, -exact_milli(sum(account.free_milli), account.gpus))
    else:
        rank = (new, sum(amount - milli for amount, _ in joined) + new * (GPU_MILLI - milli), account.free_gpus)
    return _Fit(rank, account.node.name, new, tuple(name for _, name in joined))


def _of_latest(known: dict[K, V], key: K, make: Callable[[], V]) -> V:
    """The value of a key; only those of the latest keys are kept."""
    found = known.get(key)
    if found is None:
        if len(known) >= _MOST_KEPT:
            del known[next(iter(known))]
        found = known[key] = make()
    return found


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
