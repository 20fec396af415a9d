"""The workload of a Workspace: a Deployment, a StatefulSet, or a LeaderWorkerSet where a replica spans nodes."""

import copy
import hashlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from plimsoll.cluster.nodes import may_be_spot, own_tolerations, tolerations
from plimsoll.estimating import preset_of
from plimsoll.labels import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    HOSTNAME,
    INSTANCE_TYPE,
    MOVED,
    NODEPOOL,
    QUEUE,
    SPEC_HASH,
    WORKSPACE,
)
from plimsoll.model import Serving, Verdict
from plimsoll.model.api import Environment, EnvironmentSpec, Inference, Workspace
from plimsoll.model.meta import Taint, dig, expression
from plimsoll.plan.owned import object_labels, ownership_labels
from plimsoll.plan.workspaces.gpu_claim import CLAIM, claim_template
from plimsoll.presets import ModelCatalog, ModelPreset
from plimsoll.serving import follow, lead, serve_preset, settings_of, startup_seconds

PROGRESS_MARGIN_SECONDS: Final = 600
"""Kubernetes' own deadline for the progress of a Deployment, besides the time that the server takes to start."""
LEADER_WORKER_SET: Final = "LeaderWorkerSet"


class Scale(NamedTuple):
    """The replicas of a workload."""

    replicas: int | None
    """Number of replicas in the manifest; None leaves the field out."""
    autoscaled: bool = False
    """Whether an autoscaler sets the number; then another number does not change the declaration."""


def workload_kind(inference: Inference, per_replica: int) -> tuple[str, str]:
    """(apiVersion, kind) of the workload of a Workspace whose replicas take `per_replica` nodes each.

    A replica on several nodes is a group of a LeaderWorkerSet, which starts, fails and is recreated as one. With one
    pod per replica, it is a StatefulSet if `inference.stableIdentity` is set, because that keeps pod names; otherwise a
    Deployment.
    """
    if per_replica > 1:
        return "leaderworkerset.x-k8s.io/v1", LEADER_WORKER_SET
    return "apps/v1", "StatefulSet" if inference.stable_identity else "Deployment"


def server_allowance(workspace: Workspace, environment: EnvironmentSpec, models: ModelCatalog) -> int | None:
    """Seconds that the server of a preset may take until it serves; None without one: probes of a template are its
    own."""
    inference = workspace.spec.inference
    if inference is None or inference.preset is None:
        return None
    known = preset_of(inference, models)
    return startup_seconds(known if isinstance(known, ModelPreset) else None, settings_of(inference, environment))


def workload_manifest(
    workspace: Workspace,
    inference: Inference,
    verdict: Verdict,
    environment: Environment,
    instance_types: tuple[str, ...],
    *,
    taints: Sequence[Taint] = (),
    known: ModelPreset | None,
    scale: Scale,
    held: bool = False,
    moved: str = "",
) -> dict[str, Any]:
    """The workload of an accepted Workspace, with its hash as an annotation.

    Pods require nodes by affinity (the selector and the validated GPU labels for existing nodes, the ownership labels
    for provisioned ones), request the GPUs of a node, and never share one. `instance_types` are the spellings of the
    provisioned instance type, `taints` those of its NodePool, `known` is the preset that is served. A rollout that is
    `held` starts no pod; another value of `moved` starts one.
    """
    per_replica = verdict.per_replica_node_count or 1
    version, kind = workload_kind(inference, per_replica)
    queue = {QUEUE: workspace.spec.queue} if workspace.spec.queue else {}
    template = _pods(workspace, inference, verdict, environment, known, taints=taints)
    patience = startup_seconds(known, settings_of(inference, environment.spec))
    _require_nodes(template["spec"]["affinity"]["nodeAffinity"], workspace, verdict, instance_types)
    if kind == LEADER_WORKER_SET:
        spec = _groups(inference, template, per_replica, patience)
    else:
        spec = {"selector": {"matchLabels": ownership_labels(workspace)}, "template": template}
        if kind == "Deployment":
            # One pod more than nodes would stay pending forever: an old pod is deleted first, or a rollout has a node
            # more.
            surge = workspace.surge
            most = {"maxSurge": surge, "maxUnavailable": 0 if surge else 1}
            spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": most}
            if inference.preset is not None:
                spec["progressDeadlineSeconds"] = patience + PROGRESS_MARGIN_SECONDS
            if inference.rollout.deadline_seconds is not None:
                spec["progressDeadlineSeconds"] = inference.rollout.deadline_seconds
        else:
            spec |= {"serviceName": workspace.name, "podManagementPolicy": "Parallel"}
    metadata: dict[str, Any] = {
        "name": workspace.name,
        "namespace": workspace.namespace,
        "labels": {**object_labels(workspace, environment), **queue},
    }
    note = {MOVED: moved} if moved else {}
    if note:
        template["metadata"]["annotations"] = {**(template["metadata"].get("annotations") or {}), **note}
    manifest = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    if scale.replicas is not None and not scale.autoscaled:
        spec["replicas"] = scale.replicas
    digest = spec_hash(manifest)
    if scale.replicas is not None:
        spec["replicas"] = scale.replicas
    if verdict.surge is not None:
        # Which nodes are free is no part of what is declared.
        most = {"maxSurge": verdict.surge, "maxUnavailable": 0 if verdict.surge else 1}
        spec |= {"strategy": {"type": "RollingUpdate", "rollingUpdate": most}, "paused": held}
    metadata["annotations"] = {SPEC_HASH: digest, **note}
    return manifest


