"""NVIDIA's Multi-Instance GPU (MIG): profiles such as `2g.24gb` (two compute slices with 24 GB), and their labels.

GPU Feature Discovery labels slices by `mig.strategy`. `single`: all GPUs of the node have one profile, which is a
suffix of the product (`-MIG-1g.10gb`); gpu.count and gpu.memory are those of the slices, which pods request as GPUs.
`mixed`: each profile has `nvidia.com/mig-<profile>.count`, `.memory` and `.product`, and is an extended resource.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from plimsoll.cluster.profiles.gpu_labels import GPU_REPLICAS, MIG_CONFIG_STATE, MIG_STRATEGY
from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT, MIG_CONFIG, MIG_PREFIX
from plimsoll.model.cluster import MIB_PER_GIB, Device, Division, InvalidFigureError
from plimsoll.quantity import parse_devices

ALL_DISABLED: Final = "all-disabled"
CHANGING: Final = ("pending", "rebooting", "failed")
"""Values of `mig.config.state` while a node's devices are not as configured."""

# `+me` and `+gfx` add media engines or graphics, `-me` has none, and the memory is the same. Labels have a dot for the
# plus.
_PROFILE: Final = re.compile(r"([1-7])g\.([1-9][0-9]{0,3})gb(?:[.+-][a-z.]+)?")
_SLICE: Final = re.compile(rf"{re.escape(MIG_PREFIX)}([1-7]g\.[1-9][0-9]{{0,3}}gb(?:\.me|\.gfx|\.all|-me)*)\.count")
_RESOURCE: Final = re.compile(rf"{re.escape(MIG_PREFIX)}([1-7])g\.[1-9][0-9]{{0,3}}gb.*")
_SINGLE: Final = re.compile(r".+-MIG-([1-7]g\.[1-9][0-9]{0,3}gb(?:[.+-][a-z.]+)?)(?:-SHARED)?")
_LEAST_NINTHS: Final = 8
"""Ninths of a GiB that a slice has for each gigabyte of its profile's name: 16384 MiB of `1g.18gb` (H200), the least of
the profiles that drivers list (tests/probing/gpus). Others have more, such as 9984 MiB of `1g.10gb` (H100)."""
_COUNT: Final = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class MigLabels:
    """The MIG labels of a node."""

    config: str
    state: str
    single: bool
    """The node's GPUs have one profile, and its slices are offered as GPUs."""
    slices: tuple[Device, ...]
    """By profile. Of strategy `single`, without a resource: pods request slices as GPUs. The memory of one is that of
    its label, else by the profile's name."""

    @property
    def changing(self) -> bool:
        """Whether its configuration is being applied, or failed."""
        return self.state in CHANGING

    @property
    def active(self) -> bool:
        """Whether GPUs are partitioned: slices are labelled, or a configuration was applied (KAITO's rule)."""
        return bool(self.slices) or (self.config not in ("", ALL_DISABLED) and self.state == "success")

    def __str__(self) -> str:
        """The configuration and the profiles, for messages."""
        profiles = ", ".join(each.profile for each in self.slices)
        configured = f" by {MIG_CONFIG}={self.config}" if self.config else ""
        return f"partitioned by MIG{configured}{f' into {profiles}' if profiles else ''}"


def profile_of(resource: str) -> str:
    """The MIG profile that an extended resource names, as labels spell it; empty if it names none."""
    profile = resource.removeprefix(MIG_PREFIX)
    return profile if resource.startswith(MIG_PREFIX) and _PROFILE.fullmatch(profile) else ""


def mig_slice(profile: str, product: str = "") -> Device:
    """One slice of that profile, which a replica must fit, because a model is not split over slices.

    It has the memory of `slice_mib`. Raises InvalidFigureError if it is not a profile.
    """
    return Device(product, slice_mib(profile), 1, Division.MIG)


def label_form(profile: str) -> str:
    """The profile as labels and resources spell it: `1g.10gb+me` is `1g.10gb.me`."""
    return profile.strip().casefold().replace("+", ".")


def single_profile(product: str) -> str:
    """The profile at the end of a product's name with strategy `single`; empty if there is none."""
    match = _SINGLE.fullmatch(product)
    return match[1] if match else ""


def parse_mig_labels(labels: Mapping[str, str]) -> MigLabels:
    """The MIG labels of a node. An invalid number counts as missing."""
    profile = single_profile(labels.get(GPU_PRODUCT, ""))
    if profile:
        count = _number(labels, GPU_COUNT)
        memory = _number(labels, GPU_MEMORY) or slice_mib(profile)
        replicas = max(1, _number(labels, GPU_REPLICAS))
        slices = [Device(labels[GPU_PRODUCT], memory, count, Division.MIG, replicas, profile=profile)] if count else []
    elif labels.get(MIG_STRATEGY) == "single":
        slices = []
    else:
        slices = [each for key in sorted(labels) if (each := _labelled(labels, key)) is not None]
    return MigLabels(labels.get(MIG_CONFIG, ""), labels.get(MIG_CONFIG_STATE, ""), bool(profile), tuple(slices))


def mig_gpus(amounts: Mapping[str, str | int | float]) -> int:
    """What KAI counts MIG devices as, in queues: one GPU for each compute slice of their profiles. Amounts by resource;
    invalid ones count as 0."""
    total = 0
    for resource, amount in amounts.items():
        match = _RESOURCE.fullmatch(resource)
        if match is not None:
            with suppress(ValueError):
                total += int(match[1]) * max(0, parse_devices(amount))
    return total


def _labelled(labels: Mapping[str, str], key: str) -> Device | None:
    match = _SLICE.fullmatch(key)
    count = _number(labels, key) if match else 0
    if match is None or not count:
        return None
    resource = f"{MIG_PREFIX}{match[1]}"
    memory = _number(labels, f"{resource}.memory") or slice_mib(match[1])
    replicas = max(1, _number(labels, f"{resource}.replicas"))
    return Device(labels.get(f"{resource}.product", ""), memory, count, Division.MIG, replicas, resource, match[1])


def _number(labels: Mapping[str, str], key: str) -> int:
    text = labels.get(key, "")
    return int(text) if _COUNT.fullmatch(text) else 0


def slice_mib(profile: str) -> int:
    """MiB that one slice has at least, by its profile's name, whose gigabytes are rounded from a part of the GPU's
    memory. Raises InvalidFigureError."""
    match = _PROFILE.fullmatch(profile.strip().casefold())
    if match is None:
        raise InvalidFigureError(
            f"{profile!r} is not a MIG profile", "write compute slices and memory, such as 1g.10gb or 3g.40gb"
        )
    return int(match[2]) * MIB_PER_GIB * _LEAST_NINTHS // 9
