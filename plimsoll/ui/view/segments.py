"""Segments: what a part of a GPU, or of the GPUs of many nodes, is used for."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from plimsoll.cluster.ledger import GpuAccount, GpuGroup
from plimsoll.cluster.pods import PodShare
from plimsoll.cluster.queues import queue_of
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import Pod
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.text import shortlist


class Use(StrEnum):
    QUEUE = "queue"
    """Used by pods of a queue."""
    OTHER = "other"
    """Used by pods without a queue."""
    RESERVED = "reserved"
    """Reserved by a reservation pod without share pods, or for the Workspace to which the node belongs."""
    FREE = "free"
    NOT_READY = "not-ready"
    """On a node that is not ready, cordoned or being deleted."""
    REQUESTED = "requested"
    """On a node that is requested and does not exist yet."""


ORDER: Final = tuple(Use)


@dataclass(frozen=True, slots=True)
class Segment:
    use: Use
    milli: int
    """Thousandths of a GPU."""
    queue: str = ""
    pods: str = ""
    """Names of the pods, for display."""


Bar = tuple[Segment, ...]
"""The segments of one GPU, which add up to it, or of several GPUs."""


def gpu_bars(
    account: GpuAccount,
    shares: Sequence[PodShare],
    claiming: Mapping[str, Pod],
    environment: EnvironmentSpec,
    reserved: bool,
) -> tuple[Bar, ...]:
    """A bar for each GPU of a node, in the order of the account: groups, GPUs that are used as a whole, free GPUs.

    `shares` are those of the node's pods; `claiming` are those that have claims, by `namespace/name`. `reserved` is
    whether free GPUs are reserved for a Workspace.
    """
    free = Use.RESERVED if reserved else Use.FREE
    bars = [_group_bar(group, environment, free) for group in account.groups]
    whole: list[Bar] = [
        (_claimed(claim.partition("/")[0], pods, claiming, environment),)
        for claim, pods, devices in account.claims
        for _ in range(devices)
    ]
    for each in () if account.driver else shares:  # there, claims have the devices of all pods
        if each.share.whole and each.share.resource == account.vendor_resource:
            whole += [(_segment(each.pod, GPU_MILLI, environment),)] * each.share.devices
    whole += [(Segment(Use.OTHER, GPU_MILLI),)] * (account.whole - len(whole))
    pods = {claim: names for claim, names, _ in account.claims}
    for device in account.shared:
        parts = (
            _claimed(claim.partition("/")[0], pods.get(claim, ()), claiming, environment, min(GPU_MILLI, round(milli)))
            for claim, milli in device.claims
        )
        bars.append(_filled(tuple(part for part in parts if part.milli), free if device.free else Use.OTHER))
    return tuple([*bars, *whole[: account.whole], *[(Segment(free, GPU_MILLI),)] * account.free_gpus][: account.gpus])


def _claimed(
    namespace: str,
    names: Iterable[str],
    claiming: Mapping[str, Pod],
    environment: EnvironmentSpec,
    milli: int = GPU_MILLI,
) -> Segment:
    """A GPU, or a part of one, that the pods of one claim have: of the queue of the first that is known."""
    keys = [f"{namespace}/{name}" for name in names]
    queue = next((queue_of(claiming[key], environment) for key in keys if key in claiming), "")
    return Segment(Use.QUEUE if queue else Use.OTHER, milli, queue, ", ".join(keys))


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


def _group_bar(group: GpuGroup, environment: EnvironmentSpec, free: Use) -> Bar:
    if not group.members:
        return (Segment(Use.RESERVED, GPU_MILLI, pods=shortlist(group.reservations)),)
    segments = tuple(_segment(member.pod, member.milli, environment) for member in group.members)
    return _filled(segments, free if group.free_milli else Use.OTHER)


def _segment(pod: Pod, milli: Milli, environment: EnvironmentSpec) -> Segment:
    queue, counted = queue_of(pod, environment), min(GPU_MILLI, round(milli))
    return Segment(Use.QUEUE if queue else Use.OTHER, counted, queue, f"{pod.namespace}/{pod.name}")


def _filled(segments: Bar, rest: Use) -> Bar:
    left = GPU_MILLI - sum(each.milli for each in segments)
    return (*segments, Segment(rest, left)) if left > 0 else segments
