"""A gang that requires a level of a Topology: KAI binds it in the one domain where it was promised its places."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.nodes import make_nodes, parse_node_list
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import gated
from tests.e2e.kai.workloads import CASE, Placed, assert_unschedulable, pod_group, share
from tests.placement.rules import HOST, ZONE

pytestmark = pytest.mark.e2e

NAME = "racks"
TOPOLOGY = ("kai.scheduler/v1alpha1", "Topology")
ZONES = {"racks-a": "a", "racks-b1": "b", "racks-b2": "b"}
"""Nodes with one A10G each, and their zones."""


@pytest.fixture
def topology(cluster: Kube) -> Iterator[str]:
    spec = {"levels": [{"nodeLabel": ZONE}, {"nodeLabel": HOST}]}
    cluster.create({"apiVersion": TOPOLOGY[0], "kind": TOPOLOGY[1], "metadata": {"name": NAME}, "spec": spec})
    yield NAME
    cluster.delete(*TOPOLOGY, NAME)


def add_gang(cluster: Kube, name: str, topology: str, pods: int) -> list[str]:
    group = pod_group(name, pods)
    group["spec"]["topologyConstraint"] = {"topology": topology, "requiredTopologyLevel": ZONE}
    cluster.create(group)
    names = [f"{name}-{number}" for number in range(pods)]
    for each in names:
        cluster.create(share(each, "0.8", group=name, gated=True, selector={CASE: NAME}))
    return names


def test_a_gang_is_bound_in_the_zone_where_it_was_promised_places(
    cluster: Kube, kai_sandbox: Sandbox, topology: str, tmp_path: Path
) -> None:
    lines = ["sn,cpu_milli,memory_mib,gpu,model", *(f"{name},16000,65536,1,A10G" for name in ZONES)]
    make_nodes(kai_sandbox.kubeconfig, list(parse_node_list(lines, "zones")))
    for node, zone in ZONES.items():
        cluster.patch("v1", "Node", node, {"metadata": {"labels": {CASE: NAME, ZONE: zone}}})
    fits, too_large = add_gang(cluster, "fits", topology, 2), add_gang(cluster, "large", topology, 3)
    with controller(kai_sandbox, tmp_path):
        await_condition(lambda: set(fits) <= Placed.of(cluster).bound, 120, "the gang that fits one zone is bound")
    assert {ZONES[Placed.of(cluster).pods[name]] for name in fits} == {"b"}
    assert set(gated(cluster)) == set(too_large), "no zone has three GPUs"
    assert_unschedulable(cluster, too_large)
