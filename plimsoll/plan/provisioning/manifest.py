"""The NodeClaim (karpenter.sh/v1) for one node of a Workspace."""

from typing import Any

from plimsoll.cluster.catalog import OfferedType
from plimsoll.cluster.pools import CHOSEN_BY_PROVIDER
from plimsoll.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, SPEC_HASH
from plimsoll.model.api import Environment
from plimsoll.model.meta import expression
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
    labels = workspace.spec.resource.label_selector.match_labels
    # A label of a NodeClaim without a NodePool overrides the provider's, and does not restrict what it chooses.
    chosen = {key: labels[key] for key in sorted(labels) if key.startswith(CHOSEN_BY_PROVIDER)}
    spec: dict[str, Any] = {
        "nodeClassRef": target.node_class.model_dump(),
        "requirements": [
            *requirements(target, environment),
            *(expression(key, "In", value) for key, value in chosen.items() if key not in (INSTANCE_TYPE, OS)),
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
            "labels": {**labels, **object_labels(workspace, environment)},
            "annotations": {DO_NOT_DISRUPT: "true", SPEC_HASH: spec_hash(spec)},
        },
        "spec": spec,
    }


def requirements(target: NodeTarget, environment: Environment) -> list[dict[str, Any]]:
    """Requirements on a node: the instance type, Linux, how it is paid for, and the selector's expressions."""
    workspace, offered = target.workspace, target.offered
    found = [expression(INSTANCE_TYPE, "In", offered.name), expression(OS, "In", "linux")]
    if offered.cloud == "aws" and offered.claimable:
        found.append(expression(AWS_GPU_COUNT, "Gt", "0"))
    capacity = workspace.spec.resource.capacity_type or environment.spec.node_claims.capacity_type
    if capacity is not None:
        found.append(expression(CAPACITY_TYPE, "In", *(("spot", "on-demand") if capacity == "any" else (capacity,))))
    for item in workspace.spec.resource.label_selector.match_expressions:
        if item.key not in (INSTANCE_TYPE, OS):
            found.append(expression(item.key, item.operator, *item.values))
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
