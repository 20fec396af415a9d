"""Sharing: how NVIDIA's driver for Dynamic Resource Allocation shares GPUs, and what a share is of them."""

from fractions import Fraction
from math import ceil
from typing import Final, NamedTuple

from plimsoll.errors import PlimsollError
from plimsoll.model.kai import GPU_FRACTION, GPU_MEMORY_SHARE, GPUShare
from plimsoll.packing import GPU_MILLI
from plimsoll.quantity import canonical_quantity, parse_quantity

MEMORY: Final = "memory"
UNLIMITED: Final = "unlimited"
DISABLED: Final = "disabled"
_MOST_SHARES: Final = 1000


class NotConvertedError(Exception):
    """An amount that has no form in claims; `remedy` says what to change."""

    def __init__(self, field: str, why: str, remedy: str) -> None:
        super().__init__(why)
        self.field, self.why, self.remedy = field, why, remedy


class Sharing(NamedTuple):
    """The driver's setting `consumableShares` (0.5), in its words, and the memory of the GPUs where it is needed."""

    mode: str = MEMORY
    """`memory`, `unlimited`, `disabled`, or a number of shares of each GPU."""
    gpu_mib: int = 0
    """MiB of each GPU; 0: not known."""

    @classmethod
    def of(cls, mode: str, gpu_memory: str | None) -> "Sharing":
        """From options. Raises PlimsollError."""
        if mode not in (MEMORY, UNLIMITED, DISABLED) and not _is_number(mode):
            words = f"{MEMORY}, {UNLIMITED}, {DISABLED} or a number of shares from 1 to {_MOST_SHARES}"
            raise PlimsollError(f"--consumable-shares {mode!r:.40} is not {words}", "set what the driver's chart has")
        try:
            mib = int(parse_quantity(gpu_memory) // 2**20) if gpu_memory is not None else 0
        except ValueError as error:
            raise PlimsollError(f"--gpu-memory: {error}", "set the memory of one GPU, such as 80Gi") from None
        if gpu_memory is not None and mib < 1:
            raise PlimsollError(f"--gpu-memory {gpu_memory!r:.40} is less than 1Mi", "set the memory of one GPU: 80Gi")
        return cls(mode, mib)

    @property
    def shares(self) -> int:
        """Shares of each GPU; 0: the driver counts none."""
        return int(self.mode) if _is_number(self.mode) else 0

    def of_share(self, share: GPUShare) -> dict[str, str]:
        """What a claim takes of each GPU for a share. Raises NotConvertedError."""
        if self.mode == DISABLED:
            field = GPU_FRACTION if share.milli is not None else GPU_MEMORY_SHARE
            raise NotConvertedError(field, "the driver shares no GPUs", "set --consumable-shares to another mode")
        if share.milli is None:
            return {"memory": _mib(share.memory_mib or 0)}
        part = Fraction(share.milli) / GPU_MILLI
        if self.shares:
            return {"shares": str(ceil(part * self.shares))}
        if not self.gpu_mib:
            why = "is a part of a GPU of unknown memory, and the driver divides memory"
            raise NotConvertedError(GPU_FRACTION, why, "set --gpu-memory to the memory of one GPU, such as 80Gi")
        # Rounded down, so that as many pods share a GPU as before.
        return {"memory": _mib(max(1, int(part * self.gpu_mib)))}

    def is_exact(self, share: GPUShare) -> bool:
        """Whether as many such pods share a GPU as before."""
        return (
            not self.shares or share.milli is None or (Fraction(share.milli) / GPU_MILLI * self.shares).denominator == 1
        )

    def of_whole(self) -> dict[str, str]:
        """What a claim takes of each of its whole GPUs; empty: the driver's default."""
        return {"shares": str(self.shares)} if self.shares else {}


def _is_number(mode: str) -> bool:
    return mode.isascii() and mode.isdigit() and len(mode) <= 4 and 1 <= int(mode) <= _MOST_SHARES


def _mib(number: int) -> str:
    return canonical_quantity(f"{number}Mi")
