"""Batches: nodes that are alike, asked for by one object that counts the pods of a PodTemplate."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from plimsoll.labels import ENVIRONMENT, HEADROOM, as_label_value
from plimsoll.model import DemandRef
from plimsoll.model.api import Environment, Headroom
from plimsoll.model.meta import ANYWHERE, Placement
from plimsoll.plan.demand import PlannedNode
from plimsoll.plan.requests.node_ask import ASK, ATTEMPT, NodeAsk, marks, placing

Manifest = dict[str, Any]


def batches(nodes: Iterable[PlannedNode]) -> list[tuple[NodeAsk, int]]:
    """Asks of nodes that are alike but for the host resources of their pods, with how many; the largest stand for all.

    What fits each of them fits the type, so the largest of each resource does too.
    """
    found: dict[NodeAsk, list[PlannedNode]] = {}
    for node in nodes:
        bare = NodeAsk.of(replace(node, cpu_milli=0, memory_mib=0))
        found.setdefault(bare, []).append(node)
    return [
        (
            ask.model_copy(
                update={
                    "cpu_milli": max(node.cpu_milli for node in alike),
                    "memory_mib": max(node.memory_mib for node in alike),
                }
            ),
            len(alike),
        )
        for ask, alike in sorted(found.items(), key=lambda each: each[0].text)
    ]


def batch_name(prefix: str, demand: str, ask: NodeAsk, ordinal: int) -> str:
    """At most 63 characters; the hash tells demand, ask and ordinal apart."""
    digest = hashlib.sha256(f"{demand}/{ask.text}/{ordinal}".encode()).hexdigest()[:12]
    return f"{prefix}-{ask.slug}-{digest}"


def of_demand(environment: Environment, demand: str, ask: NodeAsk, name: str, attempt: int) -> Manifest:
    """Metadata of what asks for a demand."""
    labels = marks(DemandRef(name=demand), environment.name)
    return _metadata(environment, name, labels, {ASK: ask.text, ATTEMPT: str(attempt)})


def of_headroom(environment: Environment, headroom: Headroom, name: str) -> Manifest:
    """Metadata of what stands for a headroom."""
    labels = {HEADROOM: headroom.name, ENVIRONMENT: as_label_value(environment.name)}
    return _metadata(environment, name, labels, {ASK: headroom_ask(headroom).text})


def headroom_ask(headroom: Headroom) -> NodeAsk:
    return NodeAsk(instance_types=(headroom.instance_type,), node_pool=headroom.node_pool, gpus=headroom.gpus)


def pod_template(
    environment: Environment, metadata: Manifest, ask: NodeAsk, placement: Placement = ANYWHERE
) -> Manifest:
    """The PodTemplate of one node: no pod is ever made of it."""
    requests = ask.requests(environment.spec.gpu_resource)
    container = {
        "name": "gpu-node",
        "image": environment.spec.demand.image,
        "resources": {"requests": requests, "limits": requests},
    }
    spec = {"containers": [container], "restartPolicy": "Never", **placing(ask, placement)}
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
