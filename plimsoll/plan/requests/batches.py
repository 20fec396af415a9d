"""Requests that count pods of a PodTemplate: CapacityBuffers and ProvisioningRequests."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from plimsoll.labels import ENVIRONMENT, HEADROOM, as_label_value
from plimsoll.model import DemandRef
from plimsoll.model.api import DemandProvisioner as Setting
from plimsoll.model.api import Environment, Headroom
from plimsoll.model.karpenter import CapacityBuffer, ProvisioningRequest
from plimsoll.model.meta import ANYWHERE, Placement
from plimsoll.plan.demand import Demand, PlannedNode
from plimsoll.plan.owned import Delta, RequestObject
from plimsoll.plan.requests.capacity_request import CapacityRequest, read_request
from plimsoll.plan.requests.node_request import ATTEMPT, GIVEN_UP, LOST, NODE, REGISTERED, NodeRequest, marks, placing
from plimsoll.plan.requests.provisioner import Names
from plimsoll.text import counted

Manifest = dict[str, Any]


def batches(nodes: Iterable[PlannedNode]) -> list[tuple[NodeRequest, int]]:
    """Asks of nodes that are alike but for the host resources of their pods, with how many; the largest stand for all.

    What fits each of them fits the type, so the largest of each resource does too.
    """
    found: dict[NodeRequest, list[PlannedNode]] = {}
    for node in nodes:
        bare = NodeRequest.of(replace(node, cpu_milli=0, memory_mib=0))
        found.setdefault(bare, []).append(node)
    return [
        (
            node_request.model_copy(
                update={
                    "cpu_milli": max(node.cpu_milli for node in alike),
                    "memory_mib": max(node.memory_mib for node in alike),
                }
            ),
            len(alike),
        )
        for node_request, alike in sorted(found.items(), key=lambda each: each[0].text)
    ]


def batch_name(prefix: str, demand: str, node_request: NodeRequest, ordinal: int) -> str:
    """At most 63 characters; the hash tells demand, ask and ordinal apart."""
    digest = hashlib.sha256(f"{demand}/{node_request.text}/{ordinal}".encode()).hexdigest()[:12]
    return f"{prefix}-{node_request.slug}-{digest}"


def of_demand(environment: Environment, demand: str, node_request: NodeRequest, name: str, attempt: int) -> Manifest:
    """Metadata of what asks for a demand."""
    labels = marks(DemandRef(name=demand), environment.name)
    return _metadata(environment, name, labels, {NODE: node_request.text, ATTEMPT: str(attempt)})


def of_headroom(environment: Environment, headroom: Headroom, name: str) -> Manifest:
    """Metadata of what stands for a headroom."""
    labels = {HEADROOM: headroom.name, ENVIRONMENT: as_label_value(environment.name)}
    return _metadata(environment, name, labels, {NODE: headroom_request(headroom).text})


def headroom_request(headroom: Headroom) -> NodeRequest:
    return NodeRequest(instance_types=(headroom.instance_type,), node_pool=headroom.node_pool, gpus=headroom.gpus)


def pod_template(
    environment: Environment, metadata: Manifest, node_request: NodeRequest, placement: Placement = ANYWHERE
) -> Manifest:
    """The PodTemplate of one node: no pod is ever made of it."""
    requests = node_request.requests(environment.spec.gpu_resource)
    container = {
        "name": "gpu-node",
        "image": environment.spec.demand.image,
        "resources": {"requests": requests, "limits": requests},
    }
    spec = {"containers": [container], "restartPolicy": "Never", **placing(node_request, placement)}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": {"spec": spec}}


def capacity_buffer(metadata: Manifest, replicas: int) -> Manifest:
    """A CapacityBuffer of the PodTemplate of the same name: `replicas` nodes are still to come."""
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": metadata,
        "spec": {
            "podTemplateRef": {"name": metadata["name"]},
            "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
            "replicas": replicas,
        },
    }


def provisioning_request(metadata: Manifest, count: int) -> Manifest:
    """A ProvisioningRequest of so many pods of the PodTemplate of the same name; its spec can never change."""
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": metadata,
        "spec": {
            "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
            "podSets": [{"count": count, "podTemplateRef": {"name": metadata["name"]}}],
        },
    }


def _metadata(environment: Environment, name: str, labels: dict[str, str], annotations: dict[str, str]) -> Manifest:
    return {
        "name": name,
        "namespace": environment.spec.demand.namespace,
        "labels": labels,
        "annotations": annotations,
    }


class BatchProvisioner:
    def __init__(self, environment: Environment, names: Names) -> None:
        self._environment = environment
        self._names = names
        self._buffers = environment.spec.demand.provisioner is Setting.CAPACITY_BUFFER

    def makes(self, thing: RequestObject) -> bool:
        return isinstance(thing, CapacityBuffer if self._buffers else ProvisioningRequest)

    def request_nodes(self, demand: Demand, nodes: Sequence[PlannedNode], attempt: int, delta: Delta) -> int:
        owner = DemandRef(name=demand.name)
        batched = batches(nodes)
        for node_request, count in batched:
            prefix = "gpu-buffer" if self._buffers else "gpu-request"
            name = self._names.new(demand.name, node_request, partial(batch_name, prefix))
            metadata = of_demand(self._environment, demand.name, node_request, name, attempt)
            reason = f"pods of demand {demand.name} lack {counted(count, 'node')}"
            delta.create(pod_template(self._environment, metadata, node_request, demand.of.placement), owner, reason)
            delta.create(self._manifest(metadata, count), owner, reason)
        return len(batched)

    def keep(self, request: CapacityRequest, needed: int, registered: Collection[str], delta: Delta) -> None:
        """A buffer shrinks as its nodes come, before the pods take them: else it would be filled again.

        It shrinks by what does not come as well. A request cannot: it is noted on it what is not awaited any more.
        """
        known = read_request(request.thing)
        shrinks = isinstance(request.thing, CapacityBuffer) and needed != request.thing.replicas
        if not (registered or shrinks or known is None or known.given_up != request.given_up):
            return
        count = needed if self._buffers else request.outstanding + len(request.registered) + request.given_up
        manifest = self._manifest(self._metadata(request), count)
        reason = f"{counted(len(registered), 'node')} came" if registered else f"{counted(needed, 'node')} still needed"
        delta.update(manifest, DemandRef(name=request.demand), reason)

    def signal_ready(self, request: CapacityRequest, registered: Collection[str], delta: Delta) -> None:
        """Nothing: its deletion says all."""

    def _metadata(self, request: CapacityRequest) -> Manifest:
        """With what became of the nodes."""
        metadata = of_demand(self._environment, request.demand, request.node_request, request.name, request.attempt)
        names = {REGISTERED: request.registered, LOST: request.lost}
        noted = {key: orjson.dumps(list(each)).decode() for key, each in names.items() if each}
        noted |= {GIVEN_UP: str(request.given_up)} if request.given_up else {}
        return {**metadata, "annotations": {**metadata["annotations"], **noted}}

    def _manifest(self, metadata: Manifest, count: int) -> Manifest:
        return (capacity_buffer if self._buffers else provisioning_request)(metadata, count)
