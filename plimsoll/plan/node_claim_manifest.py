"""The NodeClaim (karpenter.sh/v1) that is declared for one node of a Workspace."""

from typing import Any

from plimsoll.model.environment import Environment, NodeClassRef
from plimsoll.model.labels import DO_NOT_DISRUPT, INSTANCE_TYPE
from plimsoll.model.workspace import Workspace
from plimsoll.plan.declared import object_labels
from plimsoll.plan.offered_types import OfferedType
from plimsoll.plan.presets import preset

OS = "kubernetes.io/os"
AWS_GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"


def node_claim_manifest(
    workspace: Workspace, environment: Environment, offered: OfferedType, node_class: NodeClassRef, name: str
) -> dict[str, Any]:
    """A NodeClaim of exactly that instance type, which no NodePool owns and no consolidation takes.

    The selector's `matchLabels` become labels, as KAITO has it, and its `matchExpressions` requirements.
    """
    selector = workspace.spec.resource.label_selector
    requirements = [_is_in(INSTANCE_TYPE, offered.name), _is_in(OS, "linux")]
    if offered.cloud == "aws" and offered.claimable:
        requirements.append({"key": AWS_GPU_COUNT, "operator": "Gt", "values": ["0"]})
    for item in selector.match_expressions:
        if item.key not in (INSTANCE_TYPE, OS):
            values = {"values": list(item.values)} if item.values else {}
            requirements.append({"key": item.key, "operator": item.operator, **values})
    spec: dict[str, Any] = {
        "nodeClassRef": {"group": node_class.group, "kind": node_class.kind, "name": node_class.name},
        "requirements": requirements,
    }
    requests = _requests(workspace, environment, offered)
    if requests:
        spec["resources"] = {"requests": requests}
    taints = environment.spec.node_claims.taints
    if taints:
        spec["taints"] = [
            {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
            for taint in taints
        ]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": {**selector.match_labels, **object_labels(workspace, environment)},
            "annotations": {DO_NOT_DISRUPT: "true"},
        },
        "spec": spec,
    }


def _requests(workspace: Workspace, environment: Environment, offered: OfferedType) -> dict[str, str]:
    """What the node must offer. Karpenter knows disks as `ephemeral-storage`, and launches nothing that lacks it."""
    requests = {}
    if offered.claimable:
        requests[environment.spec.gpu_resource] = str(offered.claimable)
    inference = workspace.spec.inference
    known = preset(inference.preset.name) if inference is not None and inference.preset is not None else None
    storage = known.disk_gib if known is not None else environment.spec.node_claims.storage_gib
    if storage:
        requests["ephemeral-storage"] = f"{storage}Gi"
    return requests


def _is_in(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}
