"""The NodeClaim (karpenter.sh/v1) for one node of a Workspace, and the static NodePool for all of its nodes."""

from typing import Any

from plimsoll.cluster.catalog import OfferedType
from plimsoll.cluster.pools import CHOSEN_BY_PROVIDER
from plimsoll.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, SPEC_HASH
from plimsoll.model.api import Environment
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import expression
from plimsoll.plan.owned import KARPENTER, PlanBuilder, object_labels
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
        "apiVersion": KARPENTER,
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": {**labels, **object_labels(workspace, environment)},
            "annotations": {DO_NOT_DISRUPT: "true", SPEC_HASH: spec_hash(spec)},
        },
        "spec": spec,
    }


def set_replicas(
    target: NodeTarget,
    environment: Environment,
    pool: NodePool,
    replicas: int,
    builder: PlanBuilder,
    *,
    keep: bool = False,
) -> None:
    """Sets the NodePool's replicas; without replicas it is deleted unless `keep`."""
    if not replicas and not keep:
        builder.delete(pool, "spec.provisioner of the Environment changed")
        return
    manifest = node_pool_manifest(target, environment, replicas, pool.name)
    if pool.replicas != replicas:
        builder.update(manifest, target.verdict.workspace, f"replicas {pool.replicas} -> {replicas}")
    elif pool.spec_hash != manifest["metadata"]["annotations"][SPEC_HASH]:
        builder.update(manifest, target.verdict.workspace, "the node template changed")


def node_pool_manifest(target: NodeTarget, environment: Environment, replicas: int, name: str) -> dict[str, Any]:
    """A static NodePool of exactly that instance type, from which Karpenter removes no node by itself.

    No consolidation, drift or expiry: a budget of 0 nodes allows only changes of `replicas`. The template has no values
    that change by themselves, because Karpenter would replace the nodes.
    """
    workspace = target.workspace
    spec: dict[str, Any] = {
        "replicas": replicas,
        "limits": {"nodes": str(max(replicas, workspace.spec.resource.node_count_limit or 0))},
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": "Never",
            "budgets": [{"nodes": "0"}],
        },
        "template": {
            "metadata": {
                "labels": {
                    **workspace.spec.resource.label_selector.match_labels,
                    **object_labels(workspace, environment),
                },
                "annotations": {DO_NOT_DISRUPT: "true"},
            },
            "spec": {
                "nodeClassRef": target.node_class.model_dump(),
                "requirements": requirements(target, environment),
                "expireAfter": "Never",
                **({"taints": taints(environment)} if environment.spec.node_claims.taints else {}),
            },
        },
    }
    return {
        "apiVersion": KARPENTER,
        "kind": "NodePool",
        "metadata": {
            "name": name,
            "labels": object_labels(workspace, environment),
            "annotations": {SPEC_HASH: spec_hash(spec)},
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
