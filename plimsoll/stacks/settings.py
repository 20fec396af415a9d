"""The configuration of a stack, validated as a whole before anything is declared."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pulumi
import yaml
from pulumi.runtime.config import CONFIG, is_config_secret
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from plimsoll.cluster.queues import check_queues
from plimsoll.components.specs import (
    ControllerSpec,
    GpuDiscoverySpec,
    MonitoringSpec,
    ServedNamespaces,
    ShareBinderSpec,
    TrainingRuntimeSpec,
)
from plimsoll.errors import PlimsollError
from plimsoll.model.api import (
    TRIGGER_NAMESPACE,
    CapacityGateSpec,
    DemandProvisioner,
    EnvironmentSpec,
    NodeProfileSpec,
    TriggerNamespace,
    WorkspaceSpec,
)
from plimsoll.model.dra import DeviceClassSpec, ResourceClaimTemplateSpec
from plimsoll.model.kai import QueueName, QueueSpec
from plimsoll.model.karpenter import NodePoolSpec
from plimsoll.model.meta import Declared, Severity, describe_errors

_TEXTS = ("layer", "triggerNamespace")
OF_STACK = ("import", "import_")
"""Settings of an object that the stack itself uses; they are not arguments of the component."""


class ObjectSettings(Declared):
    """Settings of one declared object."""

    name: str | None = None
    """Absent: the key; for the Environment, the stack's name."""
    patch_force: bool | None = None
    """Whether updates overwrite fields that others have changed."""
    import_: bool = Field(default=False, alias="import")
    """Whether the object exists: the first update imports it into the stack unchanged."""

    @model_validator(mode="after")
    def _annotates_imported(self) -> "ObjectSettings":
        if self.import_ and self.patch_force:
            raise ValueError(
                "patchForce is an annotation, and import leaves annotations as they are: remove import, which is"
                " not needed once the object is in the stack"
            )
        return self


class EnvironmentSettings(EnvironmentSpec, ObjectSettings):
    pass


class NodePoolSettings(NodePoolSpec, ObjectSettings):
    pass


class NodeProfileSettings(NodeProfileSpec, ObjectSettings):
    pass


class DeviceClassSettings(DeviceClassSpec, ObjectSettings):
    pass


class ResourceClaimTemplateSettings(ResourceClaimTemplateSpec, ObjectSettings):
    namespace: str = "default"
    labels: dict[str, str] = Field(default_factory=dict)


class QueueSettings(QueueSpec, ObjectSettings):
    write_all_amounts: bool = True
    """Whether amounts that are not set are written with their defaults."""
    labels: dict[str, str] = Field(default_factory=dict)


class WorkspaceSettings(WorkspaceSpec, ObjectSettings):
    namespace: str = "default"
    labels: dict[str, str] = Field(default_factory=dict)


class KaitoWorkspaceSettings(ObjectSettings):
    """A Workspace of KAITO, passed unchanged."""

    api_version: str = Field(default="kaito.sh/v1beta1", pattern=r"^kaito\.sh/v1[a-z0-9]*$")
    namespace: str = "default"
    fields: dict[str, Any]
    """`resource`, `inference` and `tuning`, as KAITO has them."""


class ClusterTrainingRuntimeSettings(TrainingRuntimeSpec, ObjectSettings):
    labels: dict[str, str] = Field(default_factory=dict)


class TrainingRuntimeSettings(ClusterTrainingRuntimeSettings):
    namespace: str = "default"


