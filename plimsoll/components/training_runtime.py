"""TrainingRuntime and ClusterTrainingRuntime of Kubeflow Trainer, with a queue of KAI."""

import pulumi

from plimsoll.components.args import ClusterTrainingRuntimeArgs, TrainingRuntimeArgs
from plimsoll.components.declaring import Component, ObjectType, name_of, namespace_of, uid_of
from plimsoll.components.specs import TRAINER_API_VERSION, TrainingRuntimeSpec


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
