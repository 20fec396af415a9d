"""KAI 0.18's requests by container (NvFractions): `nvidia.com/container.<name>.gpu-memory.request` and others.

The request counts, and a limit without a request is one, as in KAI. What Plimsoll does not plan is refused by name.
"""

from decimal import Decimal, InvalidOperation
from typing import Final

from plimsoll.cluster.pods.unreadable import unreadable
from plimsoll.model.cluster import Pod
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


def container_memory_mib(pod: Pod) -> int | None:
    """MiB that the pod requests of each GPU in this form, rounded up; None if it does not.

    Raises UnreadableShareError.
    """
    sizes: dict[tuple[str, str], int] = {}
    for key, value in pod.annotations.items():
        if not key.startswith(CONTAINER_PREFIXES) or key.endswith(WRITTEN_BY_KAI):
            continue
        name, suffix = _split(pod, key, value)
        _require_container(pod, key, value, name)
        if suffix in (REQUEST, LIMIT):
            sizes[name, suffix] = _mib(pod, key, value)
        elif suffix == PORTION_LIMIT:
            _check_portion(pod, key, value)
        elif value != TIME_SLICING:
            raise unreadable(pod, key, value, "is not planned for", f"use {TIME_SLICING}")
    return _resolved(pod, sizes)


def check_container(pod: Pod) -> None:
    """Raises UnreadableShareError if the annotation for the container with the GPU names none of the pod."""
    name = pod.annotations.get(GPU_FRACTION_CONTAINER)
    if name is not None:
        _require_container(pod, GPU_FRACTION_CONTAINER, name, name)


def _split(pod: Pod, key: str, value: str) -> tuple[str, str]:
    prefix = _NVIDIA if key.startswith(_NVIDIA) else _KAI
    for suffix in (REQUEST, LIMIT, MODE) if prefix == _NVIDIA else (PORTION_LIMIT,):
        name = key.removeprefix(prefix).removesuffix(suffix)
        if key.endswith(suffix) and name:
            return name, suffix
    raise unreadable(pod, key, value, "is no request that Plimsoll plans", f"use {_NVIDIA}<container>{REQUEST}")


def _require_container(pod: Pod, key: str, value: str, name: str) -> None:
    names = [str(each.get("name")) for each in (*pod.containers, *pod.init_containers)]
    if names and name not in names:
        raise unreadable(
            pod, key, value, f"names container {name}, which the pod does not have", "name one of its containers"
        )
    wanted = pod.annotations.get(GPU_FRACTION_CONTAINER, name)
    if wanted != name:
        raise unreadable(
            pod, key, value, f"is for another container than {GPU_FRACTION_CONTAINER} {wanted}", "name one container"
        )


def _check_portion(pod: Pod, key: str, value: str) -> None:
    """A limit above the fraction; only the fraction counts."""
    try:
        portion, fraction = Decimal(value), Decimal(pod.annotations.get(GPU_FRACTION, ""))
    except InvalidOperation:
        raise unreadable(pod, key, value, f"is no number, or is set without {GPU_FRACTION}", "set both") from None
    if not (portion.is_finite() and fraction.is_finite() and fraction < portion < 1):
        raise unreadable(pod, key, value, f"is not above {GPU_FRACTION} {fraction} and below 1", "raise or remove it")


def _resolved(pod: Pod, sizes: dict[tuple[str, str], int]) -> int | None:
    names = {name for name, _ in sizes}
    if not names:
        return None
    name = min(names)
    key = f"{_NVIDIA}{name}{REQUEST}"
    if len(names) > 1:
        raise unreadable(
            pod, key, "", f"is set besides one of container {max(names)}", "request GPUs for one container"
        )
    request, limit = sizes.get((name, REQUEST)), sizes.get((name, LIMIT))
    if limit is not None:
        legacy = [each for each in (GPU_FRACTION, GPU_MEMORY_SHARE) if each in pod.annotations]
        if legacy:
            raise unreadable(
                pod, f"{_NVIDIA}{name}{LIMIT}", f"{limit} MiB", f"is set besides {legacy[0]}", "keep one of the two"
            )
        if request is not None and request > limit:
            raise unreadable(pod, key, f"{request} MiB", f"is above the limit {limit} MiB", "lower the request")
    found = request if request is not None else limit
    memory = pod.annotations.get(GPU_MEMORY_SHARE)
    if memory is not None and memory != str(found):
        raise unreadable(pod, GPU_MEMORY_SHARE, memory, f"is not the {found} MiB of {key}", "keep one of the two")
    return found


def _mib(pod: Pod, key: str, value: str) -> int:
    try:
        if parse_quantity(value) > 0:
            return parse_memory_mib(value)
    except ValueError:
        pass
    raise unreadable(pod, key, value, "is not a quantity of memory above 0", "set one such as 4Gi")