def _groups(inference: Inference, template: dict[str, Any], size: int, patience: int) -> dict[str, Any]:
    """The spec of a LeaderWorkerSet with a group of `size` pods per replica."""
    group: dict[str, Any] = {"size": size, "restartPolicy": "RecreateGroupOnPodRestart", "workerTemplate": template}
    if inference.preset is not None:
        group["leaderTemplate"] = copy.deepcopy(template)
        lead(group["leaderTemplate"]["spec"], patience)
        follow(template["spec"], patience)
    # A group finds its leader by a headless Service. By default there is one for all groups with the name of the
    # LeaderWorkerSet, which is also that of the Service before a preset's replicas.
    network = {} if inference.preset is None else {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
    return {
        **network,
        "leaderWorkerTemplate": group,
        # All pods of a group start at once, because the leader becomes ready only after its workers.
        "startupPolicy": "LeaderCreated",
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxSurge": 0, "maxUnavailable": 1},
        },
    }


def spec_hash(manifest: dict[str, Any]) -> str:
    """16 hexadecimal digits of the SHA-256 of the manifest's canonical JSON."""
    text = orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:16]


def _pods(
    workspace: Workspace,
    inference: Inference,
    verdict: Verdict,
    environment: Environment,
    known: ModelPreset | None,
    *,
    taints: Sequence[Taint],
) -> dict[str, Any]:
    queue = {QUEUE: workspace.spec.queue} if workspace.spec.queue else {}
    template = copy.deepcopy(inference.template) if inference.template is not None else {}
    if inference.preset is not None:
        assert verdict.serving is not None, "validation says how a preset is served"
        serve_preset(template, inference, verdict.serving, known, environment)
    metadata = _object(template, "metadata")
    metadata["labels"] = {**(metadata.get("labels") or {}), **ownership_labels(workspace), **queue}
    if not environment.spec.auto_provisioning:
        # For provisioned nodes, the NodeClaim has the annotation. On a pod it would block the deletion of a node
        # forever: Karpenter never evicts such a pod, and a Deployment that scales down deletes any of its pods.
        metadata["annotations"] = {**(metadata.get("annotations") or {}), DO_NOT_DISRUPT: "true"}
    spec = _object(template, "spec")
    claimed = claim_template(workspace, verdict, environment, devices_of(verdict))
    if claimed is not None:
        _claim_gpus(spec, claimed["metadata"]["name"])
    else:
        resource = verdict.device_resource or environment.spec.gpu_resource
        request_gpus(spec["containers"], resource, devices_of(verdict))
    affinity = _object(spec, "affinity")
    _object(affinity, "nodeAffinity")
    if workspace.spec.resource.partition is None:
        _keep_apart(_object(affinity, "podAntiAffinity"))
    spec["tolerations"] = tolerations(
        environment.spec,
        own_tolerations(workspace, environment.spec),
        taints,
        spot=may_be_spot(workspace, environment.spec),
    )
    if queue:
        spec["schedulerName"] = environment.spec.queue_scheduler
    return template


