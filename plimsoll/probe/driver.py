"""GPUs by the files of NVIDIA's driver, for the GPUs of a container.

`/proc/driver/nvidia/gpus/<PCI address>/information` has a line `GPU UUID`; the UUID consists of question marks until
the GPU is first opened after the driver was loaded. `/proc/driver/nvidia/capabilities/gpu<minor>/mig/gi<n>` exists for
each GPU instance of MIG. See the driver's README, "The /proc filesystem".

NVIDIA's container runtime mounts such files of the container's GPUs alone, but not in its mode `cdi`: there, the files
of all GPUs of the node are visible. A container has the GPUs whose device file `/dev/nvidia<minor>` it has.
"""

import re
from pathlib import Path
from typing import NamedTuple

_UUID_LINE = re.compile(r"^GPU UUID\s*:\s*(\S+)\s*$", re.MULTILINE)
_MINOR_LINE = re.compile(r"^Device Minor\s*:\s*(\d+)\s*$", re.MULTILINE)
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class DriverGPUs(NamedTuple):
    """The GPUs that a source shows."""

    uuids: tuple[str, ...] = ()
    """Sorted."""
    unreadable: tuple[str, ...] = ()
    """Problems of GPUs whose UUID cannot be read."""
    partitioned: bool = False
    """Whether any of them is partitioned by MIG."""


def look_in_files(root: Path = Path("/")) -> DriverGPUs:
    """The GPUs that the driver's files below `root` show; none if there are no such files. Without any device file of a
    GPU, all of them count."""
    folder = root / "proc/driver/nvidia"
    devices = {device.name.removeprefix("nvidia") for device in (root / "dev").glob("nvidia[0-9]*")}
    uuids, unreadable = set(), []
    for gpu in sorted((folder / "gpus").glob("*/information")):
        try:
            text = gpu.read_text(errors="replace")
        except OSError as error:
            unreadable.append(f"{gpu.parent.name}: {error.strerror}")
            continue
        minor = _MINOR_LINE.search(text)
        if devices and minor and minor[1] not in devices:
            continue
        uuid = parse_uuid(text)
        if uuid is None:
            unreadable.append(f"{gpu.parent.name}: {_problem(text)}")
        else:
            uuids.add(uuid)
    sliced = {instance.parents[1].name.removeprefix("gpu") for instance in folder.glob("capabilities/gpu*/mig/gi*")}
    return DriverGPUs(tuple(sorted(uuids)), tuple(unreadable), bool(sliced & devices if devices else sliced))


def parse_uuid(text: str) -> str | None:
    """The UUID in an `information` file; None if there is none, or if it is not known yet."""
    match = _UUID_LINE.search(text)
    return match[1] if match and _UUID.fullmatch(match[1]) else None


def _problem(text: str) -> str:
    match = _UUID_LINE.search(text)
    return f"its UUID reads {match[1][:64]!r}" if match else "it has no line `GPU UUID`"
