"""TrainingRuntime and ClusterTrainingRuntime of Kubeflow Trainer, with a queue of KAI."""

from typing import Any, TypedDict

import pulumi

from plimsoll.components.declaring import Component, ObjectArgs, ObjectType, name_of, namespace_of, uid_of
from plimsoll.components.specs import TRAINER_API_VERSION, TrainingRuntimeSpec


class TorchPolicyArgs(TypedDict, total=False):
    """PyTorch's `torchrun`."""

    num_proc_per_node: pulumi.Input[str]
    """`auto`, `cpu`, `gpu`, or a number as a string; Trainer's default is `auto`."""
    elastic_policy: pulumi.Input[dict[str, Any]]


class MpiPolicyArgs(TypedDict, total=False):
    """A training by MPI."""

    num_proc_per_node: pulumi.Input[int]
    """Slots of each node; Trainer's default is 1."""
    mpi_implementation: pulumi.Input[str]
    ssh_auth_mount_path: pulumi.Input[str]
    run_launcher_as_node: pulumi.Input[bool]


class MLPolicyArgs(TypedDict, total=False):
    """The framework of a training and its nodes."""

    num_nodes: pulumi.Input[int]
    """Nodes of a training; Trainer's default is 1, and a TrainJob may set another number."""
    torch: pulumi.Input[TorchPolicyArgs]
    mpi: pulumi.Input[MpiPolicyArgs]
    flux: pulumi.Input[dict[str, Any]]
    jax: pulumi.Input[dict[str, Any]]
    xgboost: pulumi.Input[dict[str, Any]]


class KaiSchedulerArgs(TypedDict):
    """KAI Scheduler, which creates the PodGroup itself and needs only the queue."""

    queue: pulumi.Input[str]
    """A leaf queue."""


class CoschedulingArgs(TypedDict, total=False):
    """The coscheduling plugin of Kubernetes' scheduler-plugins; passed to Trainer unchanged."""

    schedule_timeout_seconds: pulumi.Input[int]


class VolcanoArgs(TypedDict, total=False):
    """The Volcano scheduler; passed to Trainer unchanged."""

    network_topology: pulumi.Input[dict[str, Any]]


class PodGroupPolicyArgs(TypedDict, total=False):
    """Exactly one of the three schedulers."""

    kai_scheduler: pulumi.Input[KaiSchedulerArgs]
    coscheduling: pulumi.Input[CoschedulingArgs]
    volcano: pulumi.Input[VolcanoArgs]


class TemplateMetadataArgs(TypedDict, total=False):
    """Labels and annotations of the JobSet."""

    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    annotations: pulumi.Input[dict[str, pulumi.Input[str]]]


class ReplicatedJobArgs(TypedDict, total=False):
    """One kind of Job, with the template of its Pods."""

    name: pulumi.Input[str]
    replicas: pulumi.Input[int]
    """Number of Jobs; JobSet's default is 1, and Trainer accepts only 1 for a step of a TrainJob."""
    group_name: pulumi.Input[str]
    depends_on: pulumi.Input[list[dict[str, Any]]]
    """`name` and `status` (`Ready`, `Complete`) of another Job that comes first."""
    template: pulumi.Input[dict[str, Any]]
    """A JobTemplateSpec with Kubernetes' own names."""


class JobSetSpecArgs(TypedDict, total=False):
    """The spec of the JobSet. Only `replicatedJobs` is validated here; the apiserver validates the rest."""

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
    """The JobSet of each TrainJob."""

    metadata: pulumi.Input[TemplateMetadataArgs]
    spec: pulumi.Input[JobSetSpecArgs]


