"""Demand in end-to-end tests: share pods that no scheduler places, NodePools for them, and the objects that request
capacity."""

from collections.abc import Iterable
from typing import Any

from plimsoll.model.api import CAPACITY_GATE
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube

API = "plimsoll.dev/v1alpha1"
CLAIM = ("karpenter.sh/v1", "NodeClaim")
POOL = ("karpenter.sh/v1", "NodePool")
NODE_CLASS = ("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass")
BUFFER = ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer")
POLICY = ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy")
BINDING = ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding")
SOLD_OUT = "sold-out"
ENVIRONMENT = "sandbox-nap"
TRIGGERS = "plimsoll-triggers"
NAMESPACE = "default"
EIGHT_GPUS = "p4d.24xlarge"
"""8 x A100 of 40 GiB."""
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
UNDER_WAY = ("Scheduled", "Launching", "Registering", "Initializing")
"""Phases of a GPUDemand whose nodes have been requested."""
RULES = {
    # Queues of the sandbox go with the default scheduler, and shares have that of KAI.
    "withoutQueue": "allow",
    "deadlineSeconds": 300,
    "retries": 1,
    "retrySeconds": 3,
    "pauseSeconds": 600,
    "retentionSeconds": 600,
}


def remove_added(cluster: Kube, *kinds: str) -> None:
    """Deletes the NodePools that a test added to the sandbox's own, and Plimsoll's objects of these kinds."""
    for pool in cluster.list(*POOL):
        if pool["metadata"]["name"] != "gpu":
            cluster.delete(*POOL, pool["metadata"]["name"])
    for kind in kinds:
        for each in cluster.list(API, kind):
            cluster.delete(API, kind, each["metadata"]["name"])


def declare_demand(cluster: Kube, provisioner: str, *, gpu_deadline: int = 300, **rules: Any) -> dict[str, Any]:
    """Sets `spec.demand` of the Environment, which is returned. `gpu_deadline` are seconds."""
    deadlines = {"launchDeadlineSeconds": 300, "registrationDeadlineSeconds": 300, "gpuDeadlineSeconds": gpu_deadline}
    spec = {"demand": {**RULES, **rules, "provisioner": provisioner}, "nodeClaims": deadlines}
    return cluster.patch(API, "Environment", ENVIRONMENT, {"spec": spec})


def add_pool(cluster: Kube, name: str, instance_types: str, delay: str = "", **labels: str) -> None:
    """A NodePool with these instance types (separated by spaces), whose nodes register after a while and are never
    consolidated."""
    reference = {"group": "karpenter.kwok.sh", "kind": NODE_CLASS[1], "name": name}
    spec = {"nodeRegistrationDelay": delay} if delay else {}
    cluster.apply({"apiVersion": NODE_CLASS[0], "kind": NODE_CLASS[1], "metadata": {"name": name}, "spec": spec})
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "nodeClassRef": reference,
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": instance_types.split()},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            ],
        },
    }
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    cluster.apply(
        {
            "apiVersion": POOL[0],
            "kind": POOL[1],
            "metadata": {"name": name},
            "spec": {"template": template, "disruption": disruption},
        }
    )


def add_open_pool(cluster: Kube, name: str, instance_types: str) -> None:
    """As `add_pool`, of which a request has a node of its own."""
    add_pool(cluster, name, instance_types)
    pool = cluster.get(*POOL, name)
    assert pool is not None
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements.append({"key": "plimsoll.dev/request", "operator": "Exists"})
    cluster.patch(*POOL, name, {"spec": {"template": {"spec": {"requirements": requirements}}}})


def add_shares(cluster: Kube, names: Iterable[str], fraction: str = "0.5", cpu: str = "1", **selector: str) -> None:
    """Creates pods of KAI with the capacity gate. Without it, Karpenter would treat them as pods without GPUs and serve
    them."""
    for name in names:
        resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"gpu-fraction": fraction}},
                "spec": {
                    "schedulerName": "kai-scheduler",
                    "schedulingGates": [{"name": CAPACITY_GATE}],
                    "nodeSelector": selector,
                    "tolerations": [TOLERATION],
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": resources}],
                },
            }
        )


def gated(cluster: Kube) -> list[str]:
    """Pods that still have the gate."""
    return [
        pod["metadata"]["name"] for pod in cluster.list("v1", "Pod", NAMESPACE) if pod["spec"].get("schedulingGates")
    ]


def bind(cluster: Kube, pod: str, node: str) -> None:
    """Binds pods as KAI's binder does once there is room: it says first on which GPU the pod's share is."""
    told = {"labels": {"runai-gpu-group": f"group-of-{pod}"}, "annotations": {"plimsoll.dev/visible-devices": pod}}
    cluster.patch("v1", "Pod", pod, {"metadata": told}, NAMESPACE)
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    metadata = {"name": pod, "namespace": NAMESPACE}
    cluster.create({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}, "binding")


def remove_shares(cluster: Kube, names: Iterable[str]) -> None:
    for name in names:
        cluster.delete("v1", "Pod", name, NAMESPACE)


