"""Names of extended resources: accelerators of other vendors, and parts of GPUs in forms of other schedulers.

The table is a data file (`device_names.csv`); each row names its source. A resource that ends with `*` is a prefix.
"""

import csv
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from typing import Final, NamedTuple

from plimsoll.labels import is_part_of_gpu

_ANY: Final = "*"
NVIDIA: Final = "nvidia.com/"
"""Prefix of the names that NVIDIA's device plugin and operators give."""


class DeviceUse(StrEnum):
    DEVICE = "device"
    """An accelerator, or a part of one, of the vendor."""
    PART = "part"
    """A part of an NVIDIA GPU."""
    NETWORK = "network"
    """Not an accelerator, though an accelerator's vendor names it."""


class DeviceName(NamedTuple):
    resource: str
    owner: str
    """Vendor of the device, or the scheduler or device plugin whose form it is; empty: NVIDIA's device plugin."""
    use: DeviceUse


@cache
def known_devices() -> tuple[DeviceName, ...]:
    """All rows, as in the file."""
    text = (resources.files(__package__) / "device_names.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(DeviceName(row["resource"], row["owner"], DeviceUse(row["use"])) for row in rows)


@lru_cache(maxsize=1024)
def device_name(resource: str) -> DeviceName | None:
    """What is known of an extended resource by its name; None: nothing."""
    if is_part_of_gpu(resource):
        return DeviceName(resource, "", DeviceUse.PART)
    return next((row for row in known_devices() if _is_named(resource, row.resource)), None)


def may_be_accelerator(resource: str) -> bool:
    """Whether a resource is by its name an accelerator or a part of one, or is NVIDIA's and not known."""
    known = device_name(resource)
    return resource.startswith(NVIDIA) if known is None else known.use is not DeviceUse.NETWORK


def _is_named(resource: str, name: str) -> bool:
    return resource.startswith(name[:-1]) if name.endswith(_ANY) else resource == name
