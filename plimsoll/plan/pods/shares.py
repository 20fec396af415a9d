"""GPU requests of pods, KAI's sharing annotations and whole devices, read into shares.

Anyone may write annotations: one that cannot be read refuses that pod only.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from plimsoll.errors import PlimsollError
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import GPU_FRACTION, GPU_FRACTION_DEVICES, GPU_MEMORY_SHARE, MAX_DEVICES, GPUShare
from plimsoll.packing import GPU_MILLI

ASSUMED_MILLI = 100
"""Thousandths for a share in MiB if the memory of no GPU is known: KAI's ratio of 0.1."""

_FRACTION = re.compile(r"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_MEMORY_DIGITS = 15
_SHOWN = 64


class UnreadableShareError(PlimsollError):
    """A pod whose request for GPUs cannot be read; the message names pod, field and value."""


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


@dataclass(frozen=True, slots=True)
class KindSizes:
    """Thousandths of one GPU that a share uses, by kind of GPU; kinds that it does not fit are left out."""

    milli: Mapping[str, int]
    assumed: tuple[str, ...] = ()
    """Kinds whose memory is not known; their thousandths are an assumption to report."""


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


def read_share(pod: Pod, gpu_resource: str = GPU_RESOURCE) -> GPUShare | None:
    """The GPU request of a pod; None if it requests no GPU. Raises UnreadableShareError.

    Which requests exclude each other follows KAI's admission. Digits of a fraction after the third round up, so that
    the plan is never too small.
    """
    fraction = pod.annotations.get(GPU_FRACTION)
    memory = pod.annotations.get(GPU_MEMORY_SHARE)
    devices = pod.annotations.get(GPU_FRACTION_DEVICES)
    whole = _whole_gpus(pod, gpu_resource)
    if fraction is None and memory is None:
        if devices is not None:
            raise _unreadable(
                pod, GPU_FRACTION_DEVICES, devices, f"is set without {GPU_FRACTION} or {GPU_MEMORY_SHARE}",
                f"set one of them, or request whole GPUs with {gpu_resource}",
            )  # fmt: skip
        return GPUShare(milli=GPU_MILLI, devices=whole) if whole else None
    if fraction is not None and memory is not None:
        raise _unreadable(
            pod, GPU_MEMORY_SHARE, memory, f"is set besides {GPU_FRACTION} {_shown(fraction)}", "keep one of the two"
        )
    if whole:
        field, value = (GPU_FRACTION, fraction) if fraction is not None else (GPU_MEMORY_SHARE, memory or "")
        raise _unreadable(
            pod, field, value, f"is set besides {whole} whole {gpu_resource}", "keep the annotation or the resource"
        )
    count = 1 if devices is None else _devices(pod, devices)
    if fraction is not None:
        milli = _milli(pod, fraction)
        return GPUShare(milli=milli, devices=count, rounded=milli == GPU_MILLI)
    return GPUShare(memory_mib=_memory(pod, memory or ""), devices=count)


def size_by_kind(
    share: GPUShare, memory_mib: Mapping[str, int | None], assumed_milli: int = ASSUMED_MILLI
) -> KindSizes:
    """What a share uses of each kind of GPU that could serve it; `memory_mib` is the memory of one GPU of each.

    A share in MiB is a fraction of the GPU's actual memory, which differs between kinds. Kinds of unknown memory count
    only if no known GPU is large enough, or none is known, with `assumed_milli`. Empty if it fits no kind.
    """
    if share.memory_mib is None:
        return KindSizes({kind: share.milli_of(0) for kind in sorted(memory_mib)})
    known = {kind: share.milli_of(memory) for kind, memory in sorted(memory_mib.items()) if memory}
    fitting = {kind: milli for kind, milli in known.items() if milli <= GPU_MILLI}
    if fitting:
        return KindSizes(fitting)
    unknown = tuple(sorted(kind for kind, memory in memory_mib.items() if not memory))
    return KindSizes(dict.fromkeys(unknown, assumed_milli), unknown)


def _whole_gpus(pod: Pod, gpu_resource: str) -> int:
    try:
        count = pod.devices(gpu_resource)
    except ValueError as error:
        raise UnreadableShareError(
            f"Pod {_name(pod)}: {gpu_resource}: {error}", "request a whole number of devices"
        ) from None
    if count > MAX_DEVICES:
        raise _unreadable(
            pod, gpu_resource, str(count), "are more GPUs than a node could have",
            f"request between 1 and {MAX_DEVICES}",
        )  # fmt: skip
    return count


def _milli(pod: Pod, text: str) -> int:
    value = Decimal(text) if _FRACTION.fullmatch(text) else None
    if value is None or not 0 < value < 1:
        raise _unreadable(
            pod, GPU_FRACTION, text, "is not a number above 0 and below 1",
            f"set a fraction such as 0.5, or request whole GPUs with {GPU_RESOURCE}",
        )  # fmt: skip
    return int((value * GPU_MILLI).to_integral_value(rounding="ROUND_CEILING"))


def _memory(pod: Pod, text: str) -> int:
    if not (_is_number(text) and len(text) <= _MEMORY_DIGITS and int(text) > 0):
        raise _unreadable(
            pod, GPU_MEMORY_SHARE, text, "is not a whole number of MiB above 0",
            "set MiB without a unit, such as 2000",
        )  # fmt: skip
    return int(text)


def _devices(pod: Pod, text: str) -> int:
    if not (_is_number(text) and len(text) <= 4 and 1 <= int(text) <= MAX_DEVICES):
        raise _unreadable(
            pod, GPU_FRACTION_DEVICES, text, f"is not a whole number from 1 to {MAX_DEVICES}",
            "set the number of GPUs of one node that the pod uses, such as 2",
        )  # fmt: skip
    return int(text)


def _is_number(text: str) -> bool:
    """Whether KAI reads it as a number too: no spaces, no sign, ASCII digits only."""
    return text.isascii() and text.isdigit()


def _unreadable(pod: Pod, field: str, value: str, problem: str, hint: str) -> UnreadableShareError:
    return UnreadableShareError(f"Pod {_name(pod)}: {field} {_shown(value)} {problem}", hint)


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name


def _shown(value: str) -> str:
    return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