class ControllerSettings(ControllerSpec):
    service_account_annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the service account for a cloud identity, such as `eks.amazonaws.com/role-arn`. The Foundation
    creates the account."""


class Settings(Declared):
    """The configuration of a stack under its project's name."""

    layer: Literal["foundation", "environment", "objects"]
    """`objects`: without an Environment, and only what needs none: NodePools, NodeProfiles, queues, namespaces,
    DeviceClasses, ResourceClaimTemplates and KAITO's Workspaces."""
    trigger_namespace: TriggerNamespace = TRIGGER_NAMESPACE
    """For a foundation: `spec.demand.namespace` of the Environment; the foundation creates the namespace."""
    served_namespaces: ServedNamespaces | None = None
    """For a foundation: the existing namespaces in which the controller may create workloads; absent: all."""
    controller: ControllerSettings | None = None
    """For a foundation. Absent or empty: no controller is deployed."""
    environment: EnvironmentSettings = EnvironmentSettings()
    namespaces: tuple[str, ...] = ()
    capacity_gate: CapacityGateSpec | None = None
    gpu_discovery: GpuDiscoverySpec | None = None
    node_pools: dict[str, NodePoolSettings] = Field(default_factory=dict)
    node_profiles: dict[str, NodeProfileSettings] = Field(default_factory=dict)
    device_classes: dict[str, DeviceClassSettings] = Field(default_factory=dict)
    resource_claim_templates: dict[str, ResourceClaimTemplateSettings] = Field(default_factory=dict)
    share_binder: ShareBinderSpec | None = None
    """Absent or empty: `plimsoll bind` has no permissions."""
    monitoring: MonitoringSpec | None = None
    """Absent or empty: no alerts."""
    queues: dict[str, QueueSettings] = Field(default_factory=dict)
    cluster_queues: tuple[QueueName, ...] = ()
    """Leaf queues of the cluster that are declared elsewhere; TrainJobs may use them too."""
    workspaces: dict[str, WorkspaceSettings] = Field(default_factory=dict)
    kaito_workspaces: dict[str, KaitoWorkspaceSettings] = Field(default_factory=dict)
    """Workspaces of KAITO; KAITO's controller still serves them."""
    training_runtimes: dict[str, TrainingRuntimeSettings] = Field(default_factory=dict)
    cluster_training_runtimes: dict[str, ClusterTrainingRuntimeSettings] = Field(default_factory=dict)

    @field_validator("queues")
    @classmethod
    def _fit_together(cls, queues: dict[str, QueueSettings], info: ValidationInfo) -> dict[str, QueueSettings]:
        if any(queue.import_ for queue in queues.values()):
            return queues  # as others have made them
        declared = [
            {
                "apiVersion": "scheduling.run.ai/v2",
                "kind": "Queue",
                "metadata": {"name": queue.name or key, "labels": queue.labels},
                "spec": QueueSpec(**queue.model_dump(include={*QueueSpec.model_fields})).complete_manifest(),
            }
            for key, queue in queues.items()
        ]
        # A parent that is not declared here may be another stack's.
        parents = {queue.parent_queue for queue in queues.values() if queue.parent_queue}
        others = parents - {queue.name or key for key, queue in queues.items()}
        environment = info.data.get("environment", EnvironmentSettings())
        findings = check_queues(declared, known=others, label=environment.node_pool_label)
        errors = [finding.message for finding in findings if finding.severity is Severity.ERROR]
        if errors:
            raise ValueError("; ".join(errors))
        return queues

    @model_validator(mode="after")
    def _layers_apart(self) -> "Settings":
        given = self.model_fields_set - {"layer"}
        others = sorted(given - {"trigger_namespace", "served_namespaces", "controller"})
        if self.layer == "foundation" and others:
            fields = ", ".join(type(self).model_fields[name].alias or name for name in others)
            raise ValueError(f"{fields}: belongs to a stack of the layer environment, not to the foundation")
        if self.layer == "objects" and (others := sorted(given - _OBJECTS)):
            fields = ", ".join(type(self).model_fields[name].alias or name for name in others)
            raise ValueError(f"{fields}: belongs to a stack of the layer environment, which has an Environment")
        for name in ("controller", "served_namespaces"):
            if self.layer != "foundation" and name in given:
                field = type(self).model_fields[name].alias or name
                raise ValueError(f"{field}: belongs to a stack of the layer foundation")
        if self.layer == "environment" and "trigger_namespace" in given:
            raise ValueError(
                "triggerNamespace: belongs to a stack of the layer foundation; in an environment set"
                " environment.demand.namespace"
            )
        return self

    @model_validator(mode="after")
    def _alerts_can_fire(self) -> "Settings":
        demand = self.environment.demand
        if self.monitoring is None or demand.provisioner is not DemandProvisioner.TRIGGER_POD:
            return self
        pending, waited = self.monitoring.trigger_pending_seconds, 60
        if pending + waited >= demand.deadline_seconds:
            most, seconds = max(demand.deadline_seconds - waited, 1), demand.deadline_seconds
            raise ValueError(
                f"monitoring.triggerPendingSeconds: the alert fires after {pending} s and another {waited}, and a"
                f" trigger pod is withdrawn after environment.demand.deadlineSeconds, {seconds} s: set it to less than"
                f" {most}, or the deadline to more"
            )
        return self

    def leaf_queues(self) -> set[str]:
        """Names of the leaf queues: declared queues without children, and `cluster_queues`."""
        return {queue.name or key for key, queue in self.queues.items()} - self.parent_queues() | set(
            self.cluster_queues
        )

    def parent_queues(self) -> set[str]:
        """Names of the declared queues with children."""
        return {queue.parent_queue for queue in self.queues.values() if queue.parent_queue}

    def queues_in_order(self) -> Iterator[str]:
        """Keys of the queues, each after its parent's."""
        keys = {queue.name or key: key for key, queue in self.queues.items()}
        parents = {name: self.queues[key].parent_queue for name, key in keys.items()}
        for name in sorted(keys, key=lambda name: (len(_ancestors(name, parents)), name)):
            yield keys[name]


