"""What pods have by claims counts: in what a namespace may have, and in queues as KAI counts claims."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.cluster.claims import ClaimObjects, Joining
from plimsoll.cluster.queues import queue_usage
from plimsoll.model import Snapshot
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.classes import RefusalReason
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from plimsoll.plan.limits import NamespaceBudget
from plimsoll.plan.view import ClusterView
from tests.claims.objects import (
    MIG,
    Manifest,
    a_claim,
    a_class,
    a_mig_class,
    a_node,
    a_pod,
    a_slice,
    a_slice_of,
    a_template,
    asked,
    divided,
    gpus,
    snapshot_of,
)
from tests.claims.test_demand import FOUR, POOL, an_environment

NODE = (a_node("n1", instance_type=FOUR), a_slice("n1", gpus(4)))


def limited(most: int) -> Manifest:
    environment = an_environment()
    environment["spec"]["access"] = [{"namespaces": ["team"], "gpus": most}, {"namespaces": ["free"]}]
    return environment


def running(number: int) -> list[Manifest]:
    """Pods of namespace team that have a device each."""
    found = []
    for each in range(number):
        pod = a_pod(f"running-{each}", "one", node="n1")
        pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"claim-{each}"}]
        claim = a_claim(f"claim-{each}", asked(1), devices=[("n1", f"gpu-{each}")], pods=[f"running-{each}"])
        found += [pod, claim]
    return found


def planned(folder: Path, *manifests: Manifest) -> DemandPlan:
    snapshot = snapshot_of(folder, a_class(), *POOL, a_template("one", asked(1)), *manifests)
    return DemandPlanner().plan(snapshot, namespaces=NamespaceBudget(ClusterView(snapshot)))


def reasons(found: DemandPlan) -> set[RefusalReason]:
    return {why.reason for demand in found.demands for why in demand.refused.values()}


@pytest.mark.parametrize(("most", "refused"), [(3, False), (2, True)])
def test_a_namespace_may_have_no_more_by_claims_than_access_says(tmp_path: Path, most: int, refused: bool) -> None:
    """Two pods run; they count although their claims are met."""
    found = planned(tmp_path, limited(most), *NODE, *running(2), a_pod("pending", "one"))
    assert bool(reasons(found)) is refused, reasons(found)
    assert bool(found.nodes or any(demand.on_nodes for demand in found.demands)) is not refused
    free = a_pod("elsewhere", "one", namespace="free")
    template = a_template("one", asked(1), namespace="free")
    others = planned(tmp_path, limited(most), *NODE, *running(2), free, template)
    assert not reasons(others)


def test_a_resource_quota_bounds_claims(tmp_path: Path) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "team"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "2"}},
    }
    assert reasons(planned(tmp_path, an_environment(), quota, *NODE, *running(2), a_pod("pending", "one")))
    assert not reasons(planned(tmp_path, an_environment(), quota, *NODE, *running(1), a_pod("pending", "one")))


def test_a_claim_of_several_pods_counts_once(tmp_path: Path) -> None:
    users = [a_pod(name, claim="shared", node="n1") for name in ("a", "b")]
    shared = a_claim("shared", asked(2), devices=[("n1", "gpu-0"), ("n1", "gpu-1")], pods=["a", "b"])
    objects = (*NODE, *users, shared, a_pod("pending", "one"))
    assert not reasons(planned(tmp_path, limited(3), *objects))
    assert reasons(planned(tmp_path, limited(2), *objects))


def test_a_claim_whose_devices_are_not_seen_yet_counts_as_it_asks(tmp_path: Path) -> None:
    """Pods and claims are watched apart: a pod may be seen on its node first."""
    objects = (a_template("one", asked(1)), a_template("two", asked(2)))
    pod = a_pod("running", "two", node="n1")
    before = snapshot_of(tmp_path, a_class(), *objects, pod)
    joining = Joining()
    assert [each.claimed.held for each in joined(joining, before) if each.claimed] == [2]
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "c"}]
    claim = a_claim("c", asked(2), devices=[("n1", "gpu-0"), ("n1", "gpu-1")], pods=["running"])
    after = snapshot_of(tmp_path, a_class(), *objects, pod, claim)
    (found,) = joined(joining, after)
    assert found.claimed is not None
    assert (found.claimed.held, found.claimed.settled) == (2, True)


def joined(joining: Joining, snapshot: Snapshot) -> Any:
    objects = ClaimObjects((), snapshot.device_classes, snapshot.resource_claims, snapshot.resource_claim_templates)
    return joining.pods(snapshot.pods, objects)


@pytest.mark.parametrize(
    ("request_", "counted"),
    [
        (asked(2), 2),
        ({"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}, 1),
        (asked(2, of="mig.nvidia.com"), 0),
        ({"firstAvailable": [{"name": "a", **asked(2)}, {"name": "b", **asked(1)}]}, 0),
        ({"firstAvailable": [{"name": "a", **asked(2)}]}, 0),
        (asked(2, adminAccess=True), 2),
    ],
    ids=["count", "all", "class without gpu", "alternatives", "one alternative", "adminAccess"],
)
@pytest.mark.parametrize("node", ["n1", ""])
def test_queues_count_claims_as_kai_does(tmp_path: Path, request_: Manifest, counted: int, node: str) -> None:
    queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"}, "spec": {}}
    pod = a_pod("pod", "one", node=node, schedulerName="kai-scheduler")
    pod["metadata"]["labels"] = {"kai.scheduler/queue": "q"}
    template = a_template("one", request_)
    usage = queue_usage(snapshot_of(tmp_path, a_class(), queue, *NODE, template, pod))
    amounts = usage.allocated if node else usage.waiting
    assert amounts["q"].gpu == counted * GPU_MILLI


@pytest.mark.parametrize(
    ("request_", "limit", "number"),
    [
        (asked(1), 3, 3),
        (asked(2), 3, 1),
        (asked(2), 1, 0),
        (a_slice_of("1g.10gb"), 0, 4),
        ({"firstAvailable": [{"name": "a", **asked(1)}]}, 0, 4),
    ],
    ids=["each", "two of three", "more than the limit", "slices count nothing", "an alternative counts nothing"],
)
def test_a_limit_of_a_queue_bounds_claims_as_kai_counts_them(
    tmp_path: Path, request_: Manifest, limit: int, number: int
) -> None:
    """Four pods of a queue wait, and its parent has the limit; another queue may have any."""
    limits = {"root": limit, "q": -1, "free": -1}
    queues: list[Manifest] = [
        {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"resources": {each: {"limit": of if each == "gpu" else -1} for each in ("gpu", "cpu", "memory")}},
        }
        for name, of in limits.items()
    ]
    queues[1]["spec"]["parentQueue"] = "root"
    waiting = []
    for each in range(5):
        pod = a_pod(f"pod-{each}", "asked", schedulerName="kai-scheduler")
        pod["metadata"]["labels"] = {"kai.scheduler/queue": "free" if each == 4 else "q"}
        waiting.append(pod)
    nodes = [a_node("n1"), *divided("n1", 1, "h100")] if request_.get("deviceClassName") == MIG else [
        a_node("n1", instance_type=FOUR), a_slice("n1", gpus(8))
    ]  # fmt: skip
    template = a_template("asked", request_)
    found = planned(tmp_path, an_environment(), a_mig_class(), *queues, *nodes, template, *waiting)
    placed = [uid for demand in found.demands for uids in demand.on_nodes.values() for uid in uids]
    assert "uid-pod-4" in placed
    assert len(placed) - 1 == number
    assert reasons(found) == ({RefusalReason.QUEUE} if number < 4 else set())