def triggers(cluster: Kube) -> list[dict[str, Any]]:
    """Trigger pods that are not being deleted."""
    found = cluster.list("v1", "Pod", TRIGGERS, selector="plimsoll.dev/demand")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def reasons(cluster: Kube) -> list[str]:
    """The reasons of the condition PodScheduled of the trigger pods."""
    return [
        condition["reason"]
        for pod in triggers(cluster)
        for condition in pod["status"].get("conditions", ())
        if condition["type"] == "PodScheduled"
    ]


def claims_of(cluster: Kube, pool: str) -> set[str]:
    """NodeClaims that Karpenter created for a NodePool."""
    return {each["metadata"]["name"] for each in cluster.list(*CLAIM, selector=f"karpenter.sh/nodepool={pool}")}


def nodes_of(cluster: Kube, pool: str) -> list[str]:
    """Nodes of a NodePool that show their GPUs."""
    found = cluster.list("v1", "Node", selector=f"karpenter.sh/nodepool={pool}")
    return sorted(
        node["metadata"]["name"]
        for node in found
        if int(node["status"].get("allocatable", {}).get("nvidia.com/gpu", "0"))
    )


def await_another_look(cluster: Kube) -> None:
    """Waits until Karpenter has checked all pending pods again.

    Karpenter checks all pods at once: when it has created a NodeClaim for a pod that is created now, it has checked
    everything else again. A node of an earlier look would have room for the pod.
    """
    await_condition(lambda: not claims_of(cluster, "look"), 120, "that of the last look is gone")
    add_pool(cluster, "look", "g5.12xlarge", tier="look")
    spec = {
        "nodeSelector": {"tier": "look"},
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9"}],
    }
    metadata = {"name": "look", "namespace": NAMESPACE}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    await_condition(lambda: claims_of(cluster, "look"), 120, "Karpenter serves a pod that just came")
    cluster.delete("v1", "Pod", "look", NAMESPACE)
    cluster.delete(*POOL, "look")
    await_condition(lambda: cluster.get("v1", "Pod", "look", NAMESPACE) is None, 120, "the pod goes")


def asked(cluster: Kube, provisioner: str) -> list[dict[str, Any]]:
    """The objects that request nodes for demand, of either provisioner that Karpenter serves, with their
    PodTemplates."""
    if provisioner == "trigger-pod":
        return triggers(cluster)
    made = cluster.list(*BUFFER, TRIGGERS)
    return made or cluster.list("v1", "PodTemplate", TRIGGERS)


def wanted(cluster: Kube, provisioner: str) -> list[int]:
    """The number of nodes that each trigger pod or buffer requests now."""
    if provisioner == "trigger-pod":
        return [int(reason == "Unschedulable") for reason in reasons(cluster)]
    return [each["spec"]["replicas"] for each in cluster.list(*BUFFER, TRIGGERS)]


def sell_out(cluster: Kube, pool: str) -> None:
    """From now on Karpenter's provider has no capacity for the NodePool: the node class of its NodeClaims does not
    exist, which the KWOK provider reports as insufficient capacity."""
    rules = [
        {"apiGroups": ["karpenter.sh"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodeclaims"]}
    ]
    patch = '[JSONPatch{op: "replace", path: "/spec/nodeClassRef/name", value: "sold-out"}]'
    of_pool = f"object.metadata.labels[?'karpenter.sh/nodepool'].orValue('') == '{pool}'"
    policy = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "of-the-pool", "expression": of_pool}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    metadata = {"name": SOLD_OUT}
    for kind, spec in ((POLICY, policy), (BINDING, {"policyName": SOLD_OUT})):
        cluster.apply({"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec})
    claim = {
        "apiVersion": CLAIM[0],
        "kind": CLAIM[1],
        "metadata": {"name": "would-be", "labels": {"karpenter.sh/nodepool": pool}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": NODE_CLASS[1], "name": pool},
            "requirements": [],
        },
    }
    await_condition(
        lambda: cluster.apply(claim, dry_run=True)["spec"]["nodeClassRef"]["name"] == "sold-out", 120, "it is in force"
    )


def supply_again(cluster: Kube) -> None:
    """Removes the policy of `sell_out`."""
    for kind in (BINDING, POLICY):
        cluster.delete(*kind, SOLD_OUT)


def events_of(cluster: Kube, pool: str) -> list[dict[str, Any]]:
    """Karpenter's events about NodeClaims of the NodePool that found no capacity."""
    return [
        event
        for event in cluster.list("v1", "Event", NAMESPACE)
        if event["reason"] == "InsufficientCapacityError" and event["involvedObject"]["name"].startswith(f"{pool}-")
    ]


def demands(cluster: Kube, *phases: str) -> list[dict[str, Any]]:
    """Statuses of all GPUDemands, or of those in one of these phases."""
    found = [each["status"] for each in cluster.list(API, "GPUDemand") if "status" in each]
    return [status for status in found if not phases or status.get("phase") in phases]
