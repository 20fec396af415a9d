"""PodRequest: all that a pod asks of devices. It is read here and nowhere else.

Whole GPUs, shares by annotation, devices that are parts of GPUs, accelerators of other vendors and claims, in
all containers and init containers together: either all of it is read, or the pod is refused by name.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from plimsoll.cluster.claims import may_be_gpus
from plimsoll.cluster.pods.device_names import DeviceUse, device_name, may_be_accelerator
from plimsoll.cluster.pods.forms import PARTS, Asked, Form, why_not_together
from plimsoll.cluster.pods.kai_share import kai_share
from plimsoll.cluster.pods.tensor_fusion import tensor_fusion_share
from plimsoll.cluster.pods.unreadable import RequestRefusal, UnreadableError, shown
from plimsoll.labels import DEVICE_CLASS_PREFIX, GPU_RESOURCE
from plimsoll.model import tensor_fusion as tf
from plimsoll.model.cluster import VENDOR_RESOURCES, Pod
from plimsoll.model.dra import ClaimedDevices
from plimsoll.model.kai import GPU_FRACTION, GPU_MEMORY_SHARE, MAX_DEVICES, GPUShare, is_share_annotation
from plimsoll.packing import GPU_MILLI

_MOST_KINDS: Final = 4096
"""Number of different requests in the cache: anyone may write annotations."""
_CLAIMS: Final = "spec.resourceClaims"


class KnownParts(NamedTuple):
    """The devices other than GPUs of the Environment's resource for which nodes can come, by resource."""

    declared: frozenset[str] = frozenset()
    """Those for which capacity is planned: parts of GPUs that the Environment declares, and whole GPUs of other
    vendors that nodes of NodePools have."""
    provided: frozenset[str] = frozenset()
    """Those that NodeOverlays list: Karpenter provides nodes for them by itself."""


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What a pod asks of devices: what capacity is planned for, and what the pod has where it runs."""

    share: GPUShare | None = None
    """The GPUs that capacity can be planned for. None: it asks for none, or others provide them, or it is refused."""
    refusal: RequestRefusal | None = None
    """Why the request is not planned for, and what to change."""
    held: GPUShare | None = None
    """The GPUs that the pod has where it runs: those of `share`, or, if it is refused, its whole ones."""
    uncertain: bool = False
    """Whether it is refused for its annotations, or for a number of GPUs that cannot be read. Where it runs, it may use
    all of the GPUs of its groups, besides `held`."""
    devices: tuple[tuple[str, int], ...] = ()
    """Extended resources with the number that the scheduler counts, by name; without those that cannot be read."""
    has_parts: bool = False
    """Whether `devices` are parts of GPUs, or some of them."""
    has_others: bool = False
    """Whether `devices` are accelerators of other vendors than the Environment's, or parts of them, or some are."""
    has_claims: bool = False
    claimed_gpus: int = 0
    """GPUs that it has by claims where it runs."""
    claims_in_queue: int = 0
    """GPUs that KAI counts for its claims."""

    @property
    def shares_gpus(self) -> bool:
        """Whether it requests GPUs by annotations, which no kubelet counts."""
        return self.uncertain or (self.held is not None and not self.held.whole)

    @property
    def uses_gpus(self) -> bool:
        """Whether GPUs of its node are in use where it runs."""
        return self.uncertain or self.has_parts or self.held is not None or bool(self.claimed_gpus)

    def beside_held(self, resources: Container[str], gpu_resource: str) -> int:
        """Number of devices of these resources besides `held`, of a pod with GPUs of several vendors."""
        counted = {gpu_resource, self.held.resource if self.held is not None else ""}
        return sum(count for name, count in self.devices if name in resources and name not in counted)

    def count_of(self, resource: str) -> int:
        """The number of devices of an extended resource."""
        return next((count for name, count in self.devices if name == resource), 0)


