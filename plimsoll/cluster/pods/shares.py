"""GPU requests of pods, annotations of KAI and TensorFusion and whole devices, read into shares.

Anyone may write annotations: one that cannot be read refuses that pod only.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from plimsoll.cluster.pods.container_requests import check_container, container_memory_mib
from plimsoll.cluster.pods.gpu_models import NO_OVERRIDES, is_model, tflops_milli
from plimsoll.cluster.pods.tensor_fusion import tensor_fusion_share
from plimsoll.cluster.pods.unreadable import UnreadableShareError, is_whole_number, name_of, unreadable
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.api import NOT_SHARED, DeviceSharing
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import (
    GPU_FRACTION,
    GPU_FRACTION_DEVICES,
    GPU_MEMORY_SHARE,
    MAX_DEVICES,
    MPS,
    GPUShare,
    is_share_annotation,
)
from plimsoll.packing import GPU_MILLI, Milli, exact_milli

ASSUMED_MILLI = 100
"""Thousandths for a share in MiB if the memory of no GPU is known: KAI's ratio of 0.1."""

_FRACTION = re.compile(r"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_MEMORY_DIGITS = 15
_BY_CONTAINER = "nvidia.com/container.*.gpu-memory.request"
_TENSOR_FUSION = "tensor-fusion.ai"


@dataclass(frozen=True, slots=True)
class PodShare:
    pod: Pod
    share: GPUShare


@dataclass(frozen=True, slots=True)
class ShareRefusal:
    """A pod whose request cannot be read: what is wrong, and what to change."""

    pod: Pod
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Shares:
    """Pods with their requests, and pods whose request cannot be read, both in the order given."""

    found: tuple[PodShare, ...] = ()
    refused: tuple[ShareRefusal, ...] = ()


class GpuKind(NamedTuple):
    """What is known of the GPUs of a kind of node."""

    product: str
    memory_mib: int | None
    """MiB of one; None where it is not known."""
    sharing: DeviceSharing = NOT_SHARED


@dataclass(frozen=True, slots=True)
class KindSizes:
    """Thousandths of one device that a share uses, by kind of GPU; kinds that it does not fit are left out. The devices
    are those of the kind's `sharing`: GPUs, or what pods request instead."""

    milli: Mapping[str, Milli]
    devices: int = 1
    """Number of devices of one node that it uses so much of."""
    assumed: tuple[str, ...] = ()
    """GPU products whose memory or TFLOPS are not known; their thousandths are an assumption to report."""


def read_shares(pods: Iterable[Pod], gpu_resource: str = GPU_RESOURCE) -> Shares:
    """The shares of all pods that request GPUs; other pods are left out."""
    found, refused = [], []
    for pod in pods:
        try:
            share = read_share(pod, gpu_resource)
        except UnreadableShareError as error:
            refused.append(ShareRefusal(pod, error.message, error.hint or ""))
            continue
        if share is not None:
            found.append(PodShare(pod, share))
    return Shares(tuple(found), tuple(refused))


def read_share(pod: Pod, gpu_resource: str = GPU_RESOURCE, device_resources: Iterable[str] = ()) -> GPUShare | None:
    """The GPU request of a pod; None if it requests no GPU. Raises UnreadableShareError.

    Which requests exclude each other follows KAI's admission. Fractions are exact. `device_resources` are extended
    resources whose devices are parts of GPUs.
    """
    try:
        return _read_share(pod, gpu_resource, device_resources)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # Anyone may write annotations: what no check foresees refuses this pod, and no other.
        raise UnreadableShareError(
            f"Pod {name_of(pod)}: its request for GPUs cannot be read ({type(error).__name__}: {error})",
            "correct its annotations",
        ) from error


def _read_share(pod: Pod, gpu_resource: str, device_resources: Iterable[str]) -> GPUShare | None:
    annotations = pod.annotations
    whole = _devices_of(pod, gpu_resource)
    devices_of_part = _shared_devices(pod, device_resources)
    if devices_of_part is not None:
        others = [key for key in annotations if is_share_annotation(key)]
        if whole and devices_of_part.resource != gpu_resource:
            others.append(gpu_resource)
        if others:
            raise unreadable(
                pod, devices_of_part.resource, str(devices_of_part.devices), f"is requested besides {others[0]}",
                "keep one of the two",
            )  # fmt: skip
        return devices_of_part
    if not any(map(is_share_annotation, annotations)):
        return GPUShare(milli=GPU_MILLI, devices=whole) if whole else None
    fraction, devices = annotations.get(GPU_FRACTION), annotations.get(GPU_FRACTION_DEVICES)
    other = tensor_fusion_share(pod)
    memory = annotations.get(GPU_MEMORY_SHARE)
    by_container = container_memory_mib(pod)
    fields = {
        GPU_FRACTION: fraction,
        GPU_MEMORY_SHARE: memory,
        _BY_CONTAINER: by_container and f"{by_container} MiB",
    }
    requested = {key: value for key, value in fields.items() if value is not None}
    if not requested:
        _check_alone(pod)
        if other is None:
            return GPUShare(milli=GPU_MILLI, devices=whole) if whole else None
    field, value = next(iter(requested.items()), (_TENSOR_FUSION, str(other)))
    if fraction is not None and memory is not None:
        raise unreadable(
            pod, GPU_MEMORY_SHARE, memory, f"is set besides {GPU_FRACTION} {fraction!r:.66}", "keep one of the two"
        )
    if whole or (requested and other is not None):
        beside = f"{whole} whole {gpu_resource}" if whole else f"a request of {_TENSOR_FUSION}"
        raise unreadable(pod, field, str(value), f"is set besides {beside}", "keep one of the two")
    if other is not None:
        return other
    check_container(pod)
    count = 1 if devices is None else _devices(pod, devices)
    if by_container is not None:
        return GPUShare(memory_mib=by_container, devices=count)
    if fraction is not None:
        return GPUShare(milli=_milli(pod, fraction), devices=count)
    return GPUShare(memory_mib=_memory(pod, memory or ""), devices=count)


def _shared_devices(pod: Pod, resources: Iterable[str]) -> GPUShare | None:
    found = [(name, count) for name in resources if (count := _devices_of(pod, name))]
    if len(found) > 1:
        raise unreadable(
            pod, found[1][0], str(found[1][1]), f"is requested besides {found[0][0]}", "keep one of the two"
        )
    return GPUShare(resource=found[0][0], devices=found[0][1]) if found else None


def _check_alone(pod: Pod) -> None:
    """Raises UnreadableShareError for an annotation that requires a share."""
    for key in (GPU_FRACTION_DEVICES, MPS):
        value = pod.annotations.get(key)
        if value is not None and (key != MPS or value == "true"):
            raise unreadable(
                pod, key, value, f"is set without {GPU_FRACTION} or {GPU_MEMORY_SHARE}",
                "set one of them, or remove it and request whole GPUs",
            )  # fmt: skip


def size_by_kind(
    share: GPUShare,
    kinds: Mapping[str, GpuKind],
    assumed_milli: int = ASSUMED_MILLI,
    tflops: Mapping[str, float] = NO_OVERRIDES,
) -> KindSizes:
    """What a share uses of each kind of GPU that could serve it; `tflops` are TFLOPS that differ from the table of GPU
    models.

    A share in MiB or TFLOPS is a fraction of what the GPU has, which differs between kinds. Kinds of unknown memory or
    TFLOPS count only if no known GPU is large enough, or none is known, with `assumed_milli`. Empty if it fits no kind.
    """
    able = sorted(name for name, kind in kinds.items() if is_of_model(share, kind))
    if share.resource:
        return KindSizes(dict.fromkeys(able, GPU_MILLI), share.devices)
    if share.milli is not None:
        return KindSizes(dict.fromkeys(able, share.milli), share.devices)
    known: dict[str, Milli] = {}
    for name in able:
        memory = kinds[name].memory_mib if share.memory_mib is not None else 0
        memory = memory and share.divided_mib(memory)
        speed = tflops_milli(kinds[name].product, tflops) if share.tflops_milli is not None else 0
        if memory is not None and speed is not None and (memory or not share.memory_mib):
            known[name] = share.milli_of(memory, speed)
    fitting = {name: milli for name, milli in known.items() if milli <= GPU_MILLI}
    if fitting:
        return KindSizes(fitting, share.devices)
    unknown = tuple(name for name in able if name not in known)
    products = tuple(sorted({kinds[name].product for name in unknown}))
    return KindSizes(dict.fromkeys(unknown, assumed_milli), share.devices, products)


def is_of_model(share: GPUShare, kind: GpuKind) -> bool:
    """Whether the GPUs are announced as what the share requests, and of the model that it requires, if any."""
    if share.resource != kind.sharing.resource:
        return False
    return not share.model or is_model(kind.product, share.model, kind.memory_mib)


def _devices_of(pod: Pod, resource: str) -> int:
    try:
        count = pod.devices(resource)
    except ValueError as error:
        raise UnreadableShareError(
            f"Pod {name_of(pod)}: {resource}: {error}", "request a whole number of devices"
        ) from None
    if count > MAX_DEVICES:
        raise unreadable(
            pod, resource, str(count), "are more devices than a node could have",
            f"request between 1 and {MAX_DEVICES}",
        )  # fmt: skip
    return count


def _milli(pod: Pod, text: str) -> Milli:
    value = Decimal(text) if _FRACTION.fullmatch(text) else None
    if value is None or not 0 < value < 1:
        raise unreadable(
            pod, GPU_FRACTION, text, "is not a number above 0 and below 1",
            f"set a fraction such as 0.5, or request whole GPUs with {GPU_RESOURCE}",
        )  # fmt: skip
    return exact_milli(Fraction(value))


def _memory(pod: Pod, text: str) -> int:
    if not (is_whole_number(text) and len(text) <= _MEMORY_DIGITS and int(text) > 0):
        raise unreadable(
            pod, GPU_MEMORY_SHARE, text, "is not a whole number of MiB above 0",
            "set MiB without a unit, such as 2000",
        )  # fmt: skip
    return int(text)


def _devices(pod: Pod, text: str) -> int:
    if not (is_whole_number(text) and len(text) <= 4 and 1 <= int(text) <= MAX_DEVICES):
        raise unreadable(
            pod, GPU_FRACTION_DEVICES, text, f"is not a whole number from 1 to {MAX_DEVICES}",
            "set the number of GPUs of one node that the pod uses, such as 2",
        )  # fmt: skip
    return int(text)
