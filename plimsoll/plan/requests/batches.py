"""CapacityBuffers and ProvisioningRequests: each requests several equal nodes, as pods of one PodTemplate."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from plimsoll.labels import ENVIRONMENT, HEADROOM, OWNER_NAMESPACE, OWNER_QUEUE, as_label_value
from plimsoll.model import DemandRef, ObjectKey
from plimsoll.model.api import DemandProvisioner as Setting
from plimsoll.model.api import Environment, Headroom
from plimsoll.model.karpenter import CapacityBuffer
from plimsoll.model.meta import ANYWHERE, Placement, Taint
from plimsoll.packing.nodes import HOST
from plimsoll.plan.demand import DemandPlan, PlannedNode
from plimsoll.plan.owned import PlanBuilder
from plimsoll.plan.requests.capacity_request import CapacityRequest, read_request
from plimsoll.plan.requests.demand_provisioner import Names
from plimsoll.plan.requests.node_request import (
    GIVEN_UP,
    LOST,
    NODE,
    REGISTERED,
    NodeRequest,
    attempt_annotations,
    demand_labels,
    demand_names,
    owners_of,
    pod_placement,
)
from plimsoll.text import counted

Manifest = dict[str, Any]


def batches(nodes: Iterable[PlannedNode]) -> list[tuple[NodeRequest, Sequence[PlannedNode]]]:
    """Groups planned nodes into requests, one for each node shape.

    Nodes that differ only in what their pods request of the host form one group, which requests the maximum of each.
    The maximum fits too, because each of the amounts fits the instance type. A node that is requested without its GPUs
    is a request of its own: only a label of its own keeps the pods of two requests apart.
    """
    alike_nodes: dict[tuple[NodeRequest, int], list[PlannedNode]] = {}
    for number, node in enumerate(nodes):
        bare = NodeRequest.of(node).model_copy(update=dict.fromkeys(HOST, 0))
        alike_nodes.setdefault((bare, number if bare.resource else -1), []).append(node)
    return [
        (
            node_request.model_copy(update={name: max(getattr(node, name) for node in alike) for name in HOST}),
            alike,
        )
        for (node_request, _), alike in sorted(alike_nodes.items(), key=lambda each: (each[0][0].text, each[0][1]))
    ]


def batch_name(prefix: str, demand: str, node_request: NodeRequest, ordinal: int) -> str:
    """An object name of at most 63 characters; its hash covers demand, node request and ordinal."""
    digest = hashlib.sha256(f"{demand}/{node_request.text}/{ordinal}".encode()).hexdigest()[:12]
    return f"{prefix}-{node_request.slug}-{digest}"


def of_demands(
    environment: Environment,
    attempts: Mapping[str, int],
    node_request: NodeRequest,
    name: str,
    owners: Mapping[str, str],
) -> Manifest:
    """Metadata of an object that requests nodes for demands; `attempts` by their names, the owner first. `owners` are
    the labels that say for whom."""
    labels = demand_labels(DemandRef(name=next(iter(attempts))), environment.name, owners)
    annotations = {NODE: node_request.text, **attempt_annotations(attempts)}
    return _metadata(environment, name, labels, annotations)


def of_headroom(environment: Environment, headroom: Headroom, node_request: NodeRequest, name: str) -> Manifest:
    """Metadata of an object that keeps a headroom of the Environment."""
    labels = {HEADROOM: headroom.name, ENVIRONMENT: as_label_value(environment.name)}
    return _metadata(environment, name, labels, {NODE: node_request.text})


def headroom_request(headroom: Headroom, taints: Iterable[Taint], resource: str = "") -> NodeRequest:
    """One of its nodes; `taints` are those of its NodePool, and `resource` is what Karpenter counts its GPUs as, where
    that is not the Environment's."""
    return NodeRequest(
        instance_types=(headroom.instance_type,),
        node_pool=headroom.node_pool,
        gpus=headroom.gpus,
        resource=resource,
        counted=bool(resource),
        taints=tuple((each.key, each.value, each.effect) for each in taints),
    )


def pod_template(
    environment: Environment, metadata: Manifest, node_request: NodeRequest, placement: Placement = ANYWHERE
) -> Manifest:
    """The PodTemplate that describes one node. No pod is ever created from it."""
    requests = node_request.requests(environment.spec.gpu_resource)
    container = {
        "name": "gpu-node",
        "image": environment.spec.demand.image,
        "resources": {"requests": requests, "limits": requests},
    }
    placed = pod_placement(node_request, placement, metadata["name"])
    spec = {"containers": [container], "restartPolicy": "Never", **placed}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": {"spec": spec}}


