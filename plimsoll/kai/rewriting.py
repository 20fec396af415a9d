"""Rewrites workloads whose pods share GPUs by KAI's annotations, or request whole ones of a device plugin, to claims of
the devices of NVIDIA's driver for Dynamic Resource Allocation, and names everything that is lost."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import chain, count
from typing import Any, Final, NamedTuple

from plimsoll.cluster.pods import PodRequest, read_request
from plimsoll.errors import InvalidObjectError
from plimsoll.kai.sharing import UNLIMITED, NotConvertedError, Sharing
from plimsoll.kaito import Losses
from plimsoll.labels import GPU_RESOURCE, MIG_PREFIX, QUEUE, is_part_of_gpu
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import (
    CONTAINER_PREFIXES,
    GPU_FRACTION_CONTAINER,
    MPS,
    SHARE_ANNOTATIONS,
    GPUShare,
    is_share_annotation,
)
from plimsoll.model.meta import identify
from plimsoll.policy import PodTemplate, templates_of
from plimsoll.quantity import parse_devices

DRIVER: Final = "gpu.nvidia.com"
"""The driver, and the DeviceClass that its chart creates."""
CLAIM: Final = "gpus"
"""Name of the claim in a pod."""
REQUEST: Final = "gpu"
_OWN_DEVICE: Final = f"{DRIVER}/uuid"
"""Attribute by which the GPUs of a claim are different ones."""
_BY_DISCOVERY: Final = "nvidia.com/"
_TEMPLATE: Final = "ResourceClaimTemplate"
_YOURS: Final = "write the claim yourself"


class Rewritten(NamedTuple):
    """One object, with the templates of its claims before it."""

    source: str
    """`Kind namespace/name`"""
    manifests: tuple[dict[str, Any], ...]
    """As given if nothing in it asks for GPUs, or something is refused."""
    losses: Losses


def to_claims(manifests: Iterable[Mapping[str, Any]], sharing: Sharing) -> list[Rewritten]:
    """Rewrites the objects that have pods with GPUs; the others stay, as do those that were rewritten before. Raises no
    errors for values as in JSON, whose keys are strings."""
    given = list(manifests)
    taken = {(_text(each, "namespace"), _text(each, "name")) for each in given if each.get("kind") == _TEMPLATE}
    return [_rewritten(each, sharing, taken) for each in given]


def _rewritten(manifest: Mapping[str, Any], sharing: Sharing, taken: set[tuple[str, str]]) -> Rewritten:
    """`taken` are namespaces and names of templates, to which those of the object are added."""
    losses = Losses()
    made = deepcopy(dict(manifest))
    templates = []
    namespace = _text(manifest, "namespace")
    for pods in list(templates_of(made)):
        name = _free_name(_text(manifest, "name") or _text(manifest, "generateName"), namespace, taken)
        devices = _Pods(pods, sharing, losses).claim(manifest, name)
        if devices is not None:
            taken.add((namespace, name))
            templates.append(_template(namespace, name, devices))
    if losses.refused:
        return Rewritten(identify(manifest), (dict(manifest),), losses)
    return Rewritten(identify(manifest), (*templates, made), losses)


def _free_name(owner: str, namespace: str, taken: set[tuple[str, str]]) -> str:
    plain = f"{owner.rstrip('-')[:200]}-{CLAIM}".lstrip("-")
    names = chain([plain], (f"{plain}-{number}" for number in count(2)))
    return next(name for name in names if (namespace, name) not in taken)


def _text(manifest: Mapping[str, Any], field: str) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get(field) or "") if isinstance(metadata, Mapping) else ""


def _template(namespace: str, name: str, devices: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": _TEMPLATE,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {"spec": {"devices": devices}},
    }


class _Pods:
    """The pods of one template, which are changed in place."""

    def __init__(self, pods: PodTemplate, sharing: Sharing, losses: Losses) -> None:
        self._pods, self._sharing, self._losses = pods, sharing, losses
        self._at = f"{pods.path}." if pods.path else ""

    def claim(self, manifest: Mapping[str, Any], name: str) -> dict[str, Any] | None:
        """Lets the pods claim their GPUs by the template of that name; `devices` of it, None where they ask for none or
        something is refused."""
        share = self._share()
        if share is None or not self._can_change(manifest):
            return None
        try:
            devices = self._whole() if share.whole else self._shared(share)
        except NotConvertedError as error:
            self._losses.refuse(self._field("metadata.annotations", error.field), error.why, error.remedy)
            return None
        if devices is not None:
            self._tell(share, devices)
            self._use(name)
        return devices

    def _share(self) -> GPUShare | None:
        """What the pods ask for of GPUs of NVIDIA by other means than claims."""
        if any(key.startswith(CONTAINER_PREFIXES) for key in self._pods.annotations):
            self._losses.refuse(self._field("metadata.annotations"), "requests by container are not converted", _YOURS)
            return None
        try:
            pod = Pod.read({"metadata": {**self._pods.metadata, "name": "template"}, "spec": self._pods.spec})
        except InvalidObjectError as error:
            self._losses.refuse(self._field("spec"), str(error), "correct it")
            return None
        request = read_request(pod)
        if request.refusal is not None and (request.uncertain or not request.has_claims):
            self._losses.refuse(self._field("metadata"), request.refusal.problem, request.refusal.hint)
        else:
            self._tell_of_parts(request)
        share = request.share
        return None if share is None or share.claims or share.resource else share

    def _can_change(self, manifest: Mapping[str, Any]) -> bool:
        metadata = manifest.get("metadata")
        owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
        if owners or self._pods.spec.get("nodeName"):
            self._losses.refuse("", "is of a controller, or bound to a node", "convert what creates it, and omit it")
        elif self._pods.spec.get("resourceClaims"):
            self._losses.refuse(self._field("spec.resourceClaims"), "the pods have other claims, too", _YOURS)
        elif any(_gpus(each) for each in self._containers("initContainers")):
            self._losses.refuse(self._field("spec.initContainers"), "GPUs of init containers are not converted", _YOURS)
        else:
            return True
        return False

    def _shared(self, share: GPUShare) -> dict[str, Any]:
        """Raises NotConvertedError."""
        if share.by_tensor_fusion or (share.milli is None) == (share.memory_mib is None):
            raise NotConvertedError("", "only gpu-fraction and gpu-memory of KAI are converted", _YOURS)
        wanted = self._pods.annotations.get(GPU_FRACTION_CONTAINER)
        containers = [each for each in self._containers("containers") if wanted in (None, each.get("name"))]
        if not containers:
            raise NotConvertedError(GPU_FRACTION_CONTAINER, "is not one of spec.containers", "name one of them")
        devices = _devices([(REQUEST, share.devices, self._sharing.of_share(share))], distinct=share.devices > 1)
        _claimed(containers[0], {"name": CLAIM})
        return devices

    def _whole(self) -> dict[str, Any]:
        """One request for each container that requests GPUs."""
        asking = [(each, number) for each in self._containers("containers") if (number := _gpus(each))]
        several = len(asking) > 1
        requests = []
        for container, number in asking:
            request = str(container.get("name")) if several else REQUEST
            requests.append((request, number, self._sharing.of_whole()))
            _claimed(container, {"name": CLAIM, **({"request": request} if several else {})})
        shared = bool(self._sharing.shares) and sum(number for _, number in asking) > 1
        return _devices(requests, distinct=shared)

    def _containers(self, kind: str) -> Iterator[dict[str, Any]]:
        given = self._pods.spec.get(kind)
        yield from (each for each in given if isinstance(each, dict)) if isinstance(given, list) else ()

    def _use(self, name: str) -> None:
        spec: Any = self._pods.spec
        spec["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": name}]
        metadata: Any = self._pods.metadata
        kept = {key: value for key, value in self._pods.annotations.items() if not is_share_annotation(key)}
        metadata.pop("annotations", None)
        if kept:
            metadata["annotations"] = kept

    def _tell(self, share: GPUShare, devices: Mapping[str, Any]) -> None:
        """Names what claims do otherwise."""
        if not share.whole:
            self._tell_of_share(share, devices["requests"][0]["exactly"]["capacity"]["requests"])
        elif self._sharing.mode == UNLIMITED:
            self._losses.warn(
                self._field("spec.containers"),
                "the driver shares GPUs without limit, so other claims may get the same GPUs",
                "keep nodes for whole GPUs apart, or set another --consumable-shares",
            )
        for key in self._pods.spec.get("nodeSelector") or {}:
            if key.startswith(_BY_DISCOVERY):
                self._losses.warn(
                    self._field("spec.nodeSelector", key),
                    "is a label of GPU Feature Discovery, which nodes of the driver may lack",
                    "select the devices in the claim, such as by productName",
                )

    def _tell_of_parts(self, request: PodRequest) -> None:
        """Names the parts of GPUs that the pods go on to request of a device plugin."""
        for resource, number in request.devices:
            if is_part_of_gpu(resource):
                remedy = _YOURS
                if resource.startswith(MIG_PREFIX):
                    profile = resource.removeprefix(MIG_PREFIX).replace("gb.", "gb+")
                    remedy = f"claim {number} of mig.nvidia.com whose profile is {profile!r:.40}"
                why = f"{resource} stays as it is, and nodes of the driver do not announce it"
                self._losses.warn(self._field("spec.containers"), why, remedy)

    def _tell_of_share(self, share: GPUShare, amounts: Mapping[str, str]) -> None:
        annotations, mode = self._pods.annotations, self._sharing.mode
        field = self._field("metadata.annotations", next(each for each in SHARE_ANNOTATIONS if each in annotations))
        if not self._sharing.is_exact(share):
            self._losses.warn(field, f"{share} becomes {amounts['shares']} of {mode} shares, which is more")
        if self._sharing.shares and "memory" in amounts:
            self._losses.warn(field, f"the claim also takes one of the {mode} shares of its GPU")
        if annotations.get(MPS) == "true":
            field = self._field("metadata.annotations", MPS)
            self._losses.warn(field, "the driver runs no MPS for shared claims, so memory is not limited")
        if QUEUE in self._pods.labels:
            self._losses.warn(
                self._field("metadata.labels", QUEUE),
                f"KAI counts whole GPUs of a claim in the queue, {share.devices} here, not {share}",
                "raise the quota and the limit of the queue",
            )
        scheduler = self._pods.spec.get("schedulerName")
        if scheduler not in (None, "default-scheduler"):
            self._losses.warn(
                self._field("spec.schedulerName"),
                f"{scheduler!r:.40} has to allocate parts of devices, as kube-scheduler does since 1.36, and KAI and "
                "`plimsoll bind` do not",
                "remove it",
            )

    def _field(self, path: str, key: str = "") -> str:
        return f"{self._at}{path}" + (f"[{key}]" if key else "")


def _devices(requests: Iterable[tuple[str, int, Mapping[str, str]]], *, distinct: bool) -> dict[str, Any]:
    """`devices` of a claim with these names, numbers of GPUs, and amounts of each. `distinct`: all are different GPUs,
    as a GPU that is shared meets a claim several times."""
    made = []
    for name, number, amounts in requests:
        capacity = {"capacity": {"requests": dict(amounts)}} if amounts else {}
        made.append({"name": name, "exactly": {"deviceClassName": DRIVER, "count": number, **capacity}})
    return {"requests": made, **({"constraints": [{"distinctAttribute": _OWN_DEVICE}]} if distinct else {})}


def _gpus(container: Mapping[str, Any]) -> int:
    """GPUs that a container requests; those that cannot be counted are refused before."""
    resources = container.get("resources")
    parts = [resources.get(part) for part in ("limits", "requests")] if isinstance(resources, Mapping) else []
    amounts = [part[GPU_RESOURCE] for part in parts if isinstance(part, Mapping) and GPU_RESOURCE in part]
    return parse_devices(amounts[0]) if amounts else 0


def _claimed(container: dict[str, Any], use: Mapping[str, str]) -> None:
    """Lets a container use the claim, or one request of it, instead of the resource."""
    kept: dict[str, Any] = {}
    for part, amounts in (container.get("resources") or {}).items():
        left = amounts
        if isinstance(amounts, Mapping):
            left = {name: amount for name, amount in amounts.items() if name != GPU_RESOURCE}
        if left:
            kept[part] = left
    container["resources"] = {**kept, "claims": [*kept.get("claims", ()), dict(use)]}
