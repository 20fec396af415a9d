"""Kubeflow Trainer's data cache: a LeaderWorkerSet that keeps a table in memory, in a queue and a domain of a
Topology."""

from typing import Annotated, Any, Final

from pydantic import Field

from plimsoll.components.specs.gpu_discovery import DeclaredToleration
from plimsoll.components.specs.topology import PREFERRED, REQUIRED, TOPOLOGY
from plimsoll.labels import GPU_PRESENT, QUEUE
from plimsoll.model.kai import QueueName
from plimsoll.model.meta import Declared

PORT: Final = 50051
SET_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
"""Label that LeaderWorkerSet gives its pods."""
LEADER: Final = "leaderworkerset.sigs.k8s.io/worker-index"
"""Label with the position of a pod in its group; the leader's is 0."""

_HEALTH: Final = 8080


class CacheTable(Declared):
    """The Iceberg table that is cached."""

    metadata_location: str
    """Location of the table's metadata, such as `s3://datasets/images/metadata.json`."""
    schema_name: str
    table_name: str


class CachePart(Declared):
    """CPU and memory that the head, or each worker, requests."""

    cpu: str
    memory: str

    def resources(self) -> dict[str, Any]:
        return {"requests": {"cpu": self.cpu, "memory": self.memory}, "limits": {"memory": self.memory}}


class DataCacheSpec(Declared):
    """The table, and where it is placed."""

    table: CacheTable
    workers: Annotated[int, Field(ge=1, le=1000)] = 3
    """Pods beside the head; absent: 3."""
    queue: QueueName
    """A leaf queue of KAI."""
    topology: str
    """Name of the Topology."""
    level: str
    """Label of the topology level: the whole cache is placed in one domain of this level, and the training in the same
    one."""
    required: bool = True
    """Whether the cache stays pending if no domain of the level has room; absent: true."""
    image: str = "ghcr.io/kubeflow/trainer/data-cache:v2.1.0"
    head: CachePart = CachePart(cpu="4", memory="16Gi")
    worker: CachePart = CachePart(cpu="8", memory="64Gi")
    node_selector: dict[str, str] = Field(default_factory=lambda: {GPU_PRESENT: "true"})
    """Absent: nodes with GPUs, so that the training can be placed near the cache."""
    tolerations: tuple[DeclaredToleration, ...] = ()
    scheduler_name: str = "kai-scheduler"

    def annotations(self) -> dict[str, str]:
        """Annotations of the LeaderWorkerSet, and of each TrainJob that reads from it."""
        return {TOPOLOGY: self.topology, REQUIRED if self.required else PREFERRED: self.level}

    def leader_worker_set(self) -> dict[str, Any]:
        """`spec` of the LeaderWorkerSet."""
        return {
            "replicas": 1,
            "leaderWorkerTemplate": {
                "size": self.workers + 1,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": self._pods("head", self.head),
                "workerTemplate": self._pods("worker", self.worker),
            },
        }

    def _pods(self, role: str, part: CachePart) -> dict[str, Any]:
        table = {
            "METADATA_LOC": self.table.metadata_location,
            "SCHEMA_NAME": self.table.schema_name,
            "TABLE_NAME": self.table.table_name,
        }
        container = {
            "name": role,
            "image": self.image,
            "command": [role],
            "args": ["0.0.0.0", str(PORT)],
            "env": [{"name": name, "value": value} for name, value in table.items()],
            "ports": [{"name": "grpc", "containerPort": PORT}, {"name": "health", "containerPort": _HEALTH}],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": _HEALTH}},
            "resources": part.resources(),
        }
        spec: dict[str, Any] = {
            "schedulerName": self.scheduler_name,
            "nodeSelector": self.node_selector,
            "containers": [container],
        }
        if self.tolerations:
            spec["tolerations"] = [each.complete_manifest() for each in self.tolerations]
        return {"metadata": {"labels": {QUEUE: self.queue}}, "spec": spec}
