"""The CustomResourceDefinitions of Plimsoll's kinds, generated from the models."""

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel

from plimsoll.components.specs.schema import Schema, structural
from plimsoll.labels import GROUP, KEY_NAME, KEY_PREFIX, LABEL_VALUE
from plimsoll.model.api import (
    ACCELERATOR_NEEDS_COUNT,
    ADAPTER_NEEDS_NAME,
    ADAPTERS_TWICE,
    BY_PRICE_OF_TYPES,
    CLAIMS_WHOLE,
    COUNT_IMMUTABLE,
    HEADROOM_NEEDS_BUFFERS,
    IMMUTABLE,
    INFERENCE_XOR_TUNING,
    INSTANCE_TYPE_IMMUTABLE,
    INSTANCE_TYPES_KEPT,
    KAI_NAMESPACES,
    LABEL_SELECTOR_IMMUTABLE,
    MIG_NEEDS_PROFILE,
    MOVE_BACK_OF_SEVERAL,
    NAMES_NO_OBJECTS,
    NAMESPACE_OF_KAI,
    NEEDS_PRESET_OR_TEMPLATE,
    OUTPUT_NEEDS_ONE,
    PAID_XOR_PAID,
    PRESET_ONLY,
    PRESET_XOR_TEMPLATE,
    SHARING_NEEDS_TRIGGERS,
    SOURCE_NEEDS_ONE,
    TEMPLATE_KEPT,
    TUNING_KEPT,
    TYPE_XOR_TYPES,
    EnvironmentSpec,
    EnvironmentStatus,
    GPUDemandStatus,
    NodeProfileSpec,
    NodeProfileStatus,
    WorkspaceSpec,
    WorkspaceStatus,
)

VERSION: Final = "v1alpha1"
WORKSPACES: Final = f"workspaces.{GROUP}"
ENVIRONMENTS: Final = f"environments.{GROUP}"
GPU_DEMANDS: Final = f"gpudemands.{GROUP}"

_KEY: Final[Schema] = {"minLength": 1, "maxLength": 317, "pattern": f"^(?:{KEY_PREFIX}/)?{KEY_NAME}$"}
"""A label's key, with its bounds: a DNS name of 253 characters, a slash, 63 characters."""
_VALUE: Final[Schema] = {"maxLength": 63, "pattern": f"^{LABEL_VALUE}$"}
_TEMPLATE: Final[Schema] = {
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "required": ["containers"],
            "properties": {
                "containers": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 1000,
                    "items": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                        "required": ["name"],
                        "properties": {"name": {"type": "string", "maxLength": 63}},
                    },
                }
            },
        }
    },
}
"""What every pod template has."""
_CONDITIONS: Final[Schema] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            "type": {"type": "string", "maxLength": 316},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
            "message": {"type": "string", "maxLength": 32768},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
    },
}
"""metav1.Condition, as in the conventions of the Kubernetes API."""


def definitions() -> tuple[dict[str, Any], ...]:
    """All definitions, Environment's first."""
    return (environment_definition(), workspace_definition(), gpu_demand_definition(), node_profile_definition())


