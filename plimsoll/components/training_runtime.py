"""TrainingRuntime and ClusterTrainingRuntime of Kubeflow Trainer, with a queue of KAI."""

from collections.abc import Mapping
from typing import Any, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from plimsoll.components.declaration import checked, child_of, fields_of, metadata
from plimsoll.components.specs import TRAINER_API_VERSION, Kind, TrainingRuntimeSpec


class TorchPolicyArgs(TypedDict, total=False):
    num_proc_per_node: pulumi.Input[int | str]
    elastic_policy: pulumi.Input[dict[str, Any]]


class MpiPolicyArgs(TypedDict, total=False):
    num_proc_per_node: pulumi.Input[int]
    mpi_implementation: pulumi.Input[str]
    ssh_auth_mount_path: pulumi.Input[str]
    run_launcher_as_node: pulumi.Input[bool]


class MLPolicyArgs(TypedDict, total=False):
    num_nodes: pulumi.Input[int]
    torch: pulumi.Input[TorchPolicyArgs]
    mpi: pulumi.Input[MpiPolicyArgs]
    flux: pulumi.Input[dict[str, Any]]
    jax: pulumi.Input[dict[str, Any]]
    xgboost: pulumi.Input[dict[str, Any]]


class KaiSchedulerArgs(TypedDict):
    queue: pulumi.Input[str]


class CoschedulingArgs(TypedDict, total=False):
    schedule_timeout_seconds: pulumi.Input[int]


class VolcanoArgs(TypedDict, total=False):
    network_topology: pulumi.Input[dict[str, Any]]


class PodGroupPolicyArgs(TypedDict, total=False):
    kai_scheduler: pulumi.Input[KaiSchedulerArgs]
    coscheduling: pulumi.Input[CoschedulingArgs]
    volcano: pulumi.Input[VolcanoArgs]


class TemplateMetadataArgs(TypedDict, total=False):
    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    annotations: pulumi.Input[dict[str, pulumi.Input[str]]]


class ReplicatedJobArgs(TypedDict, total=False):
    name: pulumi.Input[str]
    replicas: pulumi.Input[int]
    group_name: pulumi.Input[str]
    depends_on: pulumi.Input[list[dict[str, Any]]]
    template: pulumi.Input[dict[str, Any]]
    """A JobTemplateSpec with Kubernetes' own names."""


class JobSetSpecArgs(TypedDict, total=False):
    replicated_jobs: pulumi.Input[list[pulumi.Input[ReplicatedJobArgs]]]
    network: pulumi.Input[dict[str, Any]]
    success_policy: pulumi.Input[dict[str, Any]]
    failure_policy: pulumi.Input[dict[str, Any]]
    startup_policy: pulumi.Input[dict[str, Any]]
    suspend: pulumi.Input[bool]
    coordinator: pulumi.Input[dict[str, Any]]
    managed_by: pulumi.Input[str]
    ttl_seconds_after_finished: pulumi.Input[int]


class JobSetTemplateArgs(TypedDict, total=False):
    metadata: pulumi.Input[TemplateMetadataArgs]
    spec: pulumi.Input[JobSetSpecArgs]


class ClusterTrainingRuntimeArgs(TypedDict, total=False):
    """The fields of plimsoll.model.training_runtime.TrainingRuntimeSpec, where they are explained."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Of the object; Trainer's SDK lists runtimes that say `trainer.kubeflow.org/framework`."""
    ml_policy: pulumi.Input[MLPolicyArgs]
    pod_group_policy: pulumi.Input[PodGroupPolicyArgs]
    template: pulumi.Input[JobSetTemplateArgs]
    scheduler_name: pulumi.Input[str]
    kai_scheduler_field: pulumi.Input[bool]


class TrainingRuntimeArgs(ClusterTrainingRuntimeArgs, total=False):
    """And where the object lives."""

    namespace: pulumi.Input[str]


class TrainingRuntime(pulumi.ComponentResource):
    """A TrainingRuntime (trainer.kubeflow.org/v1alpha1), for the TrainJobs of its namespace.

    Raises InvalidObjectError where an argument does not fit, or a template contradicts the queue.
    """

    training_runtime_name: pulumi.Output[str]
    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: TrainingRuntimeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plimsoll:index:TrainingRuntime", name, {}, opts)
        runtime = _runtime(
            self, "TrainingRuntime", name, fields_of(args, "namespace"), args.get("namespace", "default")
        )
        self.training_runtime_name = runtime.metadata["name"]
        self.namespace = runtime.metadata["namespace"]
        self.register_outputs({"training_runtime_name": self.training_runtime_name, "namespace": self.namespace})


class ClusterTrainingRuntime(pulumi.ComponentResource):
    """A ClusterTrainingRuntime (trainer.kubeflow.org/v1alpha1), for the TrainJobs of every namespace.

    Raises InvalidObjectError where an argument does not fit, or a template contradicts the queue.
    """

    cluster_training_runtime_name: pulumi.Output[str]

    def __init__(self, name: str, args: ClusterTrainingRuntimeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plimsoll:index:ClusterTrainingRuntime", name, {}, opts)
        runtime = _runtime(self, "ClusterTrainingRuntime", name, fields_of(args))
        self.cluster_training_runtime_name = runtime.metadata["name"]
        self.register_outputs({"cluster_training_runtime_name": self.cluster_training_runtime_name})


def _runtime(
    component: pulumi.Resource,
    kind: Kind,
    name: str,
    args: Mapping[str, Any],
    namespace: pulumi.Input[str] | None = None,
) -> CustomResource:
    fields = fields_of(args, "name", "labels")
    return CustomResource(
        name,
        api_version=TRAINER_API_VERSION,
        kind=kind,
        metadata=metadata(args.get("name", name), namespace, args.get("labels"), skip_await=True),
        spec=checked(TrainingRuntimeSpec, kind, name, fields, TrainingRuntimeSpec.trainer_manifest),
        opts=child_of(component),
    )
