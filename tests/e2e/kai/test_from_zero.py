"""From no nodes: what is promised a place is bound by KAI, by a real one, and no node stays empty."""

from pathlib import Path

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.demand.environment import add_pool, triggers
from tests.e2e.kai.workloads import (
    Placed,
    a_job,
    a_job_set,
    a_queue,
    a_ray_cluster,
    assert_unschedulable,
    bound_of,
    gpus_of,
    pod_group,
    prepare,
    share,
)
from tests.placement.rules import apart, near

pytestmark = pytest.mark.e2e

POOL, A10G_4 = "kai", "g5.12xlarge"
"""4 x A10G of 23000 MiB."""


JOB_PODS = 3


def add_all_kinds(cluster: Kube, *, gated: bool) -> list[Manifest]:
    """Pods alone and of workloads; returns those that have no controller, beside `JOB_PODS` of a Job."""
    cluster.create(pod_group("gang", 4))
    cluster.create(pod_group("elastic", 2))
    ray = cluster.create(a_ray_cluster("ray", workers=2, least=2))
    jobs = cluster.create(a_job_set("jobs"))
    pods = [
        *(share(f"half-{n}", "0.5", gated=gated) for n in range(5)),
        share("two-devices", "0.3", devices=2, gated=gated),
        *(share(f"memory-{n}", memory=15333, gated=gated) for n in range(3)),
        *(share(f"gang-{n}", "0.6", group="gang", gated=gated) for n in range(4)),
        *(share(f"elastic-{n}", "0.25", group="elastic", gated=gated) for n in range(4)),
        *(share(f"ray-{n}", "0.4", owner=ray, labels={"ray.io/cluster": "ray"}, gated=gated) for n in range(3)),
    ]
    for pod in pods:
        cluster.create(pod)
    cluster.create(a_job("jobs-workers-0", JOB_PODS, "0.35", jobs, gated=gated))
    return pods


@pytest.mark.parametrize(
    ("gated", "admission"), [(True, "audit"), (False, "audit"), (True, "deny")], ids=["gated", "ungated", "deny"]
)
def test_every_kind_of_share_is_bound(
    cluster: Kube, kai_sandbox: Sandbox, tmp_path: Path, gated: bool, admission: str
) -> None:
    prepare(cluster, policies={"admission": admission})
    add_pool(cluster, POOL, A10G_4)
    with controller(kai_sandbox, tmp_path):
        pods = add_all_kinds(cluster, gated=gated)
        await_condition(lambda: len(bound_of(cluster, pods)) == len(pods) + JOB_PODS, 240, "all are bound")
        await_condition(lambda: not triggers(cluster), 120, "no trigger pod is left")
        # A node of a trigger pod whose shares went elsewhere would be Ready by now, or Karpenter still makes it.
        await_condition(lambda: Placed.of(cluster).all_made, 120, "no node is being made")
    placed = Placed.of(cluster)
    assert placed.empty == frozenset()
    assert gpus_of(kai_sandbox) == placed.groups


def test_pods_that_must_be_apart_or_together_are_bound(cluster: Kube, kai_sandbox: Sandbox, tmp_path: Path) -> None:
    add_pool(cluster, POOL, A10G_4)
    pods = [
        *(share(f"apart-{n}", "0.4", labels={"app": "x"}, beside=apart("x"), gated=True) for n in range(3)),
        *(share(f"near-{n}", "0.9", labels={"app": "y"}, beside=near("y"), gated=True) for n in range(2)),
        *(share(f"any-{n}", "0.5", gated=True) for n in range(2)),
    ]
    with controller(kai_sandbox, tmp_path):
        for pod in pods:
            cluster.create(pod)
        await_condition(lambda: len(bound_of(cluster, pods)) == len(pods), 240, "all are bound")
        await_condition(lambda: not triggers(cluster), 120, "no trigger pod is left")
    placed = Placed.of(cluster)
    assert len(placed.nodes) == 3, "pods without rules fill the nodes of those that must be apart"
    assert placed.empty == frozenset()


def test_a_limit_admits_what_kai_binds(cluster: Kube, kai_sandbox: Sandbox, tmp_path: Path) -> None:
    """At KAI's rounding: 2 x 0.67 and 0.55 + 0.56 are beyond 2 and 1.1. Five of 0.8 are exactly 4, which KAI admits: it
    refuses a pod if `limit < allocated + requested` (`isOverLimit` of its capacity policy), one pod after the other."""
    limits = {"memory": 2, "floats": 1.1, "eights": 4}
    add_pool(cluster, POOL, A10G_4)
    for name, limit in limits.items():
        cluster.create(a_queue(name, limit))
    pods = [
        *(share(f"memory-{n}", memory=15333, gated=True, queue="memory") for n in range(3)),
        *(share(f"floats-{n}", "0.55", gated=True, queue="floats") for n in range(2)),
        *(share(f"eights-{n}", "0.8", gated=True, queue="eights") for n in range(8)),
    ]
    with controller(kai_sandbox, tmp_path):
        for pod in pods:
            cluster.create(pod)
        await_condition(lambda: len(bound_of(cluster, pods)) >= 2 + 1 + 5, 240, "those within the limits are bound")
        await_condition(lambda: not triggers(cluster), 120, "no trigger pod is left")
    placed = Placed.of(cluster)
    by_queue = {name: sum(pod.startswith(f"{name}-") for pod in placed.bound) for name in limits}
    assert by_queue == {"memory": 2, "floats": 1, "eights": 5}
    assert placed.empty == frozenset()
    assert_unschedulable(cluster, placed.pods.keys() - placed.bound)
