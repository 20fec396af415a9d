"""Segments: what a part of a GPU, or of the GPUs of many nodes, is used for."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from plimsoll.cluster.ledger import GpuAccount, GpuGroup
from plimsoll.cluster.pods import ASSUMED_MILLI, PodShare
from plimsoll.cluster.queues import queue_of
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI
from plimsoll.text import shortlist


class Use(StrEnum):
    QUEUE = "queue"
    """By pods of a queue."""
    OTHER = "other"
    """By pods of no queue."""
    RESERVED = "reserved"
    """By a reservation pod without shares, or for the Workspace that the node belongs to."""
    FREE = "free"
    NOT_READY = "not-ready"
    """On a node that is unready, cordoned or being deleted."""
    REQUESTED = "requested"
    """On a node that is to come."""


ORDER: Final = tuple(Use)


@dataclass(frozen=True, slots=True)
class Segment:
    use: Use
    milli: int
    """Thousandths of a GPU."""
    queue: str = ""
    pods: str = ""
    """For people."""


Bar = tuple[Segment, ...]
"""Adds up to one GPU."""


def gpu_bars(account: GpuAccount, shares: Sequence[PodShare], scheduler: str, reserved: bool) -> tuple[Bar, ...]:
    """A bar for each GPU of a node, in the order of the account: groups, GPUs in whole use, free GPUs.

    `shares` are those of the node's pods, `scheduler` the one that reads queues; `reserved`: what is free belongs to a
    Workspace.
    """
    by_name = {f"{each.pod.namespace}/{each.pod.name}": each for each in shares}
    free = Use.RESERVED if reserved else Use.FREE
    bars = [_group_bar(group, by_name, account.memory_mib, scheduler, free) for group in account.groups]
    grouped = {name for group in account.groups for name in group.pods}
    ungrouped = [each for name, each in by_name.items() if name not in grouped]
    whole: list[Bar] = []
    for each in ungrouped:
        segment = _segment(each.pod, milli_of(each.share, account.memory_mib), scheduler)
        whole += [_filled((segment,), Use.OTHER)] * each.share.devices
    whole += [(Segment(Use.OTHER, GPU_MILLI),)] * (account.whole - len(whole))
    return tuple([*bars, *whole[: account.whole], *[(Segment(free, GPU_MILLI),)] * account.free_gpus][: account.gpus])


def milli_of(share: GPUShare, memory_mib: int | None) -> int:
    """Thousandths of one GPU."""
    if share.milli is not None:
        return round(share.milli)
    return min(GPU_MILLI, round(share.milli_of(memory_mib))) if memory_mib else ASSUMED_MILLI


def summed(bars: Iterable[Bar]) -> dict[tuple[Use, str], int]:
    """Thousandths by use and queue."""
    found: Counter[tuple[Use, str]] = Counter()
    for bar in bars:
        for segment in bar:
            found[segment.use, segment.queue] += segment.milli
    return found


def in_order(amounts: dict[tuple[Use, str], int]) -> Bar:
    """One bar of these amounts, by use, then queue."""
    found = sorted(amounts.items(), key=lambda each: (ORDER.index(each[0][0]), each[0][1]))
    return tuple(Segment(use, milli, queue) for (use, queue), milli in found if milli)


def _group_bar(group: GpuGroup, by_name: dict[str, PodShare], memory_mib: int | None, scheduler: str, free: Use) -> Bar:
    segments = [
        _segment(each.pod, milli_of(each.share, memory_mib), scheduler)
        for name in group.pods
        if (each := by_name.get(name)) is not None
    ]
    if not group.pods:
        return (Segment(Use.RESERVED, GPU_MILLI, pods=shortlist(group.reservations)),)
    return _filled(tuple(segments), free if group.joinable else Use.OTHER)


def _segment(pod: Pod, milli: int, scheduler: str) -> Segment:
    queue = queue_of(pod, scheduler)
    return Segment(Use.QUEUE if queue else Use.OTHER, milli, queue, f"{pod.namespace}/{pod.name}")


def _filled(segments: Bar, rest: Use) -> Bar:
    left = GPU_MILLI - sum(each.milli for each in segments)
    return (*segments, Segment(rest, left)) if left > 0 else segments
