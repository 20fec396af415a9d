"""KAI 0.18's requests by container (NvFractions): `nvidia.com/container.<name>.gpu-memory.request` and others.

The request counts, and a limit without a request is one, as in KAI. What Plimsoll does not plan is refused by name.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from plimsoll.cluster.pods.unreadable import UnreadableError
from plimsoll.model.kai import CONTAINER_PREFIXES, GPU_FRACTION, GPU_FRACTION_CONTAINER, GPU_MEMORY_SHARE
from plimsoll.quantity import parse_memory_mib, parse_quantity

REQUEST: Final = ".gpu-memory.request"
LIMIT: Final = ".gpu-memory.limit"
MODE: Final = ".gpu-compute.mode"
PORTION_LIMIT: Final = ".gpu-memory.portion.limit"
WRITTEN_BY_KAI: Final = (".gpus.devices", ".gpu-compute.portion")
"""What KAI's binder writes: no requests."""
TIME_SLICING: Final = "time-slicing"

_NVIDIA, _KAI = CONTAINER_PREFIXES


class ContainerRequest(NamedTuple):
    annotation: str
    memory_mib: int
    """Of each GPU, rounded up."""


def container_request(given: Mapping[str, str], containers: Sequence[str]) -> ContainerRequest | None:
    """What a pod with these annotations and names of containers requests in this form; None if it requests nothing.

    Raises UnreadableError.
    """
    sizes: dict[tuple[str, str], int] = {}
    for key, value in given.items():
        if not key.startswith(CONTAINER_PREFIXES) or key.endswith(WRITTEN_BY_KAI):
            continue
        name, suffix = _split(key, value)
        require_container(given, containers, key, name)
        if suffix in (REQUEST, LIMIT):
            sizes[name, suffix] = _mib(key, value)
        elif suffix == PORTION_LIMIT:
            _check_portion(given, key)
        elif value != TIME_SLICING:
            raise UnreadableError(key, value, "is not planned for", f"use {TIME_SLICING}")
    return _resolved(given, sizes)


def require_container(given: Mapping[str, str], containers: Sequence[str], key: str, name: str) -> None:
    """Raises UnreadableError if the annotation `key` names another container than one of the pod, or than the one with
    the GPU."""
    if containers and name not in containers:
        raise UnreadableError(
            key, given[key], f"names container {name}, which the pod does not have", "name one of its containers"
        )
    wanted = given.get(GPU_FRACTION_CONTAINER, name)
    if wanted != name:
        raise UnreadableError(
            key, given[key], f"is for another container than {GPU_FRACTION_CONTAINER} {wanted}", "name one container"
        )


def _split(key: str, value: str) -> tuple[str, str]:
    prefix = _NVIDIA if key.startswith(_NVIDIA) else _KAI
    for suffix in (REQUEST, LIMIT, MODE) if prefix == _NVIDIA else (PORTION_LIMIT,):
        name = key.removeprefix(prefix).removesuffix(suffix)
        if key.endswith(suffix) and name:
            return name, suffix
    raise UnreadableError(key, value, "is no request that Plimsoll plans", f"use {_NVIDIA}<container>{REQUEST}")


def _check_portion(given: Mapping[str, str], key: str) -> None:
    """A limit above the fraction; only the fraction counts."""
    value = given[key]
    try:
        portion, fraction = Decimal(value), Decimal(given.get(GPU_FRACTION, ""))
    except InvalidOperation:
        raise UnreadableError(key, value, f"is no number, or is set without {GPU_FRACTION}", "set both") from None
    if not (portion.is_finite() and fraction.is_finite() and fraction < portion < 1):
        raise UnreadableError(key, value, f"is not above {GPU_FRACTION} {fraction} and below 1", "raise or remove it")


def _resolved(given: Mapping[str, str], sizes: Mapping[tuple[str, str], int]) -> ContainerRequest | None:
    names = {name for name, _ in sizes}
    if not names:
        return None
    name = min(names)
    key, limit_key = f"{_NVIDIA}{name}{REQUEST}", f"{_NVIDIA}{name}{LIMIT}"
    if len(names) > 1:
        other = f"is set besides one of container {max(names)}"
        raise UnreadableError(key, given.get(key, ""), other, "request GPUs for one container")
    request, limit = sizes.get((name, REQUEST)), sizes.get((name, LIMIT))
    if limit is not None:
        _check_limit(given, limit_key, limit, request)
    found = ContainerRequest(key, request) if request is not None else ContainerRequest(limit_key, limit or 0)
    memory = given.get(GPU_MEMORY_SHARE)
    if memory is not None and memory != str(found.memory_mib):
        raise UnreadableError(
            GPU_MEMORY_SHARE, memory, f"is not the {found.memory_mib} MiB of {found.annotation}", "keep one of the two"
        )
    return found


def _check_limit(given: Mapping[str, str], key: str, limit: int, request: int | None) -> None:
    for legacy in (GPU_FRACTION, GPU_MEMORY_SHARE):
        if legacy in given:
            raise UnreadableError(key, given[key], f"is set besides {legacy}", "keep one of the two")
    if request is not None and request > limit:
        request_key = key.removesuffix(LIMIT) + REQUEST
        raise UnreadableError(request_key, given[request_key], f"is above the limit {limit} MiB", "lower the request")


def _mib(key: str, value: str) -> int:
    try:
        if parse_quantity(value) > 0:
            return parse_memory_mib(value)
    except ValueError:
        pass
    raise UnreadableError(key, value, "is not a quantity of memory above 0", "set one such as 4Gi")
