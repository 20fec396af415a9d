"""Pods with the GPUs that they request, and what that is of each kind of GPU."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from plimsoll.cluster.claims import selection, whole_by_default
from plimsoll.cluster.pods.gpu_models import NO_OVERRIDES, is_model, tflops_milli
from plimsoll.cluster.pods.request import read_request
from plimsoll.cluster.pods.unreadable import RequestRefusal
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.cluster import Device, Pod
from plimsoll.model.dra import ClaimRequest
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI, Milli

ASSUMED_MILLI = 100
"""Thousandths for a share in MiB if the memory of no GPU is known: KAI's ratio of 0.1."""


@dataclass(frozen=True, slots=True)
class PodShare:
    pod: Pod
    share: GPUShare


@dataclass(frozen=True, slots=True)
class ShareRefusal:
    """A pod whose request is not planned for: what is wrong, and what to change."""

    pod: Pod
    message: str
    hint: str
    of_claims: bool = False
    """As of RequestRefusal."""

    @classmethod
    def of(cls, pod: Pod, refusal: RequestRefusal) -> Self:
        name = f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name
        return cls(pod, f"Pod {name}: {refusal.problem}", refusal.hint, refusal.of_claims)


@dataclass(frozen=True, slots=True)
class Shares:
    """Pods with their requests, and pods whose request cannot be read, both in the order given."""

    found: tuple[PodShare, ...] = ()
    refused: tuple[ShareRefusal, ...] = ()


@dataclass(frozen=True, slots=True)
class KindSizes:
    """Thousandths of one device that a share uses, by kind of GPU; kinds that it does not fit are left out. The devices
    are GPUs, or what pods request instead of them."""

    milli: Mapping[str, Milli]
    devices: int = 1
    """Number of devices of one node that it uses so much of."""
    assumed: tuple[str, ...] = ()
    """GPU products whose memory or TFLOPS are not known; their thousandths are an assumption to report."""
    why: tuple[str, ...] = ()
    """Of claims that no kind meets: why not, for each kind of device."""
    ends: str = ""
    """Of claims: an error of a selector on a kind, with which the scheduler ends its attempt to place the pod."""


def read_shares(pods: Iterable[Pod], gpu_resource: str = GPU_RESOURCE) -> Shares:
    """The GPUs that pods have where they run, and pods of which that is not known; other pods are left out."""
    found, refused = [], []
    for pod in pods:
        request = read_request(pod, gpu_resource)
        if request.uncertain and request.refusal is not None:
            refused.append(ShareRefusal.of(pod, request.refusal))
        elif request.held is not None:
            found.append(PodShare(pod, request.held))
    return Shares(tuple(found), tuple(refused))


def size_by_kind(
    share: GPUShare,
    kinds: Mapping[str, Device],
    assumed_milli: int = ASSUMED_MILLI,
    tflops: Mapping[str, float] = NO_OVERRIDES,
) -> KindSizes:
    """What a share uses of each kind of GPU that could serve it; `tflops` are TFLOPS that differ from the table of GPU
    models.

    A share in MiB or TFLOPS is a fraction of what the GPU has, which differs between kinds. Kinds of unknown memory or
    TFLOPS count only if no known GPU is large enough, or none is known, with `assumed_milli`. Empty if it fits no kind.
    """
    if share.claims:
        return _by_claims(share.claims, kinds)
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
    unknown = tuple(
        name for name in able if name not in known and not (share.memory_mib and kinds[name].memory_mib == 0)
    )
    products = tuple(sorted({kinds[name].product for name in unknown}))
    return KindSizes(dict.fromkeys(unknown, assumed_milli), share.devices, products)


def _by_claims(claims: tuple[ClaimRequest, ...], kinds: Mapping[str, Device]) -> KindSizes:
    """The kinds whose devices meet the claims."""
    found = {
        name: selection(claims, kind.claimable, kind.count)
        for name, kind in sorted(kinds.items())
        if kind.claimable is not None
    }
    selections = found.values()
    numbers = {each.number for each in selections if each.number}
    ends = next((each.why for each in selections if each.ends), "")
    if len(numbers) == 1:
        able = {name: selected.milli for name, selected in found.items() if selected.number}
        return KindSizes(able, numbers.pop(), ends=ends)
    if numbers:
        return KindSizes({}, why=("ClaimNotPlanned: different numbers of devices on different nodes",))
    not_planned = tuple(f"ClaimNotPlanned: {each.not_planned}" for each in selections if each.not_planned)
    others = tuple(
        f"{kinds[name].product or kinds[name].resource}: {selected.why}"
        for name, selected in found.items()
        if selected.why
    )
    return KindSizes({}, why=tuple(dict.fromkeys((*not_planned, *others))), ends=ends)


def is_of_model(share: GPUShare, kind: Device) -> bool:
    """Whether the GPUs are announced as what the share requests, and of the model that it requires, if any. Whole GPUs
    may be served by a DeviceClass."""
    if kind.claimable is not None:
        resource = share.resource or GPU_RESOURCE
        served = resource in kind.claimable.extended_resources and whole_by_default(kind.claimable)
        return share.whole and served and not kind.claimable.special
    if share.resource != kind.resource:
        return False
    return not share.model or is_model(kind.product, share.model, kind.memory_mib)
