"""TensorFusion's requests: memory and TFLOPS of each GPU."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from plimsoll.cluster.pods.kai_share import devices_of
from plimsoll.cluster.pods.unreadable import UnreadableError
from plimsoll.model import tensor_fusion as tf
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI
from plimsoll.quantity import parse_cpu_milli, parse_memory_mib, parse_quantity

_NVIDIA: Final = "nvidia"


def tensor_fusion_share(given: Mapping[str, str]) -> GPUShare | None:
    """The share that a pod with these annotations requests; None if it requests none.

    A limit without a request counts as the request; together with a request it does not count. Raises UnreadableError.
    """
    if not any(key in given for key in tf.ANNOTATIONS):
        return None
    _check_planned(given)
    devices, model = devices_of(given, tf.GPU_COUNT), given.get(tf.GPU_MODEL, "")
    if given.get(tf.DEDICATED_GPU) == "true":
        return GPUShare(milli=GPU_MILLI, devices=devices, model=model, by_annotation=True)
    vram = _requested(given, tf.VRAM_REQUEST, tf.VRAM_LIMIT)
    tflops = _requested(given, tf.TFLOPS_REQUEST, tf.TFLOPS_LIMIT)
    if vram is None and tflops is None:
        _check_alone(given)
        return None
    return GPUShare(
        memory_mib=None if vram is None else parse_memory_mib(vram),
        # The same rule as for CPUs: thousandths, rounded up.
        tflops_milli=None if tflops is None else parse_cpu_milli(tflops),
        by_tensor_fusion=True,
        devices=devices,
        model=model,
    )


def _check_planned(given: Mapping[str, str]) -> None:
    """Raises UnreadableError for a request in a form, or of a vendor, that Plimsoll does not plan."""
    for key in tf.REFUSED:
        if key in given:
            raise UnreadableError(
                key, given[key], "is not planned for", f"request {tf.VRAM_REQUEST} and {tf.TFLOPS_REQUEST}"
            )
    if not any(key in given for key in tf.REQUESTS):
        return
    vendor, isolation = given.get(tf.VENDOR, ""), given.get(tf.ISOLATION, "")
    if vendor and vendor.casefold() != _NVIDIA:
        raise UnreadableError(
            tf.VENDOR, vendor, "is not planned for: only GPUs of NVIDIA are", "set NVIDIA, or remove it"
        )
    if isolation.casefold() == tf.PARTITIONED:
        raise UnreadableError(tf.ISOLATION, isolation, "is not planned for", "set shared, soft or hard, or remove it")


def _check_alone(given: Mapping[str, str]) -> None:
    """Raises UnreadableError for an annotation that has no effect because nothing is requested of a GPU.

    TensorFusion would take the amounts from defaults of its own objects (GPUResourceQuota), which are not read.
    """
    hint = f"set {tf.VRAM_REQUEST} or {tf.TFLOPS_REQUEST} above 0, or remove it and request whole GPUs"
    for key in (tf.VRAM_REQUEST, tf.VRAM_LIMIT, tf.TFLOPS_REQUEST, tf.TFLOPS_LIMIT):
        if key in given:
            raise UnreadableError(key, given[key], "requests no part of a GPU", hint)
    for key in (tf.GPU_COUNT, tf.GPU_MODEL):
        if key in given:
            raise UnreadableError(key, given[key], f"is set without {tf.VRAM_REQUEST} or {tf.TFLOPS_REQUEST}", hint)


def _requested(given: Mapping[str, str], request: str, limit: str) -> str | None:
    """The quantity; None if nothing, or 0, is requested."""
    key = request if request in given else limit
    text = given.get(key)
    if text is None:
        return None
    try:
        amount = parse_quantity(text)
    except ValueError:
        amount = Decimal(-1)
    if amount < 0:
        example = "4Gi" if request == tf.VRAM_REQUEST else "10 or 5000m"
        raise UnreadableError(key, text, "is not a quantity of 0 or more", f"set one such as {example}")
    return text if amount else None
