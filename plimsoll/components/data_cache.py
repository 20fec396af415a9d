"""DataCache: a table in memory near the training that reads it."""

import pulumi
from pydantic.alias_generators import to_camel

from plimsoll.components.args import DataCacheArgs, PlacementArgs
from plimsoll.components.declaring import Component, ObjectType, checked, fields_of, metadata, name_of
from plimsoll.components.specs import CACHE_PORT, LEADER, SET_NAME, DataCacheSpec
from plimsoll.kubernetes_sdk import k8s
from plimsoll.labels import QUEUE


class DataCache(Component):
    """A LeaderWorkerSet (`leader_worker_set`) with Trainer's data cache, placed by KAI as one gang, and its `service`.

    Raises InvalidArgumentError if an argument is invalid.
    """

    address: pulumi.Output[str]
    """Host and port that a training reads from."""
    pod_labels: pulumi.Output[dict[str, str]]
    """Labels of its pods, to select them by."""
    annotations: pulumi.Output[dict[str, str]]
    """Annotations of a TrainJob whose nodes are placed in one domain of the same level."""
    near: PlacementArgs
    """`near` of a TrainingRuntime that is placed near it."""

    def __init__(self, name: str, args: DataCacheArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("DataCache", name, args, opts)
        namespace = self.given("namespace", "default")
        fields = fields_of(self._args, "name", "namespace", "patch_force")
        annotations = checked(DataCacheSpec, "DataCache", name, fields, DataCacheSpec.annotations)
        self.leader_worker_set = self._object(
            ObjectType("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
            DataCacheSpec,
            DataCacheSpec.leader_worker_set,
            namespace=namespace,
            labels={QUEUE: self.given("queue")},
            annotations=annotations,
        )
        set_name = name_of(self.leader_worker_set, args.get("name"))
        # The update does not wait for it: it has no endpoints until its pods run.
        self.service = k8s.core.v1.Service(
            name,
            metadata=metadata(set_name, namespace, skip_await=True, patch_force=self.given("patch_force")),
            spec={
                "selector": {SET_NAME: set_name, LEADER: "0"},
                "ports": [{"name": "grpc", "port": CACHE_PORT, "target_port": "grpc"}],
            },
            opts=self.child(),
        )
        self.address = pulumi.Output.format("{0}.{1}.svc:{2}", set_name, namespace, CACHE_PORT)
        self.pod_labels = set_name.apply(lambda known: {SET_NAME: known})
        self.annotations = pulumi.Output.from_input(annotations)
        self.near = {
            "match_labels": {SET_NAME: set_name},
            "topology_key": self.given("level"),
            "required": self.given("required", True),
        }
        self.register_outputs(
            {
                "address": self.address,
                "podLabels": self.pod_labels,
                "annotations": self.annotations,
                "near": {to_camel(key): value for key, value in self.near.items()},
            }
        )