def read_request(pod: Pod, gpu_resource: str = GPU_RESOURCE, parts: KnownParts | None = None) -> PodRequest:
    """What the pod asks of devices. `parts` None: whether nodes can come for parts of GPUs is not asked, so that no pod
    is refused for requesting only these."""
    annotations = tuple(sorted(item for item in pod.annotations.items() if is_share_annotation(item[0])))
    if not annotations:
        return _read(_Fields(_devices(pod), (), (), _claims(pod), pod.claimed), gpu_resource, parts)
    if pod.labels.get(tf.COMPONENT) == tf.CLIENT:
        annotations = tuple(each for each in annotations if each[0] not in tf.ANNOTATIONS)
    # Annotations may name a container.
    containers = tuple(str(each.get("name")) for each in (*pod.containers, *pod.init_containers))
    return _read(_Fields(_devices(pod), annotations, containers, _claims(pod), pod.claimed), gpu_resource, parts)


def _claims(pod: Pod) -> tuple[str, ...]:
    return tuple(each.name for each in pod.resource_claims)


class _Fields(NamedTuple):
    """What a request is read from."""

    devices: tuple[tuple[str, int | str], ...]
    """Numbers by resource; a text says why the number cannot be read."""
    annotations: tuple[tuple[str, str], ...]
    containers: tuple[str, ...]
    claims: tuple[str, ...]
    claimed: ClaimedDevices | None


def _devices(pod: Pod) -> tuple[tuple[str, int | str], ...]:
    found: list[tuple[str, int | str]] = []
    for resource in pod.extended_resources:
        try:
            count = pod.devices(resource)
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            found.append((resource, str(error)))
            continue
        if count:
            found.append((resource, count))
    return tuple(found)


@lru_cache(maxsize=_MOST_KINDS)
def _read(fields: _Fields, gpu_resource: str, parts: KnownParts | None) -> PodRequest:
    resources = tuple(_resources(fields, gpu_resource, parts))
    counts = {name: count for name, count in fields.devices if isinstance(count, int)}
    number = counts.get(gpu_resource, 0)
    whole = GPUShare(milli=GPU_MILLI, devices=number) if 0 < number <= MAX_DEVICES else _of_vendor(counts)
    forms = {each.form for each in resources}
    request = PodRequest(
        held=whole,
        devices=tuple(counts.items()),
        has_parts=not forms.isdisjoint(PARTS),
        has_others=Form.OTHER_VENDOR in forms,
        has_claims=Form.CLAIM in forms,
        claimed_gpus=fields.claimed.held if fields.claimed is not None else 0,
        claims_in_queue=fields.claimed.in_queue if fields.claimed is not None else 0,
    )
    try:
        share, annotations = _by_annotation(fields)
    except UnreadableError as error:
        return replace(request, refusal=error.refusal, uncertain=True)
    refusal = _uncountable(fields, resources)
    if refusal is not None:
        return replace(request, refusal=refusal, uncertain=True)
    refusal = why_not_together((*annotations, *resources)) or _undeclared(resources)
    if refusal is not None:
        return replace(request, refusal=refusal, uncertain=bool(annotations))
    if forms == {Form.CLAIM} and not annotations and fields.claimed is not None:
        return _of_claims(request, fields.claimed)
    planned = share or _of_devices(resources, counts)
    if planned is None and len(resources) == 1 and resources[0].form is Form.OTHER_VENDOR:
        planned = whole
    return replace(request, share=planned, held=share or whole)


def _of_vendor(counts: Mapping[str, int]) -> GPUShare | None:
    """The whole GPUs of AMD or Intel that a pod has; None where it has none, or of several resources."""
    found = [(name, count) for name, count in counts.items() if name in VENDOR_RESOURCES]
    if len(found) != 1 or found[0][1] > MAX_DEVICES:
        return None
    return GPUShare(milli=GPU_MILLI, resource=found[0][0], devices=found[0][1])


