"""Trigger pods: each requests one planned node from an autoscaler, and never runs."""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from plimsoll.labels import TENSOR_FUSION_REQUESTS, as_label_value
from plimsoll.model import DemandRef, ObjectKey, SignalReason
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Pod
from plimsoll.plan.demand import Demand, DemandPlan, PlannedNode
from plimsoll.plan.owned import PlanBuilder, key_of, signalled
from plimsoll.plan.requests.capacity_request import READY_MESSAGE, CapacityRequest
from plimsoll.plan.requests.demand_provisioner import Names
from plimsoll.plan.requests.node_request import (
    NODE,
    NodeRequest,
    attempt_annotations,
    demand_labels,
    demand_names,
    owners_of,
    pod_placement,
)
from plimsoll.text import counted

PREFIX: Final = "smart-gpu-scheduler"
COMPONENT: Final = "smart-scheduler"
TYPE: Final = "gpu-scaling"
BACKGROUND: Final = {"pulumi.com/deletionPropagationPolicy": "background"}
"""Nothing depends on a trigger pod, so it is deleted without waiting."""
_ORIGINAL_LENGTH: Final = 2000
"""Maximum length of the annotation with the pods' requests, in characters."""


def trigger_pod(
    demands: Mapping[str, Demand],
    node: PlannedNode,
    environment: Environment,
    name: str,
    attempts: Mapping[str, int],
) -> dict[str, Any]:
    """The trigger pod of a planned node; `demands` and `attempts` by the demand's name."""
    first = demands[node.demands[0]]
    settings = environment.spec.demand
    node_request = NodeRequest.of(node)
    prefix = settings.label_prefix
    requests = node_request.requests(environment.spec.gpu_resource)
    placed = pod_placement(node_request, first.demand_class.placement, name)
    container = {
        "name": "gpu-trigger",
        "image": settings.image,
        "resources": {"requests": requests, "limits": requests},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": settings.namespace,
            "labels": {
                f"{prefix}/component": COMPONENT,
                f"{prefix}/gpu-model": as_label_value(re.sub(r"[^-A-Za-z0-9_.]+", "-", node_request.kind)),
                f"{prefix}/pool": as_label_value(node_request.node_pool),
                f"{prefix}/trigger-type": TYPE,
                **demand_labels(DemandRef(name=first.name), environment.name, owners_of([node], demands)),
            },
            "annotations": {
                f"{prefix}/created-by": "plimsoll",
                f"{prefix}/purpose": "trigger-karpenter-scaling",
                f"{prefix}/original-request": original_request(demands, node),
                f"{prefix}/cleanup-after": "pods-bound",
                NODE: node_request.text,
                **attempt_annotations({each: attempts[each] for each in node.demands}),
                **BACKGROUND,
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "schedulerName": settings.scheduler_name,
            "activeDeadlineSeconds": settings.deadline_seconds,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [container],
            **placed,
        },
    }


def trigger_name(demand: str, node_request: NodeRequest, ordinal: int) -> str:
    """An object name of at most 63 characters; its hash covers demand and ordinal."""
    digest = hashlib.sha256(f"{demand}/{ordinal}".encode()).hexdigest()[:12]
    return f"{PREFIX}-{node_request.slug[: 63 - len(PREFIX) - 14].rstrip('-')}-{digest}"


def original_request(demands: Mapping[str, Demand], node: PlannedNode) -> str:
    """The requests of the pods that are planned on the node, as they are written; JSON, without the pods' names."""
    counts = Counter(orjson.dumps(_request_of(demands, uid), option=orjson.OPT_SORT_KEYS) for uid in node.pods)
    requests = [{**orjson.loads(text), "pods": count} for text, count in sorted(counts.items())]
    return _cut(requests)


def _request_of(demands: Mapping[str, Demand], uid: str) -> dict[str, str]:
    asking = next((demand.pods[uid] for demand in demands.values() if uid in demand.pods), None)
    if asking is None:
        return {}
    pod: Pod = asking.pod
    units = {
        key.partition("/")[2]: pod.annotations[key][:64] for key in TENSOR_FUSION_REQUESTS if key in pod.annotations
    }
    return {"share": str(asking.share), **units}


def _cut(items: Iterable[dict[str, Any]]) -> str:
    """As many items as fit the annotation."""
    kept: list[dict[str, Any]] = []
    size = 2
    for item in items:
        size += len(orjson.dumps(item)) + 1
        if size > _ORIGINAL_LENGTH:
            break
        kept.append(item)
    return orjson.dumps(kept).decode()


UNSCHEDULABLE_MESSAGE: Final = "requests a node with these GPUs; this pod is never scheduled"


class TriggerPodProvisioner:
    """Requests each node by a trigger pod."""

    def __init__(self, environment: Environment, names: Names, plan: DemandPlan) -> None:
        self._environment = environment
        self._names = names
        self._demands = {each.name: each for each in plan.demands}

    def request_nodes(
        self, nodes: Sequence[PlannedNode], attempts: Mapping[str, int], builder: PlanBuilder
    ) -> list[tuple[ObjectKey, tuple[str, ...]]]:
        made = []
        for node in nodes:
            name = self._names.new(node.demands[0], NodeRequest.of(node), trigger_name)
            demands = {each: self._demands[each] for each in node.demands}
            manifest = trigger_pod(demands, node, self._environment, name, attempts)
            key = ObjectKey.of(manifest)
            reason = f"{counted(len(node.pods), 'pod')} of {demand_names(node.demands)} fit no node"
            builder.create(manifest, DemandRef(name=node.demands[0]), reason)
            builder.signal(key, "", SignalReason.UNSCHEDULABLE, UNSCHEDULABLE_MESSAGE)
            made.append((key, node.demands))
        return made

    def keep(self, request: CapacityRequest, needed: int, registered: Collection[str], builder: PlanBuilder) -> None:
        self.signal_ready(request, registered, builder)
        if request.outstanding and signalled(request.obj) != SignalReason.UNSCHEDULABLE:
            # The condition was not written after the creation, or it was overwritten.
            builder.signal(key_of(request.obj), request.obj.uid, SignalReason.UNSCHEDULABLE, UNSCHEDULABLE_MESSAGE)

    def signal_ready(self, request: CapacityRequest, registered: Collection[str], builder: PlanBuilder) -> None:
        for node in registered:
            builder.signal(key_of(request.obj), request.obj.uid, SignalReason.CAPACITY_READY, READY_MESSAGE + node)