def workspace_definition() -> dict[str, Any]:
    spec = structural(WorkspaceSpec)
    spec["x-kubernetes-validations"] = [
        _rule("!(has(self.inference) && has(self.tuning))", INFERENCE_XOR_TUNING),
        _rule(f"({_required_by('self', 'oldSelf')}) && ({_required_by('oldSelf', 'self')})", LABEL_SELECTOR_IMMUTABLE),
        *(_unchanged(parent, field, message) for parent, field, message in IMMUTABLE),
        # It may be added and removed if that changes nothing: with inference it has no effect, and otherwise absent
        # means 1.
        _rule(
            f"({_count('self')}) == ({_count('oldSelf')}) || has(self.inference) &&"
            f" !({_has('self', 'resource', 'count')} && {_has('oldSelf', 'resource', 'count')})",
            COUNT_IMMUTABLE,
        ),
        _rule(
            f"({_has('self', 'inference', 'template')}) == ({_has('oldSelf', 'inference', 'template')})", TEMPLATE_KEPT
        ),
        _rule("has(self.tuning) == has(oldSelf.tuning)", TUNING_KEPT),
        # The policy rules on modes decide whether it may be removed: with existing nodes (BYO).
        _rule(
            f"!({_has('self', 'resource', 'instanceType')} && self.resource.instanceType != ''"
            f" && {_has('oldSelf', 'resource', 'instanceType')} && oldSelf.resource.instanceType != '')"
            " || self.resource.instanceType.lowerAscii() == oldSelf.resource.instanceType.lowerAscii()",
            INSTANCE_TYPE_IMMUTABLE,
        ),
        _rule(
            f"!({_has('self', 'resource', 'instanceType')} && self.resource.instanceType != ''"
            f" && {_has('oldSelf', 'resource', 'instanceTypes')} && size(oldSelf.resource.instanceTypes) > 0)",
            INSTANCE_TYPES_KEPT,
        ),
    ]
    spec["properties"]["resource"]["x-kubernetes-validations"] = [
        _rule(
            "!(has(self.instanceType) && self.instanceType != '' && has(self.instanceTypes)"
            " && size(self.instanceTypes) > 0)",
            TYPE_XOR_TYPES,
        ),
        _rule("!(has(self.capacityType) && has(self.capacityTypes) && size(self.capacityTypes) > 0)", PAID_XOR_PAID),
        _rule(
            "!has(self.byPrice) || !self.byPrice || has(self.instanceTypes) && size(self.instanceTypes) > 0",
            BY_PRICE_OF_TYPES,
        ),
        _rule(
            "!has(self.moveBackSeconds) || has(self.instanceTypes) && size(self.instanceTypes) > 0"
            " || has(self.capacityTypes) && size(self.capacityTypes) > 0",
            MOVE_BACK_OF_SEVERAL,
        ),
    ]
    spec["properties"]["inference"]["x-kubernetes-validations"] = [
        _rule("!(has(self.preset) && has(self.template))", PRESET_XOR_TEMPLATE),
        _rule("has(self.preset) || has(self.template)", NEEDS_PRESET_OR_TEMPLATE),
        _rule(
            "!(has(self.template) && (has(self.config) || has(self.contextLength) || has(self.pods)"
            " || has(self.adapters) && size(self.adapters) > 0))",
            PRESET_ONLY,
        ),
        _rule(
            "!has(self.adapters) || self.adapters.all(a, !has(a.source.name) ||"
            " self.adapters.exists_one(b, has(b.source.name) && b.source.name == a.source.name))",
            ADAPTERS_TWICE,
        ),
    ]
    # The scale subresource fails if the number is absent. The controller sets all other defaults.
    spec["properties"]["inference"]["properties"]["replicas"]["default"] = 1
    _add_rules_of_parts(spec["properties"])
    spec["properties"]["inference"]["properties"]["template"] |= _TEMPLATE
    selector = spec["properties"]["resource"]["properties"]["labelSelector"]["properties"]
    selector["matchLabels"]["additionalProperties"] |= _VALUE
    selector["matchLabels"]["x-kubernetes-validations"] = [
        _rule(f"self.all(key, key.matches(r'{_KEY['pattern']}'))", "not a label key")
    ]
    requirement = selector["matchExpressions"]["items"]["properties"]
    requirement["key"] |= _KEY
    # A set, so that the order of the values does not matter, and selectors can be compared at low cost.
    requirement["values"] |= {"x-kubernetes-list-type": "set"}
    requirement["values"]["items"] |= _VALUE
    selector["matchExpressions"]["maxItems"] = 64
    selector["matchExpressions"]["items"]["x-kubernetes-validations"] = [
        _rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "operators In and NotIn need at least one value, the others take none",
        )
    ]
    return _definition(
        "Workspace",
        namespaced=True,
        short_names=["ws"],
        description="An inference workload that needs whole nodes.",
        spec=spec,
        status=_status(WorkspaceStatus),
        columns=[
            _column("Replicas", "integer", ".spec.inference.replicas"),
            _column("Nodes", "integer", ".status.targetNodeCount"),
            _column("Instance", "string", ".spec.resource.instanceType"),
            _column("Provisioned", "string", ".status.provisioning.instanceType", wide=True),
            _column("Preset", "string", ".spec.inference.preset.name", wide=True),
            _column("Queue", "string", ".spec.queue", wide=True),
            _column("ResourceReady", "string", _condition("ResourceReady", "status")),
            _column("WorkloadReady", "string", _condition("WorkloadReady", "status")),
            _column("Reason", "string", _condition("ResourceReady", "reason")),
        ],
        # For `kubectl scale`, HorizontalPodAutoscalers and KEDA.
        subresources={
            "scale": {
                "specReplicasPath": ".spec.inference.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            }
        },
    )


def _add_rules_of_parts(spec: Schema) -> None:
    """The rules of partition, adapters and tuning."""
    resource = spec["resource"]
    resource["x-kubernetes-validations"] = [
        *resource.get("x-kubernetes-validations", ()),
        _rule("!has(self.devices) || self.devices != 'claim' || !has(self.partition)", CLAIMS_WHOLE),
    ]
    resource["properties"]["partition"]["x-kubernetes-validations"] = [
        _rule("self.mode != 'mig' || (has(self.profile) && !has(self.count))", MIG_NEEDS_PROFILE),
        _rule("self.mode != 'accelerator' || (has(self.count) && !has(self.profile))", ACCELERATOR_NEEDS_COUNT),
    ]
    adapter = spec["inference"]["properties"]["adapters"]["items"]
    adapter["x-kubernetes-validations"] = [_rule("has(self.source.name)", ADAPTER_NEEDS_NAME)]
    tuning = spec["tuning"]["properties"]
    for source in (adapter["properties"]["source"], tuning["input"]):
        urls = "(has(self.urls) && size(self.urls) > 0 ? 1 : 0)"
        source["x-kubernetes-validations"] = [
            _rule(f"(has(self.image) ? 1 : 0) + (has(self.volumeSource) ? 1 : 0) + {urls} == 1", SOURCE_NEEDS_ONE)
        ]
    tuning["output"]["x-kubernetes-validations"] = [
        _rule("has(self.image) != has(self.volumeSource)", OUTPUT_NEEDS_ONE)
    ]


def environment_definition() -> dict[str, Any]:
    spec = structural(EnvironmentSpec)
    mode = "(has(self.nodeAutoProvisioning) ? self.nodeAutoProvisioning : 'disabled')"
    spec["x-kubernetes-validations"] = [
        {
            "rule": f"!has(self.provisioner) || (self.provisioner == 'byo') == ({mode} == 'disabled')",
            "messageExpression": '"provisioner \'" + self.provisioner + "\' does not fit nodeAutoProvisioning \'"'
            f" + {mode} + \"': 'byo' goes with 'disabled', every other one with 'enabled'\"",
        }
    ]
    exemption = spec["properties"]["policies"]["properties"]["exemptions"]["items"]
    exemption["x-kubernetes-validations"] = [
        _rule("has(self.kind) || has(self.namespace) || has(self.name)", NAMES_NO_OBJECTS)
    ]
    spec["properties"]["nodePoolLabelKey"] |= {"pattern": f"^(?:(?:{KEY_PREFIX}/)?{KEY_NAME})?$"}
    _add_rules_of_demand(spec["properties"]["demand"])
    return _definition(
        "Environment",
        namespaced=False,
        short_names=["penv"],
        description="One cluster with its settings.",
        spec=spec,
        status=_status(EnvironmentStatus),
        columns=[
            _column("AutoProvisioning", "string", ".spec.nodeAutoProvisioning"),
            _column("NodeClaims", "integer", ".status.nodeClaims"),
            _column("Workloads", "integer", ".status.workloads"),
        ],
    )


def _add_rules_of_demand(demand: Schema) -> None:
    provisioner = "(has(self.provisioner) ? self.provisioner : 'none')"
    demand["x-kubernetes-validations"] = [
        _rule(f"{_none('headroom')} || {provisioner} == 'capacity-buffer'", HEADROOM_NEEDS_BUFFERS),
        _rule(f"{_none('sharedDevices')} || {provisioner} in ['none', 'trigger-pod']", SHARING_NEEDS_TRIGGERS),
    ]
    fields = demand["properties"]
    fields["namespace"]["x-kubernetes-validations"] = [_rule(f"!(self in {list(KAI_NAMESPACES)})", NAMESPACE_OF_KAI)]
    fields["labelPrefix"] |= {"pattern": f"^{KEY_PREFIX}$"}
    fields["sharedDevices"]["items"]["properties"]["resource"] |= {"pattern": f"^{KEY_PREFIX}/{KEY_NAME}$"}


def _none(field: str) -> str:
    return f"!has(self.{field}) || size(self.{field}) == 0"


def gpu_demand_definition() -> dict[str, Any]:
    return _definition(
        "GPUDemand",
        namespaced=False,
        short_names=["gpud"],
        description="GPU capacity that a class of pods needs and the cluster lacks. Only the controller writes it.",
        spec={"type": "object", "description": "Always empty: a GPUDemand has only a status."},
        status=structural(GPUDemandStatus, bounded=False),
        columns=[
            _column("Phase", "string", ".status.phase"),
            _column("Pods", "integer", ".status.podCount"),
            _column("GPUs", "integer", ".status.gpus"),
            _column("Bound", "integer", ".status.leastGpus"),
            _column("Objects", "integer", ".status.objectCount", wide=True),
            _column("Reasons", "string", ".status.reasons", wide=True),
        ],
    )


def node_profile_definition() -> dict[str, Any]:
    spec = structural(NodeProfileSpec)
    spec["x-kubernetes-validations"] = [
        _rule(
            "self.nodePool == oldSelf.nodePool && self.instanceType == oldSelf.instanceType",
            "nodePool and instanceType cannot be changed: delete the NodeProfile and create another",
        )
    ]
    return _definition(
        "NodeProfile",
        namespaced=False,
        short_names=["nprof"],
        description="What nodes of an instance type in a NodePool offer, declared and learned from nodes that existed.",
        spec=spec,
        status=structural(NodeProfileStatus, bounded=False),
        columns=[
            _column("NodePool", "string", ".spec.nodePool"),
            _column("InstanceType", "string", ".spec.instanceType"),
            _column("Learned", "string", ".status.learned.devices"),
            _column("Seen", "date", ".status.learned.seen"),
        ],
    )


def _definition(
    kind: str,
    *,
    namespaced: bool,
    short_names: list[str],
    description: str,
    spec: Schema,
    status: Schema,
    columns: Iterable[dict[str, Any]],
    subresources: dict[str, Any] | None = None,
) -> dict[str, Any]:
    singular = kind.lower()
    plural = f"{singular}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": singular,
                "shortNames": short_names,
                "categories": ["plimsoll"],
            },
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}, **(subresources or {})},
                    "additionalPrinterColumns": [*columns, _column("Age", "date", ".metadata.creationTimestamp")],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "description": description,
                            "required": ["spec"],
                            "properties": {
                                "apiVersion": {"type": "string"},
                                "kind": {"type": "string"},
                                "metadata": {"type": "object"},
                                "spec": spec,
                                "status": status,
                            },
                        }
                    },
                }
            ],
        },
    }


