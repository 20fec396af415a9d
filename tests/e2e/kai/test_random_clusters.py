"""Random clusters side by side: KAI binds exactly the pods that Plimsoll lets go.

A pod is let go when it is promised GPUs, so that all others keep the capacity gate. In the end their gates are removed:
KAI must find no place for them either. A pod that KAI evicts to place others is gone: it has no controller that would
create it again.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.nodes import make_nodes, parse_node_list
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.demand.environment import add_pool, gated, triggers
from tests.e2e.kai.workloads import CASE, Placed, a_queue, assert_unschedulable, pod_group, said_by, share

pytestmark = pytest.mark.e2e

SEED = int(os.environ.get("SEED", "1"))
BATCHES = int(os.environ.get("KAI_BATCHES", "1"))
"""Of ten clusters each."""


class Gpu(NamedTuple):
    instance_type: str
    """Of new nodes."""
    memory: int
    """MiB that KAI divides."""


TYPES = {
    "A10G": Gpu("g5.12xlarge", 23000),
    "T4": Gpu("g4dn.12xlarge", 15300),
    "A100-40GB": Gpu("p4d.24xlarge", 40900),
}
"""By model."""


@dataclass(frozen=True)
class RandomCluster:
    """Up to two nodes that exist, a NodePool, pods of one or two queues, and gangs of them."""

    name: str
    instance_types: tuple[str, ...]
    """One or two, with GPUs of different memory."""
    nodes: tuple[str, ...]
    """Lines of a file of nodes."""
    queues: tuple[Manifest, ...]
    gangs: tuple[Manifest, ...]
    pods: tuple[Manifest, ...]

    @classmethod
    def drawn(cls, name: str, random: Random, *, limits: bool, models: int, gangs: int) -> "RandomCluster":
        kinds = [random.choice(list(TYPES))] if models == 1 else random.sample(list(TYPES), models)
        memory = max(TYPES[model].memory for model in kinds)
        nodes = [
            f"{name}-{n},48000,196608,{random.randint(1, 4)},{kinds[n % models]}" for n in range(random.randint(0, 2))
        ]
        parent = a_queue(f"{name}-all", random.randint(60, 500) / 100 if limits else -1)
        queues = [
            a_queue(
                f"{name}-{each}", random.randint(30, 300) / 100 if limits else -1, parent=parent["metadata"]["name"]
            )
            for each in ("a", "b")
        ]
        groups, pods = [], []
        for number in range(random.randint(4, 9)):
            queue = random.choice(queues)["metadata"]["name"]
            gang = f"{name}-{number}" if number < gangs else ""
            members = random.randint(2, 4) if gang else 1
            if gang:
                groups.append(pod_group(gang, random.randint(2, members), queue))
            pods += [
                share(
                    f"{name}-{number}-{member}",
                    gated=True,
                    queue=queue,
                    group=gang,
                    selector={CASE: name},
                    **_request(random, memory),
                )
                for member in range(members)
            ]
        types = tuple(TYPES[model].instance_type for model in kinds)
        return cls(name, types, tuple(nodes), (parent, *queues), tuple(groups), tuple(pods))


def _request(random: Random, memory: int) -> dict[str, Any]:
    """A fraction, in hundredths or not, of one GPU or two; or MiB."""
    drawn = random.random()
    if drawn < 0.3:
        return {"memory": random.randint(memory // 20, memory)}
    if drawn < 0.5:
        return {"fraction": f"{random.randint(1, 999) / 1000:.3f}"}
    devices = {"devices": 2} if drawn > 0.9 else {}
    return {"fraction": f"{random.randint(2, 99) / 100:.2f}"} | devices


def build(cluster: Kube, sandbox: Sandbox, clusters: list[RandomCluster]) -> None:
    lines = [line for each in clusters for line in each.nodes]
    make_nodes(sandbox.kubeconfig, list(parse_node_list(["sn,cpu_milli,memory_mib,gpu,model", *lines], "drawn")))
    for each in clusters:
        for line in each.nodes:
            cluster.patch("v1", "Node", line.partition(",")[0], {"metadata": {"labels": {CASE: each.name}}})
        add_pool(cluster, each.name, " ".join(each.instance_types), **{CASE: each.name})
        for manifest in (*each.queues, *each.gangs, *each.pods):
            cluster.create(manifest)


def refused(sandbox: Sandbox) -> set[str]:
    """Names of the pods that `plimsoll demand` says why they get nothing."""
    demands: list[dict[str, Any]] = said_by(sandbox, "demand", codes=(0, 2))["demands"]
    return {pod["name"] for each in demands for pod in each["pods"] if pod["uid"] in each["refused"]}


def settled(cluster: Kube) -> bool:
    """Whether every pod that was let go is bound, and nothing more is requested."""
    placed = Placed.of(cluster)
    waiting = set(gated(cluster))
    return not triggers(cluster) and placed.bound == placed.pods.keys() - waiting and placed.all_made


@pytest.mark.parametrize("batch", range(BATCHES))
def test_kai_binds_what_is_promised(cluster: Kube, kai_sandbox: Sandbox, tmp_path: Path, batch: int) -> None:
    # `make test` runs the first batch, of single pods and one type of GPUs in each cluster.
    random, mixed = Random(f"{SEED}-{batch}"), int(batch > 0)
    clusters = [
        RandomCluster.drawn(
            f"c{batch}-{n}", random, limits=n % 2 == 0, models=1 + mixed * (n // 2 % 2), gangs=mixed * (n // 4)
        )
        for n in range(10)
    ]
    build(cluster, kai_sandbox, clusters)
    pods = {pod["metadata"]["name"] for each in clusters for pod in each.pods}
    with controller(kai_sandbox, tmp_path):
        await_condition(lambda: gated(cluster) != sorted(pods) and settled(cluster), 300, "what is let go is bound")
        await_condition(lambda: refused(kai_sandbox) == set(gated(cluster)) and settled(cluster), 120, "all is planned")
    placed, left = Placed.of(cluster), set(gated(cluster))
    assert placed.bound == placed.pods.keys() - left
    assert placed.empty == frozenset()
    assert_unschedulable(cluster, left)
