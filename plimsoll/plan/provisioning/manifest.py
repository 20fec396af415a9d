"""The NodeClaim (karpenter.sh/v1) for one node of a Workspace."""

from typing import Any

from plimsoll.cluster.catalog import OfferedType
from plimsoll.cluster.pools import CHOSEN_BY_PROVIDER
from plimsoll.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, SPEC_HASH
from plimsoll.model.api import Environment
from plimsoll.plan.owned import object_labels
from plimsoll.plan.provisioning.provisioner import NodeTarget
from plimsoll.plan.workspaces import spec_hash
from plimsoll.presets import ModelPreset

OS = "kubernetes.io/os"
AWS_GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"


def node_claim_manifest(target: NodeTarget, environment: Environment, name: str) -> dict[str, Any]:
    """A NodeClaim of exactly that instance type, without a NodePool, which Karpenter never consolidates.

    The selector's `matchLabels` become labels, as in KAITO, and its `matchExpressions` become requirements. An
    annotation holds the hash of the spec: a NodeClaim with another hash is outdated.
    """
    workspace, offered = target.workspace, target.offered
    selector = workspace.spec.resource.label_selector
    spec: dict[str, Any] = {
        "nodeClassRef": target.node_class.model_dump(),
        "requirements": [
            *requirements(target, environment),
            # A label of a NodeClaim without a NodePool overrides the provider's and does not restrict its choice.
            *(
                _is_in(key, value)
                for key, value in sorted(selector.match_labels.items())
                if key.startswith(CHOSEN_BY_PROVIDER) and key not in (INSTANCE_TYPE, OS)
            ),
        ],
    }
    requests = _requests(environment, offered, target.known)
    if requests:
        spec["resources"] = {"requests": requests}
    if environment.spec.node_claims.taints:
        spec["taints"] = taints(environment)
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": {**selector.match_labels, **object_labels(workspace, environment)},
            "annotations": {DO_NOT_DISRUPT: "true", SPEC_HASH: spec_hash(spec)},
        },
        "spec": spec,
    }


def requirements(target: NodeTarget, environment: Environment) -> list[dict[str, Any]]:
    """Requirements on a node: the instance type, Linux, how it is paid for, and the selector's expressions."""
    workspace, offered = target.workspace, target.offered
    found = [_is_in(INSTANCE_TYPE, offered.name), _is_in(OS, "linux")]
    if offered.cloud == "aws" and offered.claimable:
        found.append({"key": AWS_GPU_COUNT, "operator": "Gt", "values": ["0"]})
    capacity = workspace.spec.resource.capacity_type or environment.spec.node_claims.capacity_type
    if capacity is not None:
        kinds = ["spot", "on-demand"] if capacity == "any" else [capacity]
        found.append({"key": CAPACITY_TYPE, "operator": "In", "values": kinds})
    for item in workspace.spec.resource.label_selector.match_expressions:
        if item.key not in (INSTANCE_TYPE, OS):
            values = {"values": list(item.values)} if item.values else {}
            found.append({"key": item.key, "operator": item.operator, **values})
    return found


def taints(environment: Environment) -> list[dict[str, str]]:
    """Taints of new nodes."""
    return [
        {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
        for taint in environment.spec.node_claims.taints
    ]


def _requests(environment: Environment, offered: OfferedType, known: ModelPreset | None) -> dict[str, str]:
    """Resources that the node must offer. Karpenter counts disks as `ephemeral-storage`, and launches no node that
    lacks it."""
    requests = {}
    if offered.claimable:
        requests[environment.spec.gpu_resource] = str(offered.claimable)
    storage = known.disk_gib if known is not None else environment.spec.node_claims.storage_gib
    if storage:
        requests["ephemeral-storage"] = f"{storage}Gi"
    return requests


def _is_in(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}
