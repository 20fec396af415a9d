"""Random rules of pods about each other: the real scheduler binds the pods that a plan promises a place.

Each case is a namespace with nodes, a NodePool and pods of its own, which have up to three rules with the fields that
the scheduler reads, request devices of time-sliced GPUs and are held by the capacity gate; some select a zone. Some
nodes are tainted, cordoned or have no GPUs, and pods with GPUs and without are on some of them before. A pod is let go
when it is promised a place. Where the scheduler places pods otherwise than planned, the next round asks for what is
missing. Few promises are withdrawn: others have taken the last domain where a pod could be. In the end the other pods
are let go: no node may have room for them.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from plimsoll.kube import Connection
from plimsoll.model import Snapshot
from plimsoll.model.api import CAPACITY_GATE
from plimsoll.model.karpenter import NodePool
from plimsoll.observe.cluster import read_cluster
from plimsoll.plan.demand import DemandPlan, DemandPlanner, PlannedNode
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.builders import a_node_pool, an_environment, gpu_labels
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.cluster.sandboxes import up_sandbox
from tests.placement.rules import HOST, ZONE, zones

pytestmark = pytest.mark.e2e

SEED: Final = int(os.environ.get("SEED", "1"))
CASES: Final = int(os.environ.get("RULE_CASES", "24"))
ROUNDS: Final = 4
CASE, RACK = "sandbox.plimsoll.dev/case", "sandbox.plimsoll.dev/rack"
SHARED, GPUS, PER_GPU = "nvidia.com/gpu.shared", 1, 4
L4, L4_MIB = "NVIDIA-L4", 23034
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_SPREAD: Final = "topologySpreadConstraints"
KEPT: Final = {"key": "sandbox.plimsoll.dev/kept", "value": "yes", "effect": "NoSchedule"}
"""A taint of some nodes, which some pods tolerate."""


@dataclass
class Case:
    name: str
    pods: list[Manifest]
    nodes: list[Manifest]
    there: list[Manifest]
    """Pods that are on these nodes."""
    pool: NodePool

    @classmethod
    def drawn(cls, name: str, random: Random) -> "Case":
        rack = {"key": RACK, "operator": "In", "values": ["r1", "r2"]}
        open_to_requests = {"key": "plimsoll.dev/request", "operator": "Exists"}
        offers = [zones("a", "b", "c"), rack, open_to_requests]
        pool = a_node_pool(name, ["g6.xlarge"], requirements=offers, more_labels={CASE: name})
        nodes = [_node(f"{name}-n{number}", name, random) for number in range(random.randint(0, 3))]
        pods = [_pod(f"p{number}", name, random) for number in range(random.randint(2, 7))]
        there = [
            _there(f"there{number}", name, node, random) for number, node in enumerate(nodes) if random.random() < 0.5
        ]
        return cls(name, pods, nodes, there, pool)


def _node(name: str, case: str, random: Random) -> Manifest:
    """A node that exists: some have no GPUs, some no rack, and some are tainted or cordoned."""
    rack = {RACK: random.choice(["r1", "r2"])} if random.random() < 0.8 else {}
    node = a_host(name, case, {ZONE: random.choice("abc")} | rack, gpus=random.choice([0, *[GPUS] * 4]))
    node["spec"] = {"taints": [KEPT] if random.random() < 0.15 else [], "unschedulable": random.random() < 0.1}
    return node


def _pod(name: str, case: str, random: Random) -> Manifest:
    zone = {ZONE: random.choice("abc")} if random.random() < 0.15 else {}
    gate = {"schedulingGates": [{"name": CAPACITY_GATE}], "nodeSelector": {CASE: case} | zone}
    number = random.choices(range(4), [3, 4, 2, 1])[0]
    return _manifest(name, case, random, number, {SHARED: str(random.choice([1, 2, 3]))}, gate)


def _there(name: str, case: str, node: Manifest, random: Random) -> Manifest:
    """A pod that is on the node, with a device of a GPU or without."""
    limits = {SHARED: "1"} if node["status"]["allocatable"][SHARED] != "0" and random.random() < 0.5 else {}
    return _manifest(name, case, random, random.randint(0, 1), limits, {"nodeName": node["metadata"]["name"]})


def _manifest(
    name: str, case: str, random: Random, rules: int, limits: Mapping[str, str], place: Mapping[str, Any]
) -> Manifest:
    drawn = [_rule(case, random) for _ in range(rules)]
    version = {"version": random.choice("12")} if random.random() < 0.7 else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": case, "labels": {"app": random.choice("xy"), CASE: case} | version},
        "spec": {
            **place,
            "tolerations": [KEPT] if random.random() < 0.3 else [],
            "affinity": {
                field: {_REQUIRED: [term for of, term in drawn if of == field]}
                for field in ("podAffinity", "podAntiAffinity")
            },
            "topologySpreadConstraints": _several([term for field, term in drawn if field == _SPREAD]),
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": {"limits": limits}}],
        },
    }


def _rule(case: str, random: Random) -> tuple[str, Manifest]:
    """A term, and the field that it is for."""
    field = random.choice(["podAffinity", "podAntiAffinity", _SPREAD])
    app = random.choice("xy")
    others = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]}
    selectors: list[Manifest] = [*[{"matchLabels": {"app": app}}] * 5, others, {"matchLabels": {CASE: case}}, {}]
    selector = random.choice(selectors)
    term: Manifest = {"topologyKey": random.choice([HOST, ZONE, RACK]), "labelSelector": selector}
    if random.random() < 0.2:
        term["matchLabelKeys"] = ["version"]
    if field == _SPREAD:
        return field, term | _spreading(random)
    if "matchLabelKeys" not in term and random.random() < 0.1:
        term["mismatchLabelKeys"] = ["version"]
    if random.random() < 0.15:
        inside = {"key": CASE, "operator": "In", "values": [case]}
        term["labelSelector"] = {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), inside]}
        term |= random.choice([{"namespaceSelector": {}}, {"namespaces": [case, "default"]}])
    return field, term


def _spreading(random: Random) -> Manifest:
    unsatisfiable = "ScheduleAnyway" if random.random() < 0.1 else "DoNotSchedule"
    more: Manifest = {"maxSkew": random.choice([1, 1, 2, 3]), "whenUnsatisfiable": unsatisfiable}
    if unsatisfiable == "DoNotSchedule" and random.random() < 0.25:
        more["minDomains"] = random.choice([2, 3])
    if random.random() < 0.25:
        more["nodeTaintsPolicy"] = "Honor"
    if random.random() < 0.15:
        more["nodeAffinityPolicy"] = "Ignore"
    return more


def _several(drawn: list[Manifest]) -> list[Manifest]:
    """The spread constraints: a pod may have one for each label and whenUnsatisfiable."""
    return list({(each["topologyKey"], each["whenUnsatisfiable"]): each for each in drawn}.values())


def a_host(name: str, case: str, more: Mapping[str, str], gpus: int = GPUS) -> Manifest:
    """A simulated node of the case's NodePool with time-sliced GPUs; without GPUs, one of no NodePool."""
    of_pool = {"node.kubernetes.io/instance-type": "g6.xlarge", "karpenter.sh/nodepool": case}
    labels = {CASE: case, HOST: name} | (gpu_labels(L4, gpus, L4_MIB) | of_pool if gpus else {})
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "58", "nvidia.com/gpu": "0", SHARED: str(gpus * PER_GPU)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | dict(more), "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": amounts, "allocatable": amounts, "phase": "Pending"},
    }


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("rules", karpenter=False)


