"""Finds the one GPU of this container."""

from collections.abc import Callable
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from plimsoll.probe.driver import DriverGPUs, look_in_files
from plimsoll.probe.errors import NoGPUError, PartitionedGPUError, SeveralGPUsError
from plimsoll.probe.nvml import look_by_nvml

Look = Callable[[], DriverGPUs | None]


def sources(root: Path = Path("/")) -> dict[str, Look]:
    """The sources of GPU UUIDs, in the order in which they are read."""
    return {"files": lambda: look_in_files(root), "nvml": look_by_nvml}


def find_gpu(looks: dict[str, Look], timeout: float = 10.0) -> str:
    """The UUID of the only visible GPU.

    If one source does not have it, the next is read; if none has it, all are read again for `timeout` seconds, because
    a driver may need a moment. Raises NoGPUError, SeveralGPUsError, PartitionedGPUError.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(NoGPUError),
        stop=stop_after_delay(timeout),
        wait=wait_exponential(multiplier=0.05, max=1.0),
        reraise=True,
    )
    return retrying(_find, looks)


def _find(looks: dict[str, Look]) -> str:
    problems: list[str] = []
    for name, look in looks.items():
        seen = look()
        if seen is None:
            problems.append(f"{name}: not available")
            continue
        if seen.partitioned:
            raise PartitionedGPUError(
                "the GPU is partitioned by MIG",
                "shares are parts of whole GPUs: run reservations on nodes without MIG",
            )
        if len(seen.uuids) + len(seen.unreadable) > 1:
            raise SeveralGPUsError(
                f"{len(seen.uuids) + len(seen.unreadable)} GPUs are visible: {', '.join(seen.uuids + seen.unreadable)}",
                "a reservation has one GPU: request one device, and do not run the pod privileged",
            )
        if seen.uuids:
            return seen.uuids[0]
        problems.append(f"{name}: {', '.join(seen.unreadable) or 'none'}")
    raise NoGPUError(
        f"no GPU is visible ({'; '.join(problems)})",
        "request one device of the GPU resource, and use a node with NVIDIA's container runtime",
    )
