"""Finds the one GPU of this container."""

from collections.abc import Callable
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from plimsoll.probe.driver import Seen, look_in_files
from plimsoll.probe.errors import NoGPUError, PartitionedGPUError, SeveralGPUsError
from plimsoll.probe.nvml import look_by_nvml

Look = Callable[[], Seen | None]


def sources(root: Path = Path("/")) -> dict[str, Look]:
    """Where GPUs are looked for, in this order."""
    return {"files": lambda: look_in_files(root), "nvml": look_by_nvml}


def find_gpu(looks: dict[str, Look], patience: float = 10.0) -> str:
    """The UUID of the one GPU that is seen.

    What the first source does not tell the next is asked; where none does, they are asked again for `patience`
    seconds, as a driver may need a moment. Raises NoGPUError, SeveralGPUsError, PartitionedGPUError.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(NoGPUError),
        stop=stop_after_delay(patience),
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
