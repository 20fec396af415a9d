"""GPUs of a node that pods get by claims, from what its drivers publish in ResourceSlices."""

from collections.abc import Iterable, Iterator
from typing import Final

from plimsoll.model.cluster import Device, Division
from plimsoll.model.dra import GPU_DRIVERS, WHOLE_GPUS, Claimable, Published, SharedDevice
from plimsoll.quantity import parse_memory_mib

_PRODUCT: Final = ("productName", "model")
"""Attributes with the name of the product: NVIDIA's and AMD's, Intel's."""


def claimed_gpus(published: Iterable[tuple[Claimable, int]]) -> Iterator[Device]:
    """The GPUs, and the MIG slices, that are published with the number of each. Other parts of GPUs are left out."""
    for claimable, count in published:
        vendor, form = GPU_DRIVERS.get(claimable.driver), claimable.text("type")
        if vendor is None or not (form in WHOLE_GPUS or form == "mig"):
            continue
        profile = claimable.text("profile") if form == "mig" else ""
        yield Device(
            product=product_of(claimable),
            memory_mib=_memory_mib(claimable),
            count=count,
            division=Division.MIG if form == "mig" else Division.WHOLE,
            resource=claimable.driver,
            profile=profile,
            vendor=vendor,
            claimable=claimable,
        )


def taken_gpus(published: Published) -> int:
    """Number of the published GPUs that no claim can get now."""
    found = claimed_gpus(published.kinds)
    return sum(published.taken_of(device.claimable) for device in found if device.claimable is not None)


def shared_gpus(published: Published) -> tuple[SharedDevice, ...]:
    """The published GPUs of which claims have parts."""
    found = claimed_gpus(published.kinds) if published.shared else ()
    return tuple(
        each for device in found if device.claimable is not None for each in published.shared_of(device.claimable)
    )


def product_of(claimable: Claimable) -> str:
    """The product as GPU Feature Discovery writes it, with dashes for spaces."""
    return next(filter(None, map(claimable.text, _PRODUCT)), "").replace(" ", "-")


def _memory_mib(claimable: Claimable) -> int | None:
    try:
        return parse_memory_mib(claimable.amount("memory")) or None
    except ValueError:
        return None