def _ancestors(name: str, parents: Mapping[str, str | None]) -> list[str]:
    """The declared ancestors of a queue, nearest first; in a cycle, each name once."""
    found: list[str] = []
    parent = parents.get(name)
    while parent is not None:
        found.append(parent)
        if parent == name or parent in found[:-1]:
            break
        parent = parents.get(parent)
    return found


_OBJECTS = {
    *("namespaces", "node_pools", "node_profiles", "queues", "kaito_workspaces"),
    *("device_classes", "resource_claim_templates"),
}


def given() -> dict[str, Any]:
    """The stack's configuration as written, without the empty defaults of Pulumi.yaml."""
    prefix = f"{pulumi.get_project()}:"
    known = {field.alias for field in Settings.model_fields.values()}
    config = pulumi.Config()
    values: dict[str, Any] = {}
    for key in sorted(CONFIG.get()):
        if not key.startswith(prefix):
            continue
        name = key.removeprefix(prefix)
        text = config.require(name)
        value = text if name in _TEXTS or name not in known else _parsed(name, text)
        if value not in ({}, [], ""):
            values[name] = value
    return values


def with_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, in which every string below a secret key is marked as a secret.

    Pulumi tells a program which keys contain secrets (`pulumi config set --secret --path`), not which of their values.
    """
    project = pulumi.get_project()
    return {name: _marked(value) if is_config_secret(f"{project}:{name}") else value for name, value in values.items()}


def _marked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _marked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_marked(item) for item in value]
    return pulumi.Output.secret(value) if isinstance(value, str) else value


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Parses the configuration. Raises PlimsollError, which names the stack's file and each invalid field."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise PlimsollError(
            f"{stack_file()}: {describe_errors(error, Settings)}",
            "correct the file, or the value with `pulumi config set --path`",
        ) from None


def stack_file() -> str:
    """The stack's file, relative to the project's folder."""
    try:
        project = yaml.safe_load(Path(pulumi.get_root_directory() or ".", "Pulumi.yaml").read_text("utf-8"))
    except (OSError, yaml.YAMLError):
        project = None
    folder = project.get("stackConfigDir") if isinstance(project, dict) else None
    return str(Path(folder or "", f"Pulumi.{pulumi.get_stack()}.yaml"))


def _parsed(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise PlimsollError(f"{stack_file()}: {name}: {text!r} is a string, not a list or an object") from None
