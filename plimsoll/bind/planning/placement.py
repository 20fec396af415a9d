"""Placement of a share: the node and the GPU groups with the best fit, or why there are none."""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from plimsoll.cluster.ledger import GpuAccount
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import GPUShare, ReservationSettings
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.quantity import parse_cpu_milli, parse_memory_mib

_GROUPS = uuid.UUID("6ba4b812-41c5-4c9e-9d1f-5d8a1b5f0c77")
"""Names of new groups are made in this namespace of UUIDs."""


@dataclass(frozen=True, slots=True)
class ShareSpot:
    """A node, and the group of each GPU, by name."""

    node: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoSpot:
    """No node takes the share."""

    message: str
    """The same while the cluster is the same: how many nodes lack what."""


class SharePlacement:
    """Places shares on the nodes of one moment. `held` are nodes that get no new reservation; `closed` are
    (node, group) that nobody may join."""

    def __init__(
        self,
        accounts: Iterable[GpuAccount],
        settings: ReservationSettings,
        held: Collection[str] = (),
        closed: Collection[tuple[str, str]] = (),
    ) -> None:
        self._accounts = {account.node.name: account for account in accounts}
        self._cpu = parse_cpu_milli(settings.requests.get("cpu", 0))
        self._memory = parse_memory_mib(settings.requests.get("memory", 0))
        self._held = held
        self._closed = closed

    def replace(self, account: GpuAccount) -> None:
        """Takes the account of a node that changed."""
        self._accounts[account.node.name] = account

    def place(self, pod: Pod, share: GPUShare) -> ShareSpot | NoSpot:
        """Best fit: on as few GPUs that nobody shares yet as it can be, then where least is left over."""
        best: tuple[tuple[int, Milli, int, str], tuple[str, ...]] | None = None
        lacks: Counter[str] = Counter()
        for account in self._accounts.values():
            lack = keeps_away(account, pod)
            fit = None if lack else self._fit(account, pod, share)
            if fit is not None:
                lack = self._short_of_host(account, pod, new=fit[0][0])
            if fit is None or lack:
                lacks[lack or f"without {share} free"] += 1
            elif best is None or fit < best:
                best = fit
        if best is not None:
            return ShareSpot(best[0][3], best[1])
        counted = ", ".join(f"{count} {lack}" for lack, count in sorted(lacks.items()))
        return NoSpot(f"0/{len(self._accounts)} nodes are available{f': {counted}' if counted else ''}")

    def _fit(
        self, account: GpuAccount, pod: Pod, share: GPUShare
    ) -> tuple[tuple[int, Milli, int, str], tuple[str, ...]] | None:
        """How well the node suits, less being better, with the groups; None where it does not."""
        if account.memory_mib is None and share.memory_mib is not None:
            return None
        milli = share.milli_of(account.memory_mib or 0)
        if milli > GPU_MILLI or account.taken > account.gpus:
            return None
        node = account.node.name
        joined = sorted(
            (group.free_milli, group.name)
            for group in account.groups
            if group.free_milli >= milli and (node, group.name) not in self._closed
        )[: share.devices]
        new = share.devices - len(joined)
        if new > (0 if node in self._held else account.free_gpus):
            return None
        left = sum(free - milli for free, _ in joined) + new * (GPU_MILLI - milli)
        groups = [name for _, name in joined] + new_groups(pod, node, new)
        return (new, left, account.free_gpus, node), tuple(sorted(groups))

    def _short_of_host(self, account: GpuAccount, pod: Pod, new: int) -> str:
        """As the scheduler counts the node's resources, with the reservations of the pod's `new` groups and of those
        that wait for theirs; empty where there is enough."""
        if 1 + new > account.pod_room:
            return "without room for more pods"
        reservations = new + account.reservations_to_come
        if pod.host.cpu_milli + reservations * self._cpu > account.cpu_milli:
            return "without enough CPU"
        if pod.host.memory_mib + reservations * self._memory > account.host_memory_mib:
            return "without enough memory"
        return ""


def new_groups(pod: Pod, node: str, count: int) -> list[str]:
    """Names for groups that a pod begins: the same each time, so that a repeated try makes nothing twice."""
    return [str(uuid.uuid5(_GROUPS, f"{pod.uid}/{node}/{number}")) for number in range(count)]


def keeps_away(account: GpuAccount, pod: Pod) -> str:
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
    if pod.placement.kept_away(node.taints):
        return "with a taint that is not tolerated"
    return ""


def by_turn(pods: Sequence[Pod]) -> list[Pod]:
    """Higher priority first, then the older."""
    return sorted(pods, key=lambda pod: (-pod.priority, pod.creation_timestamp, pod.namespace, pod.name))