def _status(model: type[BaseModel]) -> Schema:
    status = structural(model, bounded=False)
    status["properties"]["conditions"] = _CONDITIONS
    return status


def _rule(expression: str, message: str) -> dict[str, str]:
    return {"rule": expression, "message": message}


def _unchanged(parent: str, field: str, message: str) -> dict[str, str]:
    """A rule: the field is not added, removed or changed. Its parent may be absent."""
    before, after = _has("oldSelf", parent, field), _has("self", parent, field)
    # With `has`, because the apiserver's estimate of a rule's cost treats optionals (`?.`) as unbounded.
    return _rule(
        f"({after}) == ({before}) && (!({after}) || self.{parent}.{field} == oldSelf.{parent}.{field})", message
    )


def _required_by(one: str, other: str) -> str:
    """CEL expression: whether the selector of `other` has each requirement of that of `one`, as a label or an
    expression."""
    selector, others = f"{one}.resource.labelSelector", f"{other}.resource.labelSelector"
    labels, expressions = (
        [
            f"{_has(whole, 'resource', 'labelSelector')} && has({whole}.resource.labelSelector.{field})"
            for whole in (one, other)
        ]
        for field in ("matchLabels", "matchExpressions")
    )
    is_label = "{e}.operator == 'In' && has({e}.values) && size({e}.values) == 1"
    return (
        f"(!({labels[0]}) || {selector}.matchLabels.all(k,"
        f" {labels[1]} && k in {others}.matchLabels && {others}.matchLabels[k] == {selector}.matchLabels[k]"
        f" || {expressions[1]} && {others}.matchExpressions.exists(e,"
        f" e.key == k && {is_label.format(e='e')} && e.values[0] == {selector}.matchLabels[k])))"
        f" && (!({expressions[0]}) || {selector}.matchExpressions.all(e,"
        f" {is_label.format(e='e')} && {labels[1]}"
        f" && e.key in {others}.matchLabels && {others}.matchLabels[e.key] == e.values[0]"
        f" || {expressions[1]} && {others}.matchExpressions.exists(f, f.key == e.key && f.operator == e.operator"
        " && has(f.values) == has(e.values) && (!has(e.values) || f.values == e.values))))"
    )


def _count(whole: str) -> str:
    return f"{_has(whole, 'resource', 'count')} ? {whole}.resource.count : 1"


def _has(whole: str, parent: str, field: str) -> str:
    return f"has({whole}.{parent}) && has({whole}.{parent}.{field})"


def _column(name: str, kind: str, path: str, *, wide: bool = False) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path} | ({"priority": 1} if wide else {})


def _condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'