class PlacementArgs(TypedDict, total=False):
    """Pods near which a training is placed: `near` of a DataCache."""

    match_labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Labels of those pods."""
    topology_key: pulumi.Input[str]
    """Label of nodes; nodes with the same value are near each other."""
    required: pulumi.Input[bool]
    """Whether pods stay pending if there is no room near those pods; absent: true."""


class ClusterTrainingRuntimeArgs(ObjectArgs, total=False):
    """How the TrainJobs of every namespace run."""

    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Of the object; Trainer's SDK lists runtimes that say `trainer.kubeflow.org/framework`."""
    ml_policy: pulumi.Input[MLPolicyArgs]
    pod_group_policy: pulumi.Input[PodGroupPolicyArgs]
    template: pulumi.Input[JobSetTemplateArgs]
    near: pulumi.Input[PlacementArgs]
    """Pods near which all pods of the training are placed, such as a DataCache's."""
    scheduler_name: pulumi.Input[str]
    """The name under which KAI schedules in the cluster."""
    kai_scheduler_field: pulumi.Input[bool]
    """Whether the cluster's Trainer has `podGroupPolicy.kaiScheduler`, so that it is passed on."""


class TrainingRuntimeArgs(ClusterTrainingRuntimeArgs, total=False):
    """How the TrainJobs of a namespace run."""

    namespace: pulumi.Input[str]
    """Namespace of the object; absent: `default`."""


class TrainingRuntime(Component):
    """A TrainingRuntime (trainer.kubeflow.org/v1alpha1), for the TrainJobs of its namespace.

    `training_runtime` is the object. Raises InvalidArgumentError if an argument is invalid, or a template
    contradicts the queue.
    """

    training_runtime_name: pulumi.Output[str]
    """Name of the object."""
    namespace: pulumi.Output[str]
    """Namespace of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""
    runtime_ref: pulumi.Output[dict[str, str]]
    """`spec.runtimeRef` of a TrainJob that uses it."""

    def __init__(self, name: str, args: TrainingRuntimeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("TrainingRuntime", name, args, opts)
        self.training_runtime = self._object(
            ObjectType(TRAINER_API_VERSION, "TrainingRuntime"),
            TrainingRuntimeSpec,
            TrainingRuntimeSpec.trainer_manifest,
            namespace=self.given("namespace", "default"),
            labels=self.given("labels"),
            others=("labels",),
        )
        self.training_runtime_name = name_of(self.training_runtime, args.get("name"))
        self.namespace = namespace_of(self.training_runtime, args.get("namespace"))
        self.uid = uid_of(self.training_runtime)
        self.runtime_ref = self.training_runtime_name.apply(lambda known: _reference("TrainingRuntime", known))
        self.register_outputs(
            {
                "trainingRuntimeName": self.training_runtime_name,
                "namespace": self.namespace,
                "uid": self.uid,
                "runtimeRef": self.runtime_ref,
            }
        )


class ClusterTrainingRuntime(Component):
    """A ClusterTrainingRuntime (trainer.kubeflow.org/v1alpha1), for the TrainJobs of every namespace.

    `cluster_training_runtime` is the object. Raises InvalidArgumentError if an argument is invalid, or a template
    contradicts the queue.
    """

    cluster_training_runtime_name: pulumi.Output[str]
    """Name of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""
    runtime_ref: pulumi.Output[dict[str, str]]
    """`spec.runtimeRef` of a TrainJob that uses it."""

    def __init__(self, name: str, args: ClusterTrainingRuntimeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ClusterTrainingRuntime", name, args, opts)
        self.cluster_training_runtime = self._object(
            ObjectType(TRAINER_API_VERSION, "ClusterTrainingRuntime"),
            TrainingRuntimeSpec,
            TrainingRuntimeSpec.trainer_manifest,
            labels=self.given("labels"),
            others=("labels",),
        )
        self.cluster_training_runtime_name = name_of(self.cluster_training_runtime, args.get("name"))
        self.uid = uid_of(self.cluster_training_runtime)
        self.runtime_ref = self.cluster_training_runtime_name.apply(
            lambda known: _reference("ClusterTrainingRuntime", known)
        )
        self.register_outputs(
            {
                "clusterTrainingRuntimeName": self.cluster_training_runtime_name,
                "uid": self.uid,
                "runtimeRef": self.runtime_ref,
            }
        )


def _reference(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": TRAINER_API_VERSION.partition("/")[0], "kind": kind, "name": name}
