"""KAI's requests by annotation: a fraction of a GPU, memory of a GPU, or memory by container."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from plimsoll.cluster.pods.container_requests import container_request, require_container
from plimsoll.cluster.pods.forms import Asked, Form
from plimsoll.cluster.pods.unreadable import UnreadableError, is_whole_number
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.kai import (
    GPU_FRACTION,
    GPU_FRACTION_CONTAINER,
    GPU_FRACTION_DEVICES,
    GPU_MEMORY_SHARE,
    MAX_DEVICES,
    MPS,
    GPUShare,
)
from plimsoll.packing import Milli, exact_milli

_FRACTION: Final = re.compile(r"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_MEMORY_DIGITS: Final = 15
_FORMS: Final = {GPU_FRACTION: Form.FRACTION, GPU_MEMORY_SHARE: Form.MEMORY}


def kai_share(given: Mapping[str, str], containers: Sequence[str]) -> tuple[GPUShare | None, tuple[Asked, ...]]:
    """The share that a pod with these annotations and names of containers requests, None if none, and in which forms.

    Fractions are exact. Raises UnreadableError.
    """
    by_container = container_request(given, containers)
    asked = [Asked(form, key, given[key]) for key, form in _FORMS.items() if key in given]
    if by_container is not None:
        asked.append(Asked(Form.CONTAINER, by_container.annotation, given[by_container.annotation]))
    if not asked:
        _check_alone(given)
        return None, ()
    container = given.get(GPU_FRACTION_CONTAINER)
    if container is not None:
        require_container(given, containers, GPU_FRACTION_CONTAINER, container)
    devices = devices_of(given, GPU_FRACTION_DEVICES)
    milli = _milli(given[GPU_FRACTION]) if GPU_FRACTION in given else None
    memory = _memory(given[GPU_MEMORY_SHARE]) if GPU_MEMORY_SHARE in given else None
    if by_container is not None:
        return GPUShare(memory_mib=by_container.memory_mib, devices=devices), tuple(asked)
    return GPUShare(milli=milli, memory_mib=memory, devices=devices), tuple(asked)


def devices_of(given: Mapping[str, str], key: str) -> int:
    """The number of GPUs of one node in an annotation; 1 without it. Raises UnreadableError."""
    text = given.get(key, "1")
    if not (is_whole_number(text) and len(text) <= 4 and 1 <= int(text) <= MAX_DEVICES):
        raise UnreadableError(
            key, text, f"is not a whole number from 1 to {MAX_DEVICES}",
            "set the number of GPUs of one node that the pod uses, such as 2",
        )  # fmt: skip
    return int(text)


def _check_alone(given: Mapping[str, str]) -> None:
    """Raises UnreadableError for an annotation that requires a share."""
    for key in (GPU_FRACTION_DEVICES, MPS):
        value = given.get(key)
        if value is not None and (key != MPS or value == "true"):
            raise UnreadableError(
                key, value, f"is set without {GPU_FRACTION} or {GPU_MEMORY_SHARE}",
                "set one of them, or remove it and request whole GPUs",
            )  # fmt: skip


def _milli(text: str) -> Milli:
    value = Decimal(text) if _FRACTION.fullmatch(text) else None
    if value is None or not 0 < value < 1:
        raise UnreadableError(
            GPU_FRACTION, text, "is not a number above 0 and below 1",
            f"set a fraction such as 0.5, or request whole GPUs with {GPU_RESOURCE}",
        )  # fmt: skip
    return exact_milli(Fraction(value))


def _memory(text: str) -> int:
    if not (is_whole_number(text) and len(text) <= _MEMORY_DIGITS and int(text) > 0):
        raise UnreadableError(
            GPU_MEMORY_SHARE, text, "is not a whole number of MiB above 0", "set MiB without a unit, such as 2000"
        )
    return int(text)
