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

from plimsoll.cluster.nodes.gpu_labels import MIG_CONFIG, MIG_CONFIG_STATE, MIG_STRATEGY
from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT, MIG_PREFIX
from plimsoll.model.cluster import MIB_PER_GIB, InvalidFigureError, NodeGpus
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
_COUNT: Final = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class MigSlices:
    """The slices of one profile on a node."""

    profile: str
    count: int
    memory_mib: int
    """MiB of one slice: from its label, else from the profile's name."""
    product: str
    resource: str
    """The extended resource that pods request; empty if slices are offered as GPUs (strategy `single`)."""


@dataclass(frozen=True, slots=True)
class MigLabels:
    """The MIG labels of a node."""

    config: str
    state: str
    single: bool
    """The node's GPUs have one profile, and its slices are offered as GPUs."""
    slices: tuple[MigSlices, ...]

    @property
    def changing(self) -> bool:
        """Whether its configuration is being applied, or failed."""
        return self.state in CHANGING

    @property
    def active(self) -> bool:
        """Whether GPUs are partitioned: slices are labelled, or a configuration was applied (KAITO's rule)."""
        return bool(self.slices) or (self.config not in ("", ALL_DISABLED) and self.state == "success")

    def of_profile(self, profile: str) -> MigSlices | None:
        """The slices of that profile. If only the applied configuration names it, at least one exists."""
        wanted = label_form(profile)
        for each in self.slices:
            if label_form(each.profile) == wanted:
                return each
        if self.active and not self.slices and self.config.casefold() == f"all-{wanted}":
            return MigSlices(profile, 1, _nominal_mib(profile), "", f"{MIG_PREFIX}{wanted}")
        return None

    def __str__(self) -> str:
        """The configuration and the profiles, for messages."""
        profiles = ", ".join(each.profile for each in self.slices)
        configured = f" by {MIG_CONFIG}={self.config}" if self.config else ""
        return f"partitioned by MIG{configured}{f' into {profiles}' if profiles else ''}"


def mig_slice(profile: str, product: str = "") -> NodeGpus:
    """One slice of that profile, which a replica must fit, because a model is not split over slices.

    The gigabytes of the name count as GiB. Raises InvalidFigureError if it is not a profile.
    """
    return NodeGpus(count=1, memory_mib=_nominal_mib(profile), product=product, slices=True)


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
        memory = _number(labels, GPU_MEMORY) or _nominal_mib(profile)
        slices = [MigSlices(profile, count, memory, labels[GPU_PRODUCT], "")] if count else []
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


def _labelled(labels: Mapping[str, str], key: str) -> MigSlices | None:
    match = _SLICE.fullmatch(key)
    count = _number(labels, key) if match else 0
    if match is None or not count:
        return None
    resource = f"{MIG_PREFIX}{match[1]}"
    memory = _number(labels, f"{resource}.memory") or _nominal_mib(match[1])
    return MigSlices(match[1], count, memory, labels.get(f"{resource}.product", ""), resource)


def _number(labels: Mapping[str, str], key: str) -> int:
    text = labels.get(key, "")
    return int(text) if _COUNT.fullmatch(text) else 0


def _nominal_mib(profile: str) -> int:
    match = _PROFILE.fullmatch(profile.strip().casefold())
    if match is None:
        raise InvalidFigureError(
            f"{profile!r} is not a MIG profile", "write compute slices and memory, such as 1g.10gb or 3g.40gb"
        )
    return int(match[2]) * MIB_PER_GIB
