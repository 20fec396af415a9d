"""What exists in a cluster as the settings of a stack that takes it over without a change."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from plimsoll.labels import WORKSPACE
from plimsoll.model.api import NodeProfileSpec
from plimsoll.model.dra import DeviceClassSpec, ResourceClaimTemplateSpec
from plimsoll.model.kai import QueueSpec
from plimsoll.model.karpenter import NodePoolSpec
from plimsoll.model.meta import Declared, describe_errors, dig, section

_POOL_FIELDS: Final = ("disruption", "limits", "weight", "replicas")
_NODE_FIELDS: Final = (
    *("requirements", "nodeClassRef", "taints", "startupTaints"),
    *("expireAfter", "terminationGracePeriod"),
)
_NODE_METADATA: Final = ("labels", "annotations")
_QUEUE_FIELDS: Final = frozenset(field.alias or name for name, field in QueueSpec.model_fields.items())
_PROFILE_FIELDS: Final = frozenset(field.alias or name for name, field in NodeProfileSpec.model_fields.items())
_CLASS_FIELDS: Final = frozenset(field.alias or name for name, field in DeviceClassSpec.model_fields.items())
_OF_STACK: Final = ("writeAllAmounts", "name", "namespace")
_LABELED: Final = ("Queue", "ResourceClaimTemplate")
"""Kinds whose settings have `labels` of the object, such as KAI's node pool of a Queue."""
_CLAIMS: Final = ("DeviceClass", "ResourceClaimTemplate")
_CLAIMS_VERSION: Final = "resource.k8s.io/v1"
_HELM: Final = "meta.helm.sh/release-name"
"""Annotation of what Helm has made, as charts of drivers make DeviceClasses."""
_MODELS: Final[Mapping[str, type[Declared]]] = {
    "DeviceClass": DeviceClassSpec,
    "ResourceClaimTemplate": ResourceClaimTemplateSpec,
    "NodePool": NodePoolSpec,
    "NodeProfile": NodeProfileSpec,
    "Queue": QueueSpec,
}
_KAITO_FIELDS: Final = ("resource", "inference", "tuning")


class Adoption(NamedTuple):
    """The settings of a stack of the layer `objects`, and what is left to others."""

    settings: dict[str, dict[str, Any]]
    """Such as `nodePools` and `queues`, by name, as in a stack file."""
    left_out: list[str]
    """A line on each object that a stack cannot take over without a change."""


def adopt(manifests: Iterable[Mapping[str, Any]]) -> Adoption:
    """The NodePools, NodeProfiles, Queues, DeviceClasses, ResourceClaimTemplates and Workspaces of KAITO among the
    manifests, each with `import`. Not taken over are NodeProfiles that declare nothing, which the controller made, and
    classes and templates of claims that a chart or a controller made."""
    settings: dict[str, dict[str, Any]] = {plural: {} for plural, _ in _CONVERSIONS.values()}
    left_out: list[str] = []
    for manifest in sorted(manifests, key=_place):
        if _only_learned(manifest) or _of_others(manifest):
            continue
        plural, convert = _CONVERSIONS[manifest["kind"]]
        if "deletionTimestamp" in manifest["metadata"]:
            left_out.append(f"{manifest['kind']} {_place(manifest)}: metadata.deletionTimestamp: is being deleted")
            continue
        fields, unknown = convert(manifest)
        if unknown:
            left_out.append(f"{manifest['kind']} {_place(manifest)}: {', '.join(unknown)}: not a field of the stack's")
            continue
        if wrong := _objection(manifest, fields):
            left_out.append(f"{manifest['kind']} {_place(manifest)}: {wrong}")
            continue
        around = {"labels": {**labels}} if (labels := _labels(manifest)) else {}
        settings[plural][_key(manifest, settings[plural])] = {**around, **fields, "import": True}
    return Adoption({name: objects for name, objects in settings.items() if objects}, left_out)


def _only_learned(manifest: Mapping[str, Any]) -> bool:
    """Whether it is a NodeProfile that declares nothing: the controller made it."""
    spec = manifest.get("spec") or {}
    return manifest["kind"] == "NodeProfile" and not any(
        spec.get(field) for field in ("labels", "allocatable", "claimDevices")
    )


def _of_others(manifest: Mapping[str, Any]) -> bool:
    """Whether it is a class or a template of claims that Helm or a controller maintains, such as Plimsoll's."""
    metadata = manifest["metadata"]
    owned = _HELM in (metadata.get("annotations") or {}) or WORKSPACE in (metadata.get("labels") or {})
    return manifest["kind"] in _CLAIMS and (owned or bool(metadata.get("ownerReferences")))


