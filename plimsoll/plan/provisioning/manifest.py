"""The NodeClaim (karpenter.sh/v1) for one node of a Workspace, and the static NodePool for all of its nodes."""

from typing import Any

from plimsoll.cluster.catalog import counted_by_karpenter
from plimsoll.cluster.nodes import owner_labels
from plimsoll.cluster.volumes import conditions_of
from plimsoll.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, OS, SPEC_HASH, ZONE
from plimsoll.model.api import Environment, is_chosen, refused_node_labels
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import Taint, expression
from plimsoll.plan.owned import KARPENTER, PlanBuilder, object_labels
from plimsoll.plan.provisioning.provisioner import NodeTarget
from plimsoll.plan.workspaces import (
    capacity_types,
    node_taints,
    pool_fields,
    pool_labels,
    pool_requirements,
    requested_disk_gib,
    spec_hash,
)

AWS_GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"


def node_claim_manifest(target: NodeTarget, environment: Environment, name: str) -> dict[str, Any]:
    """A NodeClaim of exactly that instance type, of no NodePool, which Karpenter never consolidates.

    The NodePool that allows the type says what else holds for its nodes; the Workspace narrows it. The selector's
    `matchLabels` become labels, as in KAITO, and its other conditions become requirements. An annotation holds the hash
    of the spec: a NodeClaim with another hash is outdated.
    """
    workspace = target.workspace
    spec: dict[str, Any] = {
        "nodeClassRef": target.node_class.model_dump(),
        "requirements": requirements(target, environment),
    }
    requests = _requests(target, environment)
    if requests:
        spec["resources"] = {"requests": requests}
    spec |= _taints(target, environment) | pool_fields(target.pool)
    return {
        "apiVersion": KARPENTER,
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": {
                **node_labels(target, environment),
                **owner_labels([workspace.namespace], [workspace.spec.queue or ""]),
            },
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

    No consolidation or drift: a budget of 0 nodes allows only changes of `replicas`. The template has no values
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
                "labels": node_labels(target, environment),
                "annotations": {DO_NOT_DISRUPT: "true"},
            },
            "spec": {
                "nodeClassRef": target.node_class.model_dump(),
                "requirements": requirements(target, environment),
                **_taints(target, environment),
                **({"expireAfter": "Never"} | pool_fields(target.pool)),
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


def node_labels(target: NodeTarget, environment: Environment) -> dict[str, str]:
    """Labels of a node of the Workspace: the NodePool's, those of its selector that it may set, and who owns the
    node."""
    workspace = target.workspace
    chosen = workspace.spec.resource.label_selector.match_labels
    kept = chosen.keys() - refused_node_labels(chosen, environment.spec.node_label_prefixes)
    own = {key: chosen[key] for key in chosen if key in kept and not is_chosen(key)}
    return {**pool_labels(target.pool, target.placement), **own, **object_labels(workspace, environment)}


def requirements(target: NodeTarget, environment: Environment) -> list[dict[str, Any]]:
    """Requirements on a node: the instance type, Linux, how it is paid for, those of the NodePool, where its pods
    may be, and the selector's conditions except for labels that the node is given. All of them hold, of several for one
    label too."""
    workspace, offered = target.workspace, target.offered
    found = [expression(INSTANCE_TYPE, "In", offered.name), expression(OS, "In", "linux")]
    if offered.cloud == "aws" and offered.claimable:
        found.append(expression(AWS_GPU_COUNT, "Gt", "0"))
    if types := capacity_types(workspace, environment.spec, target.pool):
        found.append(expression(CAPACITY_TYPE, "In", *types))
    if zones := workspace.spec.resource.zones:
        found.append(expression(ZONE, "In", *zones))
    found += [item for item in pool_requirements(target.pool) if item not in found]
    selector = workspace.spec.resource.label_selector
    for item in selector.match_expressions:
        if item.key not in (INSTANCE_TYPE, OS):
            found.append(expression(item.key, item.operator, *item.values))
    # Labels that nodes must not have, those of KAI's node pools, are on no node for which nothing requires them.
    required = [each for each in conditions_of(target.placement) or () if each.operator != "DoesNotExist"]
    found += [expression(each.key, each.operator, *each.values) for each in required]
    for key in sorted(selector.match_labels):
        # As a label of a NodeClaim it would override the provider's, and not restrict what it chooses.
        if is_chosen(key) and key not in (INSTANCE_TYPE, OS):
            found.append(expression(key, "In", selector.match_labels[key]))
    return found


def _taints(target: NodeTarget, environment: Environment) -> dict[str, list[dict[str, str]]]:
    """The field `taints` of new nodes, where there are any."""
    found = [_taint(taint) for taint in node_taints(environment.spec, target.pool)]
    return {"taints": found} if found else {}


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}


def _requests(target: NodeTarget, environment: Environment) -> dict[str, str]:
    """Resources that the node must offer: no GPUs where pods get these by claims, nor those of AMD or Intel that the
    provider counts on no such type: it would launch none."""
    requests, offered = {}, target.offered
    uncounted = counted_by_karpenter(target.node_class.group, offered.name, offered.resource) is False
    if offered.claimable and offered.claimed is None and not (offered.resource and uncounted):
        requests[offered.resource or environment.spec.gpu_resource] = str(offered.claimable)
    storage = requested_disk_gib(target.workspace, target.known, environment.spec)
    if storage:
        requests["ephemeral-storage"] = f"{storage}Gi"
    return requests
