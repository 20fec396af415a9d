"""Random rules of pods about each other: the real scheduler binds the pods that a plan promises a place.

Each case is a namespace with nodes, a NodePool and pods of its own, which have up to three rules, request devices of
time-sliced GPUs and are held by the capacity gate. Pods without GPUs are on some of the nodes before. A pod is let go
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
from tests.placement.rules import HOST, ZONE, apart, near, spread, zones

pytestmark = pytest.mark.e2e

SEED: Final = int(os.environ.get("SEED", "1"))
CASES: Final = int(os.environ.get("RULE_CASES", "24"))
ROUNDS: Final = 4
CASE, RACK = "sandbox.plimsoll.dev/case", "sandbox.plimsoll.dev/rack"
SHARED, GPUS, PER_GPU = "nvidia.com/gpu.shared", 1, 4
L4, L4_MIB = "NVIDIA-L4", 23034
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_RULES: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {"apart": apart, "near": near, "spread": spread}


@dataclass
class Case:
    name: str
    pods: list[Manifest]
    nodes: list[Manifest]
    plain: list[Manifest]
    """Pods without GPUs that are on these nodes."""
    pool: NodePool

    @classmethod
    def drawn(cls, name: str, random: Random) -> "Case":
        rack = {"key": RACK, "operator": "In", "values": ["r1", "r2"]}
        open_to_requests = {"key": "plimsoll.dev/request", "operator": "Exists"}
        offers = [zones("a", "b", "c"), rack, open_to_requests]
        pool = a_node_pool(name, ["g6.xlarge"], requirements=offers, more_labels={CASE: name})
        nodes = [
            a_host(f"{name}-n{number}", name, {ZONE: random.choice("abc"), RACK: random.choice(["r1", "r2"])})
            for number in range(random.randint(0, 3))
        ]
        pods = [_pod(f"p{number}", name, random) for number in range(random.randint(2, 7))]
        plain = [
            _plain(f"web{number}", name, node, random) for number, node in enumerate(nodes) if random.random() < 0.4
        ]
        return cls(name, pods, nodes, plain, pool)


def _pod(name: str, case: str, random: Random) -> Manifest:
    gate = {"schedulingGates": [{"name": CAPACITY_GATE}], "nodeSelector": {CASE: case}}
    number = random.choices(range(4), [3, 4, 2, 1])[0]
    return _manifest(name, case, random, number, {SHARED: str(random.choice([1, 2, 3]))}, gate)


def _plain(name: str, case: str, node: Manifest, random: Random) -> Manifest:
    return _manifest(name, case, random, random.randint(0, 1), {}, {"nodeName": node["metadata"]["name"]})


def _manifest(
    name: str, case: str, random: Random, rules: int, limits: Mapping[str, str], place: Mapping[str, Any]
) -> Manifest:
    drawn = [
        _RULES[random.choice(list(_RULES))](random.choice("xy"), random.choice([HOST, ZONE, RACK]))
        for _ in range(rules)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": case, "labels": {"app": random.choice("xy")}},
        "spec": {
            **place,
            "affinity": {
                field: {_REQUIRED: [term for each in drawn for term in each.get(field, {}).get(_REQUIRED, ())]}
                for field in ("podAffinity", "podAntiAffinity")
            },
            "topologySpreadConstraints": _several(drawn),
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": {"limits": limits}}],
        },
    }


def _several(drawn: list[dict[str, Any]]) -> list[Manifest]:
    """The spread constraints: a pod may have one for each label."""
    constraints = [constraint for each in drawn for constraint in each.get("topologySpreadConstraints", ())]
    return list({each["topologyKey"]: each for each in constraints}.values())


def a_host(name: str, case: str, more: Mapping[str, str]) -> Manifest:
    """A simulated node with a time-sliced GPU of the case's NodePool."""
    labels = gpu_labels(L4, GPUS, L4_MIB) | {
        "node.kubernetes.io/instance-type": "g6.xlarge", "karpenter.sh/nodepool": case, CASE: case, HOST: name,
    }  # fmt: skip
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "58", "nvidia.com/gpu": "0", SHARED: str(GPUS * PER_GPU)}
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
        await_condition(lambda case=case: cluster.get("v1", "ServiceAccount", "default", case.name), 60)  # type: ignore[misc]
        for manifest in (*case.nodes, *case.plain):
            cluster.create(manifest)
        made = [cluster.create(pod) for pod in case.pods]
        pods |= {pod["metadata"]["uid"]: pod for pod in made}
    free, nodes = set[str](), 0
    for _ in range(ROUNDS):
        plan = plan_of(sandbox, cases)
        for node in plan.nodes:
            nodes += 1
            cluster.create(a_host(f"new-{nodes}", node.node_pool, labels_of(node, random)))
        await_condition(lambda: all(map(_is_ready, cluster.list("v1", "Node"))), 60, "the nodes are Ready")
        promised = {uid for demand in plan.demands for uid in demand.pods if uid not in demand.refused}
        let_go(cluster, {uid: pods[uid] for uid in sorted(promised - free)})
        free |= promised
        with suppress(AssertionError):
            await_condition(lambda promised=promised: promised <= bound(cluster), 20)  # type: ignore[misc]
            if not plan.nodes:
                break
    there, last = bound(cluster) & pods.keys(), plan_of(sandbox, cases)
    refused = {uid for demand in last.demands for uid in demand.refused}
    late = pods.keys() - there - refused
    assert late == set(), [summary(pods[uid]) for uid in late]
    assert not last.nodes
    withdrawn = refused & free
    assert len(withdrawn) <= len(pods) // 20, [summary(pods[uid]) for uid in withdrawn]
    let_go(cluster, {uid: pods[uid] for uid in sorted(refused - free)})
    await_condition(lambda: handled(cluster, refused), 60, "the scheduler has seen the others")
    assert not refused & bound(cluster), [summary(pods[uid]) for uid in refused & bound(cluster)]


def summary(pod: Manifest) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']} of {CASES} cases of seed {SEED}"


def _is_ready(node: Manifest) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