def capacity_buffer(metadata: Manifest, replicas: int) -> Manifest:
    """A CapacityBuffer for the PodTemplate of the same name; `replicas` is the number of outstanding nodes."""
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
    """A ProvisioningRequest for `count` pods of the PodTemplate of the same name. Its spec is immutable."""
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
    """Requests equal nodes by one CapacityBuffer or ProvisioningRequest, as `spec.demand.provisioner` says."""

    def __init__(self, environment: Environment, names: Names, plan: DemandPlan, templates: Collection[str]) -> None:
        """`templates` are the names of the PodTemplates that exist."""
        self._environment = environment
        self._names = names
        self._demands = plan.demands
        self._templates = templates
        self._buffers = environment.spec.demand.provisioner is Setting.CAPACITY_BUFFER

    def request_nodes(
        self, nodes: Sequence[PlannedNode], attempts: Mapping[str, int], builder: PlanBuilder
    ) -> list[tuple[ObjectKey, tuple[str, ...]]]:
        by_name = {demand.name: demand for demand in self._demands}
        made = []
        for node_request, alike in batches(nodes):
            demands = tuple(sorted({name for node in alike for name in node.demands}))
            owner = DemandRef(name=demands[0])
            prefix = "gpu-buffer" if self._buffers else "gpu-request"
            name = self._names.new(owner.name, node_request, partial(batch_name, prefix))
            tried = {each: attempts[each] for each in demands}
            metadata = of_demands(self._environment, tried, node_request, name, owners_of(alike, by_name))
            reason = f"pods of {demand_names(demands)} need {counted(len(alike), 'more node')}"
            placement = by_name[owner.name].demand_class.placement
            builder.create(pod_template(self._environment, metadata, node_request, placement), owner, reason)
            manifest = self._manifest(metadata, len(alike))
            builder.create(manifest, owner, reason)
            made.append((ObjectKey.of(manifest), demands))
        return made

    def keep(self, request: CapacityRequest, needed: int, registered: Collection[str], builder: PlanBuilder) -> None:
        """Updates the object's replicas and its annotations, and creates its PodTemplate if that was deleted.

        A CapacityBuffer shrinks when its nodes register, before pods use them; otherwise the autoscaler would fill the
        buffer again. It also shrinks by nodes that failed. A ProvisioningRequest is immutable, so an annotation records
        the nodes that it no longer expects.
        """
        known, owner = read_request(request.obj), DemandRef(name=next(iter(request.attempts)))
        if request.name not in self._templates:
            nodes = {node.name for node in request.requested_nodes}
            users = (
                each for each in self._demands if each.name in request.attempts or nodes & each.on_requested.keys()
            )
            placement = next((demand.demand_class.placement for demand in users), ANYWHERE)
            template = pod_template(self._environment, self._metadata(request), request.node_request, placement)
            builder.create(template, owner, "it was deleted, and its nodes are still needed")
        shrinks = isinstance(request.obj, CapacityBuffer) and needed != request.obj.replicas
        if not (registered or shrinks or known is None or known.given_up != request.given_up):
            return
        count = needed if self._buffers else request.outstanding + len(request.registered) + request.given_up
        manifest = self._manifest(self._metadata(request), count)
        number, state = (len(registered), "registered") if registered else (needed, "still needed")
        builder.update(manifest, owner, f"{counted(number, 'node')} {state}")

    def signal_ready(self, request: CapacityRequest, registered: Collection[str], builder: PlanBuilder) -> None:
        """Does nothing: deleting the object withdraws the request."""

    def _metadata(self, request: CapacityRequest) -> Manifest:
        """Metadata with annotations on nodes that registered, failed, or are no longer expected."""
        owners = {key: request.obj.labels[key] for key in (OWNER_NAMESPACE, OWNER_QUEUE) if key in request.obj.labels}
        metadata = of_demands(self._environment, request.attempts, request.node_request, request.name, owners)
        names = {REGISTERED: request.registered, LOST: request.lost}
        noted = {key: orjson.dumps(list(each)).decode() for key, each in names.items() if each}
        noted |= {GIVEN_UP: str(request.given_up)} if request.given_up else {}
        return {**metadata, "annotations": {**metadata["annotations"], **noted}}

    def _manifest(self, metadata: Manifest, count: int) -> Manifest:
        return (capacity_buffer if self._buffers else provisioning_request)(metadata, count)