def plan_of(sandbox: Sandbox, cases: list[Case]) -> DemandPlan:
    """The plan for what the cluster has, with the NodePools of the cases."""
    with closing(Connection.open(sandbox.kubeconfig)) as connection:
        seen = read_cluster(connection)
    shared = [{"nodePool": case.name, "resource": SHARED, "perGpu": PER_GPU} for case in cases]
    environment = an_environment(demand={"provisioner": "trigger-pod", "sharedDevices": shared})
    pools = tuple(case.pool for case in cases)
    snapshot: Snapshot = seen.model_copy(update={"environment": environment, "node_pools": pools})
    return DemandPlanner().plan(snapshot)


def labels_of(node: PlannedNode, random: Random) -> dict[str, str]:
    """What is left open is decided by chance, as by a cloud."""
    wanted = {each.key: each.values for term in node.requires for each in term if each.operator == "In"}
    return {
        key: random.choice(wanted.get(key, every)) for key, every in ((ZONE, ("a", "b", "c")), (RACK, ("r1", "r2")))
    }


def bound(cluster: Kube) -> set[str]:
    pods = cluster.list("v1", "Pod")
    return {pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName")}


def let_go(cluster: Kube, pods: Mapping[str, Manifest]) -> None:
    for pod in pods.values():
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        cluster.patch("v1", "Pod", name, {"spec": {"schedulingGates": None}}, namespace=namespace)


def handled(cluster: Kube, uids: set[str]) -> bool:
    """Whether the scheduler has bound these pods, or said that no node has room for them."""
    unschedulable = {
        pod["metadata"]["uid"]
        for pod in cluster.list("v1", "Pod")
        for condition in pod["status"].get("conditions", [])
        if (condition["type"], condition.get("reason")) == ("PodScheduled", "Unschedulable")
    }
    return uids <= unschedulable | bound(cluster)


def test_the_scheduler_binds_what_is_promised(kube: Callable[..., Kube], sandbox: Sandbox) -> None:
    random, cluster = Random(SEED), kube(sandbox)
    cases = [Case.drawn(f"case-{number}", random) for number in range(CASES)]
    pods: dict[str, Manifest] = {}
    for case in cases:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.name}})
        await_condition(lambda case=case: cluster.get("v1", "ServiceAccount", "default", case.name), 120)  # type: ignore[misc]
        for manifest in (*case.nodes, *case.there):
            cluster.create(manifest)
        made = [cluster.create(pod) for pod in case.pods]
        pods |= {pod["metadata"]["uid"]: pod for pod in made}
    free, nodes = set[str](), 0
    for _ in range(ROUNDS):
        plan = plan_of(sandbox, cases)
        for node in plan.nodes:
            nodes += 1
            cluster.create(a_host(f"new-{nodes}", node.node_pool, labels_of(node, random)))
        await_condition(lambda: all(map(_is_ready, cluster.list("v1", "Node"))), 120, "the nodes are Ready")
        promised = {uid for demand in plan.demands for uid in demand.pods if uid not in demand.refused}
        let_go(cluster, {uid: pods[uid] for uid in sorted(promised - free)})
        free |= promised
        with suppress(AssertionError):
            await_condition(lambda promised=promised: promised <= bound(cluster), 20)  # type: ignore[misc]
            if not plan.nodes:
                break
    # In this order: one that is bound in between is waiting by the plan.
    last, there = plan_of(sandbox, cases), bound(cluster) & pods.keys()
    refused = {uid for demand in last.demands for uid in demand.refused}
    late = pods.keys() - there - refused
    assert late == set(), [summary(pods[uid]) for uid in late]
    assert not last.nodes
    withdrawn = refused & free
    assert len(withdrawn) <= len(pods) // 10, [summary(pods[uid]) for uid in withdrawn]
    let_go(cluster, {uid: pods[uid] for uid in sorted(refused - free)})
    await_condition(lambda: handled(cluster, refused), 120, "the scheduler has seen the others")
    assert not refused & bound(cluster), [summary(pods[uid]) for uid in refused & bound(cluster)]


def summary(pod: Manifest) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']} of {CASES} cases of seed {SEED}"


def _is_ready(node: Manifest) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