def _labels(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of the object that its settings declare: they stay once `import` is removed."""
    return section(manifest, "metadata", "labels") if manifest["kind"] in _LABELED else {}


def _node_pool(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    spec = manifest.get("spec") or {}
    template = spec.get("template") or {}
    node, labels = template.get("spec") or {}, template.get("metadata") or {}
    unknown = [
        *(f"spec.{name}" for name in spec if name not in (*_POOL_FIELDS, "template")),
        *(f"spec.template.spec.{name}" for name in node if name not in _NODE_FIELDS),
        *(f"spec.template.metadata.{name}" for name in labels if name not in _NODE_METADATA),
    ]
    return {**labels, **node, **{name: spec[name] for name in _POOL_FIELDS if name in spec}}, unknown


def _node_profile(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    spec = manifest.get("spec") or {}
    return {**spec}, [f"spec.{name}" for name in spec if name not in _PROFILE_FIELDS]


def _queue(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    spec = manifest.get("spec") or {}
    return {**spec, "writeAllAmounts": False}, [f"spec.{name}" for name in spec if name not in _QUEUE_FIELDS]


def _device_class(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    spec = manifest.get("spec") or {}
    return {**spec}, [f"spec.{name}" for name in spec if name not in _CLASS_FIELDS]


def _claim_template(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    claim, around = spec.get("spec") or {}, dict(spec.get("metadata") or {})
    around.pop("creationTimestamp", None)
    unknown = [
        *(f"spec.{name}" for name in spec if name not in ("metadata", "spec")),
        *(f"spec.spec.{name}" for name in claim if name != "devices"),
    ]
    named = {"name": metadata["name"], "namespace": metadata.get("namespace", "default")}
    return {**named, **({"metadata": around} if around else {}), **claim}, unknown


def _objection(manifest: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """What a stack would refuse of the object, or change in it; empty: nothing."""
    if manifest["kind"] not in _MODELS:
        return ""  # a Workspace of KAITO is declared as it is
    if manifest["kind"] in _CLAIMS and manifest.get("apiVersion") != _CLAIMS_VERSION:
        return f"apiVersion: is not {_CLAIMS_VERSION}, which Kubernetes has since 1.34"
    if "spec" not in manifest:
        return "spec: is absent, and a stack would add it"
    model = _MODELS[manifest["kind"]]
    try:
        spec = model.model_validate({name: value for name, value in fields.items() if name not in _OF_STACK})
    except ValidationError as error:
        return describe_errors(error)
    declared = spec.template_manifest() if isinstance(spec, ResourceClaimTemplateSpec) else spec.manifest()
    changed = ", ".join(_changes(manifest["spec"], declared, "spec"))
    return f"{changed}: a stack would change it" if changed else ""


def _changes(live: Any, declared: Any, path: str, *, within_list: bool = False) -> Iterator[str]:
    """Paths that an update would add or change. It keeps what is not declared, but for fields of a list's items."""
    if isinstance(live, dict) and isinstance(declared, dict):
        for name in sorted(declared.keys() - live.keys()):
            yield f"{path}.{name}"
        for name, value in live.items():
            if name in declared:
                yield from _changes(value, declared[name], f"{path}.{name}", within_list=within_list)
            elif within_list and value not in (None, "", [], {}):
                yield f"{path}.{name}"
    elif isinstance(live, list) and isinstance(declared, list) and len(live) == len(declared):
        for at, (item, wanted) in enumerate(zip(live, declared, strict=True)):
            yield from _changes(item, wanted, f"{path}[{at}]", within_list=True)
    elif live != declared:
        yield path


def _kaito(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    metadata = manifest["metadata"]
    own = {"apiVersion", "kind", "metadata", "status"}
    return (
        {
            "apiVersion": manifest["apiVersion"],
            "name": metadata["name"],
            "namespace": metadata.get("namespace", "default"),
            "fields": {name: manifest[name] for name in _KAITO_FIELDS if name in manifest},
        },
        [name for name in manifest if name not in own and name not in _KAITO_FIELDS],
    )


_CONVERSIONS: Final = {
    "NodePool": ("nodePools", _node_pool),
    "NodeProfile": ("nodeProfiles", _node_profile),
    "Queue": ("queues", _queue),
    "DeviceClass": ("deviceClasses", _device_class),
    "ResourceClaimTemplate": ("resourceClaimTemplates", _claim_template),
    "Workspace": ("kaitoWorkspaces", _kaito),
}


def _key(manifest: Mapping[str, Any], taken: Mapping[str, Any]) -> str:
    """The name; with the namespace where another has the same, and a number where that is taken, too."""
    name: str = manifest["metadata"]["name"]
    longer = f"{dig(manifest, 'metadata.namespace')}-{name}"
    numbered = (f"{longer}-{number}" for number in count(2))
    return next(key for key in chain((name, longer), numbered) if key not in taken)


def _place(manifest: Mapping[str, Any]) -> str:
    namespace = dig(manifest, "metadata.namespace")
    return f"{namespace}/{manifest['metadata']['name']}" if namespace else str(manifest["metadata"]["name"])
