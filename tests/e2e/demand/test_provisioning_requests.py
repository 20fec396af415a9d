"""Demand by ProvisioningRequests: a real apiserver accepts them by Cluster Autoscaler's own CRD."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import (
    EIGHT_GPUS,
    TRIGGERS,
    add_pool,
    add_shares,
    declare_demand,
    remove_added,
    remove_shares,
)

pytestmark = pytest.mark.e2e

REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")


def test_a_request_is_created_and_deleted_with_its_demand(
    kube: Callable[..., Kube], demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    Installation(missing_programs(find_programs(["cluster-autoscaler"]))).run()
    cluster = kube(demand_sandbox)
    for path in sorted((part("cluster-autoscaler").cached / "crds").glob("*.yaml")):
        cluster.apply(yaml.safe_load(path.read_text()))
    declare_demand(cluster, "provisioning-request")
    add_pool(cluster, "requested", EIGHT_GPUS, tier="requested")
    shares = [f"requested-{number}" for number in range(3)]
    with controller(demand_sandbox, tmp_path) as running:
        await_condition(lambda: "the controller is active" in running.text(), 120)
        add_shares(cluster, shares, tier="requested")
        (request,) = await_condition(lambda: cluster.list(*REQUEST, TRIGGERS), 120, "a request")
        assert request["spec"]["provisioningClassName"] == "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
        (pods,) = request["spec"]["podSets"]
        assert pods["count"] == 1
        name = pods["podTemplateRef"]["name"]
        template = await_condition(lambda: cluster.get("v1", "PodTemplate", name, TRIGGERS), 120, "its template")
        (container,) = template["template"]["spec"]["containers"]
        assert container["resources"]["requests"]["nvidia.com/gpu"] == "8"
        remove_shares(cluster, shares)
        await_condition(lambda: not cluster.list(*REQUEST, TRIGGERS), 120, "it goes with its demand")
        await_condition(lambda: not cluster.list("v1", "PodTemplate", TRIGGERS), 120, "and its template")
    remove_added(cluster, "GPUDemand")
