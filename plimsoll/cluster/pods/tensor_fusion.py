"""TensorFusion's requests: memory and TFLOPS of each GPU."""

from decimal import Decimal

from plimsoll.cluster.pods.unreadable import is_whole_number, unreadable
from plimsoll.model import tensor_fusion as tf
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import MAX_DEVICES, GPUShare
from plimsoll.packing import GPU_MILLI
from plimsoll.quantity import parse_cpu_milli, parse_memory_mib, parse_quantity


def tensor_fusion_share(pod: Pod) -> GPUShare | None:
    """None if the pod requests nothing of TensorFusion, or its GPUs are in other pods (the workers).

    A limit without a request counts as the request; together with a request it does not count. Raises
    UnreadableShareError.
    """
    given = pod.annotations
    if not any(key in given for key in tf.ANNOTATIONS) or pod.labels.get(tf.COMPONENT) == "client":
        return None
    refused = next((key for key in tf.REFUSED if key in given), None)
    if refused is not None:
        raise unreadable(
            pod, refused, given[refused], "is not planned for", f"request {tf.VRAM_REQUEST} and {tf.TFLOPS_REQUEST}"
        )
    devices, model = _devices(pod), given.get(tf.GPU_MODEL, "")
    if given.get(tf.DEDICATED_GPU) == "true":
        return GPUShare(milli=GPU_MILLI, devices=devices, model=model, by_annotation=True)
    vram = _requested(pod, tf.VRAM_REQUEST, tf.VRAM_LIMIT)
    tflops = _requested(pod, tf.TFLOPS_REQUEST, tf.TFLOPS_LIMIT)
    if vram is None and tflops is None:
        _check_alone(pod)
        return None
    return GPUShare(
        memory_mib=None if vram is None else parse_memory_mib(vram),
        # The same rule as for CPUs: thousandths, rounded up.
        tflops_milli=None if tflops is None else parse_cpu_milli(tflops),
        by_tensor_fusion=True,
        devices=devices,
        model=model,
    )


def _check_alone(pod: Pod) -> None:
    """Raises UnreadableShareError for an annotation that has no effect because nothing is requested of a GPU.

    TensorFusion would take the amounts from defaults of its own objects (GPUResourceQuota), which are not read.
    """
    hint = f"set {tf.VRAM_REQUEST} or {tf.TFLOPS_REQUEST} above 0, or remove it and request whole GPUs"
    for key in (tf.VRAM_REQUEST, tf.VRAM_LIMIT, tf.TFLOPS_REQUEST, tf.TFLOPS_LIMIT):
        if key in pod.annotations:
            raise unreadable(pod, key, pod.annotations[key], "requests no part of a GPU", hint)
    for key in (tf.GPU_COUNT, tf.GPU_MODEL):
        if key in pod.annotations:
            problem = f"is set without {tf.VRAM_REQUEST} or {tf.TFLOPS_REQUEST}"
            raise unreadable(pod, key, pod.annotations[key], problem, hint)


def _requested(pod: Pod, request: str, limit: str) -> str | None:
    """The quantity; None if nothing, or 0, is requested."""
    key = request if request in pod.annotations else limit
    text = pod.annotations.get(key)
    if text is None:
        return None
    try:
        amount = parse_quantity(text)
    except ValueError:
        amount = Decimal(-1)
    if amount < 0:
        example = "4Gi" if request == tf.VRAM_REQUEST else "10 or 5000m"
        raise unreadable(pod, key, text, "is not a quantity of 0 or more", f"set one such as {example}")
    return text if amount else None


def _devices(pod: Pod) -> int:
    text = pod.annotations.get(tf.GPU_COUNT, "1")
    if not (is_whole_number(text) and len(text) <= 4 and 1 <= int(text) <= MAX_DEVICES):
        raise unreadable(
            pod, tf.GPU_COUNT, text, f"is not a whole number from 1 to {MAX_DEVICES}",
            "set the number of GPUs of one node that the pod uses, such as 2",
        )  # fmt: skip
    return int(text)
