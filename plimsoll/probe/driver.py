"""GPUs by the files of NVIDIA's driver, which the container runtime mounts for the GPUs of a container.

`/proc/driver/nvidia/gpus/<PCI address>/information` has a line `GPU UUID`; the UUID consists of question marks until
the GPU is first opened after the driver was loaded. `/proc/driver/nvidia/capabilities/gpu<minor>/mig/gi<n>` exists for
each GPU instance of MIG. See the driver's README, "The /proc filesystem".
"""

import re
from pathlib import Path
from typing import NamedTuple

_UUID_LINE = re.compile(r"^GPU UUID\s*:\s*(\S+)\s*$", re.MULTILINE)
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
    """The GPUs that the driver's files below `root` show; none if there are no such files."""
    folder = root / "proc/driver/nvidia"
    uuids, unreadable = set(), []
    for gpu in sorted((folder / "gpus").glob("*/information")):
        try:
            text = gpu.read_text(errors="replace")
        except OSError as error:
            unreadable.append(f"{gpu.parent.name}: {error.strerror}")
            continue
        uuid = parse_uuid(text)
        if uuid is None:
            unreadable.append(f"{gpu.parent.name}: {_problem(text)}")
        else:
            uuids.add(uuid)
    partitioned = any((folder / "capabilities").glob("gpu*/mig/gi*"))
    return DriverGPUs(tuple(sorted(uuids)), tuple(unreadable), partitioned)


def parse_uuid(text: str) -> str | None:
    """The UUID in an `information` file; None if there is none, or if it is not known yet."""
    match = _UUID_LINE.search(text)
    return match[1] if match and _UUID.fullmatch(match[1]) else None


def _problem(text: str) -> str:
    match = _UUID_LINE.search(text)
    return f"its UUID reads {match[1][:64]!r}" if match else "it has no line `GPU UUID`"
