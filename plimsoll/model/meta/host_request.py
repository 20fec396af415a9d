"""HostRequest: the CPU, memory and ephemeral storage of a node that the scheduler counts for a pod."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from plimsoll.model.meta.pod_template import check_quantities
from plimsoll.quantity import mib_of, parse_bytes, parse_cpu_milli

Amount = str | int | float
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
"""The resource of a node's local storage."""


@dataclass(frozen=True, slots=True)
class HostRequest:
    cpu_milli: int = 0
    memory_bytes: int = 0
    storage_bytes: int = 0
    """Of ephemeral storage."""

    @property
    def memory_mib(self) -> int:
        """Rounded up."""
        return mib_of(self.memory_bytes)

    @property
    def storage_mib(self) -> int:
        """Rounded up."""
        return mib_of(self.storage_bytes)

    @classmethod
    def read(cls, spec: Mapping[str, Any]) -> "HostRequest":
        """Reads a pod's spec, including its overhead. Raises ValueError on an invalid quantity, or on a field of
        another type than a pod's.

        Pod-level requests (KEP-2837) replace those of its containers; pod-level limits count where there are none.
        """
        try:
            cpu, memory = _total(spec, "cpu", parse_cpu_milli), _total(spec, "memory", parse_bytes)
            return _shared(cpu, memory, _total(spec, EPHEMERAL_STORAGE, parse_bytes))
        except ValueError:
            check_quantities(spec)
            raise
        except (AttributeError, TypeError):
            raise ValueError("containers or resources have other types than those of a pod") from None


def counted(
    containers: Sequence[Mapping[str, Any]], init_containers: Sequence[Mapping[str, Any]], resource: str,
    parse: Callable[[Amount], int],
) -> int:  # fmt: skip
    """The amount of a resource that the scheduler counts for a pod, without overhead.

    The larger of the sum over containers and sidecars, and of any init container with the sidecars that started before
    it (KEP-753). Raises the errors of `parse`.
    """
    sidecars = peak = 0
    for container in init_containers:
        amount = _requested(container, resource, parse)
        if container.get("restartPolicy") == "Always":
            sidecars += amount
        else:
            peak = max(peak, sidecars + amount)
    total = sidecars
    for container in containers:
        total += _requested(container, resource, parse)
    return max(peak, total)


def _total(spec: Mapping[str, Any], resource: str, parse: Callable[[Amount], int]) -> int:
    overhead = (spec.get("overhead") or {}).get(resource)
    # The order of the apiserver's defaults, which the templates of DaemonSets and pods in files do not have.
    amount = (
        _stated(spec, ("requests",), resource, parse)
        or counted(spec.get("containers") or (), spec.get("initContainers") or (), resource, parse)
        or _stated(spec, ("limits",), resource, parse)
    )
    return amount + (parse(overhead) if overhead is not None else 0)


def _requested(container: Mapping[str, Any], resource: str, parse: Callable[[Amount], int]) -> int:
    """The request of a container; a limit without a request counts as one."""
    return _stated(container, ("requests", "limits"), resource, parse)


def _stated(holder: Mapping[str, Any], parts: Sequence[str], resource: str, parse: Callable[[Amount], int]) -> int:
    """The amount in the first of these parts of a container's or a pod's resources that has it; else 0."""
    resources = holder.get("resources") or {}
    for part in parts:
        amounts = resources.get(part)
        if amounts and resource in amounts:
            return parse(amounts[resource])
    return 0


_shared = lru_cache(maxsize=16_384)(HostRequest)
"""One object for equal requests."""