def _keep_apart(anti_affinity: dict[str, Any]) -> None:
    """Adds a rule that no other pod of any Workspace shares a node with the pod.

    The scheduler applies it in both directions, so pods that request part of a node and have no such rule keep away
    too.
    """
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    of_any = {"matchExpressions": [expression(WORKSPACE, "Exists")]}
    alone = {"labelSelector": of_any, "namespaceSelector": {}, "topologyKey": HOSTNAME}
    anti_affinity[required] = [*(anti_affinity.get(required) or []), alone]


def devices_of(verdict: Verdict) -> int:
    """Devices that a pod requests: those of a node, without GPUs that the server cannot use; those that the server
    counts on, where the node's are not known."""
    return devices_of_pod(verdict.gpus_per_node, verdict.serving)


def devices_of_pod(devices: int | None, serving: Serving | None) -> int:
    """As `devices_of`, of a node with so many; None where that is not known."""
    if devices is None:
        return serving.gpus if serving is not None else 0
    if serving is None or not serving.unused:
        return devices
    return devices * serving.gpus // (serving.gpus + serving.unused)


def request_gpus(containers: list[dict[str, Any]], resource: str, devices: int) -> None:
    """Requests the node's GPUs in the first container, unless a container requests GPUs itself."""
    requested = any(
        resource in (dig(container, f"resources.{part}") or {})
        for container in containers
        for part in ("requests", "limits")
    )
    if requested or not devices:
        return
    resources = _object(containers[0], "resources")
    for part in ("requests", "limits"):
        _object(resources, part)[resource] = str(devices)


def _claim_gpus(spec: dict[str, Any], template: str) -> None:
    """Claims the node's GPUs by the ResourceClaimTemplate in the first container, unless containers name the claim
    themselves."""
    named = {"name": CLAIM}
    spec["resourceClaims"] = [*(spec.get("resourceClaims") or []), {**named, "resourceClaimTemplateName": template}]
    containers = spec["containers"]
    if not any(named == claim for container in containers for claim in dig(container, "resources.claims") or ()):
        resources = _object(containers[0], "resources")
        resources["claims"] = [*(resources.get("claims") or []), named]


def _require_nodes(
    node_affinity: dict[str, Any], workspace: Workspace, verdict: Verdict, instance_types: tuple[str, ...]
) -> None:
    """Requires the Workspace's nodes besides what the template requires: each term of one is combined with each of the
    other.

    Provisioned nodes have the ownership labels. If the selector is not empty, existing nodes of `instance_types` that
    no autoscaler created match too.
    """
    resource = workspace.spec.resource
    selector = resource.selector
    ours = [selector.node_selector_terms()]
    for key, values in verdict.node_labels:
        named = [expression(key, "In", *filter(None, values))] if any(values) else []
        absent = [expression(key, "DoesNotExist")] if "" in values else []
        ours = [[*each, one] for each in ours for one in (*named, *absent)]
    if instance_types:
        owned = [expression(key, "In", value) for key, value in ownership_labels(workspace).items()]
        if resource.move_back_seconds is not None and verdict.alternative is not None:
            # Another alternative is another template: its rollout moves the replicas.
            owned.append(expression(INSTANCE_TYPE, "In", *instance_types))
            paid = verdict.alternative.capacity_type
            owned += [expression(CAPACITY_TYPE, "In", paid)] if paid else []
        existing = [
            *selector.node_selector_terms(),
            expression(NODEPOOL, "DoesNotExist"),
            expression(WORKSPACE, "DoesNotExist"),
            expression(INSTANCE_TYPE, "In", *instance_types),
        ]
        ours = [owned] if resource.label_selector.empty else [owned, existing]
        preferred = node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            *preferred,
            {"weight": 100, "preference": {"matchExpressions": owned}},
        ]
    required = _object(node_affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    theirs = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or []), *expressions]}
        for term in theirs
        for expressions in ours
    ]


def _object(parent: dict[str, Any], key: str) -> dict[str, Any]:
    """The object at the key, created where it is missing or null."""
    if not isinstance(parent.get(key), dict):
        parent[key] = {}
    value: dict[str, Any] = parent[key]
    return value
