"""Amounts of the resources that queues divide."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from plimsoll.model.meta import HostRequest
from plimsoll.packing import Milli

MILLI: Final = 1000
"""Amounts are thousandths, whole or as fractions, so that sums are exact."""


class Resource(StrEnum):
    """A resource that queues divide. Units: thousandths of a GPU, of a millicore and of a MB (10^6 bytes)."""

    GPU = "gpu"
    CPU = "cpu"
    MEMORY = "memory"


UNITS: Final = {Resource.GPU: "GPUs", Resource.CPU: "millicores", Resource.MEMORY: "MB"}


@dataclass(frozen=True, slots=True)
class Amount:
    """In thousandths of a GPU, of a millicore and of a MB."""

    gpu: Milli = 0
    cpu: Milli = 0
    memory: Milli = 0

    @classmethod
    def of(cls, gpu_milli: Milli, host: HostRequest) -> "Amount":
        """What a pod requests."""
        return cls(gpu_milli, host.cpu_milli * MILLI, round(host.memory_bytes / 1000))

    def __getitem__(self, resource: Resource) -> Milli:
        found: Milli = getattr(self, resource.value)
        return found

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.gpu + other.gpu, self.cpu + other.cpu, self.memory + other.memory)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(self.gpu - other.gpu, self.cpu - other.cpu, self.memory - other.memory)

    def __mul__(self, count: int) -> "Amount":
        return Amount(self.gpu * count, self.cpu * count, self.memory * count)


NOTHING: Final = Amount()


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of the amounts. Equal amounts are counted, and multiplied by their number."""
    return sum((amount * count for amount, count in Counter(amounts).items()), NOTHING)


def shown(milli: Milli, resource: Resource) -> str:
    """An amount for people, such as `0.5 GPUs`."""
    return f"{float(milli) / MILLI:.10g} {UNITS[resource]}"
