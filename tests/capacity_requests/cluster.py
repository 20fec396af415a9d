"""A cluster for which capacity is requested: share pods, a NodePool, and the effects of plans."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll import labels
from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import CAPACITY_GATE, Environment, GPUDemand, GPUDemandStatus, KnownNodeProfile
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import Queue
from plimsoll.model.karpenter import (
    CapacityBuffer,
    ClaimEvent,
    NodeClaim,
    NodeOverlay,
    NodePool,
    PodTemplate,
    ProvisioningRequest,
    RequestEvent,
)
from plimsoll.observe.cluster import request_events
from plimsoll.plan import plan as make_plan
from tests.builders import an_environment

START = datetime(2026, 1, 1, tzinfo=UTC)
TYPE = "p4d.24xlarge"
"""8 x A100 of 40 GiB, in the built-in catalog."""
PRODUCT = "NVIDIA-A100-SXM4-40GB"
SHARD = "capacity-test-0"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def share_pod(name: str, fraction: str = "0.5", *, unschedulable: bool = True, **spec: Any) -> Pod:
    """A pod of KAI that requests a part of a GPU and that its scheduler could not place."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return Pod.read(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "team",
                "uid": f"uid-{name}",
                "annotations": {"gpu-fraction": fraction},
                "creationTimestamp": text(START),
            },
            "spec": {
                "schedulerName": "kai-scheduler",
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
                "tolerations": [{"key": labels.GPU_RESOURCE, "operator": "Exists"}],
                **spec,
            },
            "status": {"phase": "Pending", "conditions": [condition] if unschedulable else []},
        }
    )


def gated_pod(name: str, fraction: str = "0.5") -> Pod:
    """As `share_pod`, but with the capacity gate, so that no scheduler has handled it."""
    return share_pod(name, fraction, unschedulable=False, schedulingGates=[{"name": CAPACITY_GATE}])


def pool(name: str = "gpu", *types: str, weight: int = 0) -> NodePool:
    requirement = {"key": labels.INSTANCE_TYPE, "operator": "In", "values": list(types or (TYPE,))}
    return NodePool.read(
        {
            "metadata": {"name": name},
            "spec": {"weight": weight, "template": {"spec": {"requirements": [requirement]}}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
    )


def node(
    name: str, created: datetime, *, gpus: int = 8, instance_type: str = TYPE, of_pool: str = "gpu", ready: bool = True
) -> Node:
    """A node that Karpenter created."""
    return Node.read(
        {
            "metadata": {
                "name": name,
                "creationTimestamp": text(created),
                "labels": {
                    labels.INSTANCE_TYPE: instance_type,
                    labels.NODEPOOL: of_pool,
                    labels.GPU_PRODUCT: PRODUCT,
                    labels.GPU_COUNT: "8",
                    labels.GPU_MEMORY: "40960",
                },
            },
            "status": {
                "conditions": [{"type": "Ready", "status": str(ready)}],
                "allocatable": {
                    "cpu": "95",
                    "memory": "1100Gi",
                    "pods": "110",
                    **({labels.GPU_RESOURCE: str(gpus)} if gpus else {}),
                },
            },
        }
    )


def claim(name: str, created: datetime, *types: str, of_pool: str = "gpu", **status: Any) -> NodeClaim:
    """A NodeClaim that Karpenter created for a NodePool; with several instance types it is not launched yet."""
    requirement = {"key": labels.INSTANCE_TYPE, "operator": "In", "values": list(types or (TYPE,))}
    launched = {labels.INSTANCE_TYPE: TYPE} if not types else {}
    return NodeClaim.read(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "creationTimestamp": text(created),
                "labels": {labels.NODEPOOL: of_pool, **launched},
            },
            "spec": {
                "requirements": [requirement],
                "resources": {"requests": {labels.GPU_RESOURCE: "8", "cpu": "1"}},
            },
            "status": status,
        }
    )


def sold_out(name: str, output_text: datetime, words: str = "no capacity in any zone") -> ClaimEvent:
    """Karpenter's event about a NodeClaim for which the provider had no capacity."""
    return ClaimEvent.read(
        {
            "metadata": {"name": f"{name}.1", "namespace": "default", "creationTimestamp": text(output_text)},
            "involvedObject": {"kind": "NodeClaim", "name": name, "uid": f"uid-{name}"},
            "reason": "InsufficientCapacityError",
            "message": f"NodeClaim {name} event: {words}",
        }
    )