def _of_claims(request: PodRequest, claimed: ClaimedDevices) -> PodRequest:
    """What claims ask for. What they have is no request: claims say that themselves."""
    asked = [each for claim in claimed.requests for each in claim.requests]
    of_gpus = list(map(may_be_gpus, asked))
    if asked and not any(of_gpus):
        return request
    if claimed.problem:
        return replace(request, refusal=RequestRefusal(claimed.problem, claimed.hint, of_claims=True))
    if not asked:
        return request
    if not all(of_gpus):
        problem = "ClaimNotPlanned: GPUs beside devices of other drivers"
        return replace(request, refusal=RequestRefusal(problem, "create such nodes by other means"))
    devices = sum(each.alternatives[0].count or 1 for each in asked)
    return replace(request, share=GPUShare(milli=GPU_MILLI, devices=devices, claims=claimed.requests))


def _resources(fields: _Fields, gpu_resource: str, parts: KnownParts | None) -> Iterator[Asked]:
    for resource, count in fields.devices:
        form = _form(resource, gpu_resource, parts)
        if form is not None:
            known = device_name(resource)
            yield Asked(form, resource, str(count), known.owner if known else "")
    if fields.claims:
        yield Asked(Form.CLAIM, _CLAIMS, ", ".join(fields.claims))


@lru_cache(maxsize=_MOST_KINDS)
def _form(resource: str, gpu_resource: str, parts: KnownParts | None) -> Form | None:
    """The form that a request of the resource is; None if it is none of accelerators."""
    if parts is not None and resource in parts.declared:
        return Form.DECLARED
    if resource == gpu_resource:
        return Form.WHOLE
    if resource.startswith(DEVICE_CLASS_PREFIX):
        return Form.CLAIM
    if not may_be_accelerator(resource):
        return None
    known = device_name(resource)
    if known is None:
        return Form.UNKNOWN
    if known.use is DeviceUse.DEVICE:
        return Form.OTHER_VENDOR
    return Form.PROVIDED if parts is None or resource in parts.provided else Form.UNDECLARED


def _by_annotation(fields: _Fields) -> tuple[GPUShare | None, tuple[Asked, ...]]:
    """The share that the annotations request, None if they request none, and in which forms. Raises UnreadableError."""
    if not fields.annotations:
        return None, ()
    given = dict(fields.annotations)
    other = tensor_fusion_share(given)
    share, asked = kai_share(given, fields.containers)
    if other is None:
        return share, asked
    field = next(key for key in tf.REQUESTS if key in given)
    return share or other, (*asked, Asked(Form.TENSOR_FUSION, field, given[field]))


def _uncountable(fields: _Fields, resources: Iterable[Asked]) -> RequestRefusal | None:
    """Why a number of devices for which capacity would be planned cannot be used."""
    counts = dict(fields.devices)
    for each in resources:
        if each.form not in (Form.WHOLE, Form.DECLARED):
            continue
        count = counts[each.field]
        if isinstance(count, str):
            return RequestRefusal(f"{each.field}: {count}", "request a whole number of devices")
        if count > MAX_DEVICES:
            problem = f"{each.field} {shown(each.value)} are more devices than a node could have"
            return RequestRefusal(problem, f"request between 1 and {MAX_DEVICES}")
    return None


def _undeclared(resources: Iterable[Asked]) -> RequestRefusal | None:
    """Why no node can come for parts of GPUs, the only request of a pod."""
    for each in resources:
        if each.form is Form.UNDECLARED and each.owner:
            problem = f"{each.field} {shown(each.value)} is a part of a GPU in the form of {each.owner}, "
            return RequestRefusal(
                f"{problem}which is not planned for", f"request {GPU_FRACTION} or {GPU_MEMORY_SHARE}, or whole GPUs"
            )
        if each.form is Form.UNDECLARED:
            return RequestRefusal(
                f"{each.field} is neither declared in spec.demand.sharedDevices of the Environment nor listed by a "
                "NodeOverlay, so no node is requested for the pod",
                "declare it in either",
            )
    return None


def _of_devices(resources: Iterable[Asked], counts: Mapping[str, int]) -> GPUShare | None:
    """The whole GPUs, or the declared parts of GPUs, that a pod requests."""
    for each in resources:
        if each.form is Form.WHOLE:
            return GPUShare(milli=GPU_MILLI, devices=counts[each.field])
        if each.form is Form.DECLARED:
            return GPUShare(resource=each.field, devices=counts[each.field])
    return None
