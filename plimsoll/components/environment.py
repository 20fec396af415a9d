"""Environment: the settings of a cluster."""

from collections.abc import Mapping
from typing import Any, TypedDict

import pulumi

from plimsoll.components.component import Component, ObjectArgs, ObjectType, uid_of
from plimsoll.components.node_pool import NodeClassRefArgs, TaintArgs
from plimsoll.components.workspace import WeightsArgs
from plimsoll.labels import API_VERSION
from plimsoll.model.api import EnvironmentSpec


class LimitsArgs(TypedDict, total=False):
    gpus: pulumi.Input[int]
    nodes: pulumi.Input[int]
    deletions_per_tick: pulumi.Input[int]


class NamespaceAccessArgs(TypedDict, total=False):
    namespaces: pulumi.Input[list[pulumi.Input[str]]]
    node_pools: pulumi.Input[list[pulumi.Input[str]]]
    queues: pulumi.Input[list[pulumi.Input[str]]]
    instance_types: pulumi.Input[list[pulumi.Input[str]]]
    gpus: pulumi.Input[int]


class NodeClaimsArgs(TypedDict, total=False):
    node_class_ref: pulumi.Input[NodeClassRefArgs]
    taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    capacity_type: pulumi.Input[str]
    storage_gib: pulumi.Input[int]
    launch_deadline_seconds: pulumi.Input[int]
    registration_deadline_seconds: pulumi.Input[int]
    gpu_deadline_seconds: pulumi.Input[int]
    retry_seconds: pulumi.Input[int]
    retry_limit_seconds: pulumi.Input[int]


class DeclaredPresetArgs(TypedDict, total=False):
    name: pulumi.Input[str]
    aliases: pulumi.Input[list[pulumi.Input[str]]]
    repository: pulumi.Input[str]
    size_gib: pulumi.Input[float]
    config: pulumi.Input[dict[str, Any]]
    spans_nodes: pulumi.Input[bool]
    gated: pulumi.Input[bool]
    options: pulumi.Input[dict[str, pulumi.Input[str]]]


class HeadroomArgs(TypedDict):
    name: pulumi.Input[str]
    node_pool: pulumi.Input[str]
    instance_type: pulumi.Input[str]
    gpus: pulumi.Input[int]
    nodes: pulumi.Input[int]


class DemandArgs(TypedDict, total=False):
    provisioner: pulumi.Input[str]
    schedulers: pulumi.Input[list[pulumi.Input[str]]]
    assumed_share_milli: pulumi.Input[int]
    gpu_tflops: pulumi.Input[Mapping[str, pulumi.Input[float]]]
    namespace: pulumi.Input[str]
    image: pulumi.Input[str]
    scheduler_name: pulumi.Input[str]
    label_prefix: pulumi.Input[str]
    deadline_seconds: pulumi.Input[int]
    retries: pulumi.Input[int]
    retry_seconds: pulumi.Input[int]
    pause_seconds: pulumi.Input[int]
    retention_seconds: pulumi.Input[int]
    headroom: pulumi.Input[list[pulumi.Input[HeadroomArgs]]]


class CatalogArgs(TypedDict, total=False):
    aws_region: pulumi.Input[str]
    prices: pulumi.Input[dict[str, pulumi.Input[float]]]


class EstimatorArgs(TypedDict, total=False):
    utilization: pulumi.Input[float]
    utilization_by_product: pulumi.Input[dict[str, pulumi.Input[float]]]
    overhead_gib: pulumi.Input[float]
    activation_factor: pulumi.Input[float]
    weight_factor: pulumi.Input[float]
    context_length: pulumi.Input[int]
    kv_value_bytes: pulumi.Input[float]


class RuleSettingArgs(TypedDict, total=False):
    severity: pulumi.Input[str]
    options: pulumi.Input[dict[str, Any]]


class ExemptionArgs(TypedDict, total=False):
    rule: pulumi.Input[str]
    kind: pulumi.Input[str]
    namespace: pulumi.Input[str]
    name: pulumi.Input[str]
    reason: pulumi.Input[str]
    until: pulumi.Input[str]


class PoliciesArgs(TypedDict, total=False):
    admission: pulumi.Input[str]
    rules: pulumi.Input[dict[str, pulumi.Input[RuleSettingArgs]]]
    exemptions: pulumi.Input[list[pulumi.Input[ExemptionArgs]]]


class EnvironmentArgs(ObjectArgs, total=False):
    """The settings of a cluster."""

    node_auto_provisioning: pulumi.Input[str]
    provisioner: pulumi.Input[str]
    gpu_resource: pulumi.Input[str]
    limits: pulumi.Input[LimitsArgs]
    access: pulumi.Input[list[pulumi.Input[NamespaceAccessArgs]]]
    reserved_label_prefixes: pulumi.Input[list[pulumi.Input[str]]]
    admission: pulumi.Input[str]
    policies: pulumi.Input[PoliciesArgs]
    node_claims: pulumi.Input[NodeClaimsArgs]
    catalog: pulumi.Input[CatalogArgs]
    estimator: pulumi.Input[EstimatorArgs]
    queue_scheduler: pulumi.Input[str]
    inference_image: pulumi.Input[str]
    weights: pulumi.Input[WeightsArgs]
    presets: pulumi.Input[list[pulumi.Input[DeclaredPresetArgs]]]
    demand: pulumi.Input[DemandArgs]


class Environment(Component):
    """An Environment (plimsoll.dev/v1alpha1, cluster-scoped).

    The cluster refuses to delete it while capacity that the controller made for it lives. `environment` is the object.
    Raises InvalidArgumentError where an argument does not fit.
    """

    environment_name: pulumi.Output[str]
    """Name of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""

    def __init__(self, name: str, args: EnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Environment", name, args, opts)
        kind = ObjectType(API_VERSION, "Environment")
        self.environment = self._object(kind, args, EnvironmentSpec, EnvironmentSpec.manifest)
        self.environment_name = self.environment.metadata["name"]
        self.uid = uid_of(self.environment)
        self.register_outputs({"environmentName": self.environment_name, "uid": self.uid})
