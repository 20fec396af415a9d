"""A namespace buys no more GPUs than it may have, whichever way it asks, by a real apiserver and Karpenter."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.model.api import CAPACITY_GATE
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.demand.environment import (
    API,
    EIGHT_GPUS,
    ENVIRONMENT,
    NAMESPACE,
    TOLERATION,
    add_pool,
    add_shares,
    claims_of,
    declare_demand,
    demands,
    gated,
    nodes_of,
    remove_added,
    remove_shares,
    triggers,
)

pytestmark = pytest.mark.e2e

POOL = "bounded"
SHARES = [f"steal-{number}" for number in range(4)]
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpus", "namespace": NAMESPACE},
    "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
}

SLICE = "nvidia.com/mig-1g.5gb"
Way = tuple[str, dict[str, str], dict[str, str]]
WAYS: dict[str, Way] = {
    "slice": ("kai-scheduler", {}, {SLICE: "1"}),
    "tensor-fusion": ("tensor-fusion-scheduler", {"tensor-fusion.ai/vram-request": "2Gi"}, {}),
    "whole": ("kai-scheduler", {}, {"nvidia.com/gpu": "1"}),
}
"""Other ways to ask for a GPU than shares of KAI: scheduler, annotations, and limits of the container."""
WAYS_POOL, FLOOD_POOL = "ways", "flood"
"""Not that of the test before, whose node may still be drained."""
FLOOD, CLASSES = 60, 5


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    remove_shares(cluster, [*SHARES, *WAYS, *(f"odd-{number}" for number in range(FLOOD))])
    cluster.delete("v1", "ResourceQuota", "gpus", NAMESPACE)
    cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": None}})
    declare_demand(cluster, "trigger-pod", sharedDevices=None, classesPerNamespace=None)
    remove_added(cluster, "GPUDemand")


def told(cluster: Kube, said: str) -> list[Manifest]:
    """Events on the pods that have the text."""
    found = (each for each in cluster.list("v1", "Event", NAMESPACE) if each["reason"] == "CapacityNotRequested")
    return [each for each in found if said in each["message"] and each["involvedObject"].get("name") in SHARES]


def test_shares_buy_what_access_and_quotas_leave(cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path) -> None:
    """The quota and the Environment come by different watches: at each moment, one of both allows nothing."""
    declare_demand(cluster, "trigger-pod")
    add_pool(cluster, POOL, EIGHT_GPUS, tier=POOL)
    cluster.apply(QUOTA)
    with controller(demand_sandbox, tmp_path):
        add_shares(cluster, SHARES, fraction="0.9", tier=POOL)
        await_condition(lambda: told(cluster, "ResourceQuota gpus"), 120, "the pods are told")
        assert not triggers(cluster)
        assert not claims_of(cluster, POOL)
        cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": [{"namespaces": ["*"], "gpus": 0}]}})
        await_condition(
            lambda: "access.gpus of the Environment" in str(demands(cluster)), 120, "the Environment bounds them, too"
        )
        assert not triggers(cluster)
        assert not claims_of(cluster, POOL)
        assert len(gated(cluster)) == len(SHARES)
        cluster.apply({**QUOTA, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}})
        cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": None}})
        await_condition(lambda: nodes_of(cluster, POOL), 120, "what the quota leaves is provided")
        await_condition(lambda: len(gated(cluster)) == 2, 120, "two of four pods with 0.9 GPUs may run")
        assert len(claims_of(cluster, POOL)) == 1

        def left_out() -> list[int]:
            return [each.get("refusedPods", 0) for each in demands(cluster) if each["phase"] != "Completed"]

        await_condition(lambda: left_out() == [2], 120, "the demand of those who were left out has not ended")


def ask(cluster: Kube, name: str, way: Way, **more: Any) -> None:
    """Creates a pod with the capacity gate."""
    scheduler, annotations, limits = way
    resources = {"requests": {"cpu": "1", "memory": "1Gi", **limits}, "limits": limits}
    spec = {
        "schedulerName": scheduler,
        "schedulingGates": [{"name": CAPACITY_GATE}],
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": resources}],
        **more,
    }
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def refused(cluster: Kube, said: str) -> int:
    """Pods of which a GPUDemand says this."""
    return sum(each.get("refusedPods", 0) for each in demands(cluster) if said in str(each.get("reasons")))


def test_no_other_way_to_ask_buys_gpus_that_access_does_not_allow(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    shared = [{"nodePool": "sliced", "resource": SLICE, "perGpu": 7}]
    declare_demand(cluster, "trigger-pod", sharedDevices=shared)
    for pool in (WAYS_POOL, "sliced"):
        add_pool(cluster, pool, EIGHT_GPUS)
    cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": [{"namespaces": ["*"], "gpus": 0}]}})
    for name, way in WAYS.items():
        ask(cluster, name, way, nodeSelector={"karpenter.sh/nodepool": "sliced" if name == "slice" else WAYS_POOL})
    with controller(demand_sandbox, tmp_path):
        await_condition(lambda: refused(cluster, "access.gpus") == len(WAYS), 120, "all of them are refused")
        assert not triggers(cluster)
        assert not claims_of(cluster, WAYS_POOL) | claims_of(cluster, "sliced")
        assert sorted(gated(cluster)) == sorted(WAYS), "no autoscaler sees them"
        cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": None}})
        await_condition(lambda: "whole" not in gated(cluster), 120, "a whole GPU is the autoscaler's to provide")
        await_condition(lambda: nodes_of(cluster, WAYS_POOL), 120, "what it may have is provided")


def test_a_flood_of_classes_leaves_few_objects(cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path) -> None:
    declare_demand(cluster, "trigger-pod", classesPerNamespace=CLASSES)
    add_pool(cluster, FLOOD_POOL, EIGHT_GPUS, tier=FLOOD_POOL)
    share: Way = ("kai-scheduler", {"gpu-fraction": "0.5"}, {})
    for number in range(FLOOD):
        own = [TOLERATION, {"key": f"key-{number}", "operator": "Exists"}]
        ask(cluster, f"odd-{number}", share, tolerations=own, nodeSelector={"tier": "none"})
    with controller(demand_sandbox, tmp_path):
        await_condition(lambda: refused(cluster, "classesPerNamespace") == FLOOD - CLASSES, 120, "the rest is left out")
        # Reports are written one after the other.
        await_condition(lambda: len(demands(cluster)) == CLASSES + 1, 120, "few are reported")
        assert not claims_of(cluster, FLOOD_POOL)
        named = {each["involvedObject"].get("name", "") for each in cluster.list("v1", "Event", NAMESPACE)}
        assert len([each for each in named if each.startswith("odd-")]) <= CLASSES + 10, (
            "a flood of pods is none of events"
        )