def answered(
    obj: Mapping[str, Any],
    reason: str,
    message: str,
    said: datetime,
    *,
    again: datetime | None = None,
    by: str = "karpenter",
    uid: str | None = None,
) -> list[RequestEvent]:
    """The Event of an autoscaler about an object that requests nodes, as client-go's recorder writes it, where it is
    read; `again` is when it was repeated. With a `uid`, it is about another object of that name."""
    metadata = obj["metadata"]
    reference = {key: obj[key] for key in ("apiVersion", "kind")}
    reference |= {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"] if uid is None else uid,
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata['name']}.18a1b2c3d4e5f607",
            "namespace": metadata["namespace"],
            "uid": "7e2d2f6c-6c2b-4d5e-9d0a-0d5c7f1b2a3e",
            "creationTimestamp": text(said + timedelta(seconds=1)),  # it is written in the background
        },
        "involvedObject": reference,
        "type": "Normal" if reason in ("Nominated", "TriggeredScaleUp") else "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": by},
        "reportingComponent": by,
        "reportingInstance": "",
        "firstTimestamp": text(said),
        "lastTimestamp": text(again or said),
        "eventTime": None,
        "count": 1 if again is None else 2,
    }
    read = request_events(metadata["namespace"]).read(event)
    return [] if read is None else [read]


def demand_environment(provisioner: str = "trigger-pod", **demand: Any) -> Environment:
    return an_environment(demand={"provisioner": provisioner, **demand})


class Cluster:
    """Holds objects. `run_round` plans at a time and applies the plan, as the controller would."""

    def __init__(self, *objects: Any, environment: Environment | None = None) -> None:
        self.environment = environment or demand_environment()
        self.objects: list[Any] = list(objects)
        self.demands: dict[str, GPUDemand] = {}
        self.requests: dict[tuple[str, str], dict[str, Any]] = {}
        self.gone_claims: list[NodeClaim] = []
        self.uids = 0

    def snapshot(self) -> Snapshot:
        read: Mapping[str, Any] = {
            "Pod": Pod,
            "PodTemplate": PodTemplate,
            "CapacityBuffer": CapacityBuffer,
            "ProvisioningRequest": ProvisioningRequest,
        }
        made = [read[manifest["kind"]].read(manifest) for manifest in self.requests.values()]

        def of(kind: type[Any]) -> tuple[Any, ...]:
            return tuple(each for each in [*self.objects, *made] if isinstance(each, kind))

        return Snapshot(
            environment=self.environment,
            nodes=of(Node),
            node_claims=of(NodeClaim),
            node_pools=of(NodePool),
            node_overlays=of(NodeOverlay),
            pods=of(Pod),
            pod_templates=of(PodTemplate),
            capacity_buffers=of(CapacityBuffer),
            provisioning_requests=of(ProvisioningRequest),
            node_profiles=of(KnownNodeProfile),
            gpu_demands=tuple(self.demands.values()),
            queues=of(Queue),
            claim_events=of(ClaimEvent),
            request_events=of(RequestEvent),
            gone_claims=tuple(self.gone_claims),
        )

    def plan(self, now: datetime) -> Plan:
        return make_plan(self.snapshot(), (), now)

    def run_round(self, now: datetime) -> Plan:
        """Plans and applies the plan."""
        plan = self.plan(now)
        for creation in plan.creations:
            self.uids += 1
            metadata = creation.manifest["metadata"]
            with_shard_label = {
                **metadata,
                "uid": f"uid-{self.uids}",
                "creationTimestamp": text(now),
                "labels": {**metadata["labels"], labels.SHARD: SHARD},
            }
            self.requests[creation.key.kind, creation.key.name] = {**creation.manifest, "metadata": with_shard_label}
        for update in plan.updates:
            known = self.requests[update.key.kind, update.key.name]
            metadata = {**known["metadata"], "annotations": update.manifest["metadata"]["annotations"]}
            self.requests[update.key.kind, update.key.name] = {**update.manifest, "metadata": metadata}
        for signal in plan.signals:
            condition = {"type": "PodScheduled", "status": "False", "reason": signal.reason, "message": signal.message}
            self.requests["Pod", signal.key.name]["status"] = {"conditions": [condition]}
        for deletion in plan.deletions:
            del self.requests[deletion.key.kind, deletion.key.name]
        for report in plan.demands:
            self.demands.pop(report.name, None)
            if report.status is not None:
                manifest = {"metadata": {"name": report.name}, "status": report.status.as_manifest()}
                self.demands[report.name] = GPUDemand.read(manifest)
        return plan

    def phase(self) -> str:
        """The phase of the only demand."""
        (demand,) = self.demands.values()
        return demand.status.phase

    def status(self) -> GPUDemandStatus:
        """The status of the only demand."""
        (demand,) = self.demands.values()
        return demand.status

    def requested(self, kind: str = "Pod") -> list[dict[str, Any]]:
        """Objects of a kind that request capacity, by name."""
        return [manifest for (of, _), manifest in sorted(self.requests.items()) if of == kind]

    def remove(self, kind: type[Any]) -> None:
        self.objects = [each for each in self.objects if not isinstance(each, kind)]
