"""Node pools of KAI, each with a scheduler of its own: nodes, queues and pods of one are never those of another."""

import os
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest

from plimsoll.model.kai import NODE_POOL
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.cluster.program import program
from tests.e2e.demand.environment import add_pool, gated, triggers
from tests.e2e.kai.workloads import DEFAULT_QUEUE, NAMESPACE, Placed, a_queue, gpus_of, pod_group, said_by, share

pytestmark = pytest.mark.e2e

SHARDS = ("", "north", "south")
"""That of the sandbox's scheduler, which sees what has no label, and two others."""
A10G_1, LIMIT, LIMITED = "g5.xlarge", 2, "OverLimit"
"""One A10G; GPUs of the queue of a shard; KAI's reason beyond these."""


def scheduler(sandbox: Sandbox, shard: str, folder: Path) -> AbstractContextManager[None]:
    """KAI's scheduler of a SchedulingShard, with the flags of KAI's operator."""
    listening = ("--listen-address=127.0.0.1:0", "--plugin-server-port=-1")
    command = [str(sandbox.folder.bin() / "kai"), "scheduler", f"--partition-label-value={shard}", *listening]
    environ = {**os.environ, "KUBECONFIG": str(sandbox.folder.kubeconfig("kai-scheduler")), "TMPDIR": str(folder)}
    return program(command, environ, folder / f"scheduler-{shard}.log")


def labels_of(shard: str) -> dict[str, str]:
    return {NODE_POOL: shard} if shard else {}


def of_shard(manifest: Manifest, shard: str) -> Manifest:
    manifest["metadata"].setdefault("labels", {}).update(labels_of(shard))
    return manifest


def add_world(cluster: Kube, shard: str) -> list[str]:
    """A NodePool, queues and pods of a shard, which its limit admits; their names. The gang's members have no label:
    that of their PodGroup counts."""
    name = shard or "rest"
    add_pool(cluster, f"shard-{name}", A10G_1, **labels_of(shard))
    queue = f"{name}-team" if shard else DEFAULT_QUEUE
    if shard:
        cluster.create(of_shard(a_queue(f"{name}-all", parent=""), shard))
        cluster.create(of_shard(a_queue(queue, LIMIT, parent=f"{name}-all"), shard))
    cluster.create(of_shard(pod_group(f"{name}-gang", 2, queue), shard))
    pods = [
        *(of_shard(share(f"{name}-{n}", "0.5", gated=True, queue=queue), shard) for n in range(2)),
        *(share(f"{name}-gang-{n}", "0.4", group=f"{name}-gang", gated=True, queue=queue) for n in range(2)),
    ]
    for pod in pods:
        cluster.create(pod)
    return [pod["metadata"]["name"] for pod in pods]


def add_over(cluster: Kube, shard: str) -> str:
    """A pod beyond the limit of the queue, which comes after the others: those of one second are in the order of their
    UIDs. Its name."""
    cluster.create(of_shard(share(f"{shard}-over", "0.9", gated=True, queue=f"{shard}-team"), shard))
    return f"{shard}-over"


def told(cluster: Kube, pod: str) -> list[str]:
    """What the events of the pod say of a limit."""
    events = cluster.list("v1", "Event", NAMESPACE)
    return [
        each["message"] for each in events if each["involvedObject"].get("name") == pod and LIMITED in each["message"]
    ]


def allocated(sandbox: Sandbox) -> dict[str, float]:
    """GPUs of `plimsoll queues`, by leaf queue."""
    queues: list[dict[str, Any]] = said_by(sandbox, "queues")["queues"]
    return {each["name"]: each["gpu"]["allocated"] for each in queues if each["leaf"] and each["gpu"]["allocated"]}


def test_each_scheduler_binds_what_is_of_its_node_pool(cluster: Kube, kai_sandbox: Sandbox, tmp_path: Path) -> None:
    with ExitStack() as running:
        running.enter_context(scheduler(kai_sandbox, "north", tmp_path))
        names = {shard: add_world(cluster, shard) for shard in SHARDS}
        running.enter_context(controller(kai_sandbox, tmp_path))
        first = {*names[""], *names["north"]}
        await_condition(lambda: Placed.of(cluster).bound >= first, 120, "those of schedulers that run are bound")
        await_condition(lambda: not set(names["south"]) & set(gated(cluster)), 120, "all others have capacity")
        over = [add_over(cluster, shard) for shard in SHARDS if shard]
        await_condition(lambda: all(told(cluster, pod) for pod in over), 120, "the limit of each queue")
        assert Placed.of(cluster).bound == first, "no scheduler binds pods of another node pool"
        running.enter_context(scheduler(kai_sandbox, "south", tmp_path))
        everything = first | set(names["south"])
        await_condition(lambda: Placed.of(cluster).bound == everything, 120, "their own scheduler binds them")
        await_condition(lambda: not triggers(cluster), 120, "no trigger pod is left")
        await_condition(lambda: Placed.of(cluster).all_made, 120, "no node is being made")
        assert gated(cluster) == over
    placed = Placed.of(cluster)
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"] for node in cluster.list("v1", "Node")}
    for shard, pods in names.items():
        assert {nodes[placed.pods[pod]].get(NODE_POOL, "") for pod in pods} == {shard}
    assert placed.empty == frozenset()
    assert len(placed.nodes) == 2 * len(SHARDS)
    assert gpus_of(kai_sandbox) == placed.groups
    assert allocated(kai_sandbox) == {DEFAULT_QUEUE: 1.8, "north-team": 1.8, "south-team": 1.8}
