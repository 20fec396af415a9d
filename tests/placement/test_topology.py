"""A gang whose PodGroup requires a level of a topology gets all of its nodes in one domain of it."""

from typing import Any

import pytest

from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup, Topology
from tests.builders import a_node_pool, a_waiting_pod
from tests.demand.plans import on_nodes, planned, refused
from tests.placement.rules import HOST, ZONE, zones
from tests.placement.test_pods_among_pods import POOL, a_host, new_zones


def a_group(level: str | None, least: int = 2, **more: Any) -> PodGroup:
    constraint = {"topology": "t", "requiredTopologyLevel": level} if level else {"preferredTopologyLevel": ZONE}
    spec = {"minMember": least, "topologyConstraint": constraint, **more}
    return PodGroup.read({"metadata": {"name": "pg", "namespace": "team"}, "spec": spec})


def members(count: int, share: str = "0.8", part: str = "", **more: Any) -> list[Pod]:
    labels = {"kai.scheduler/subgroup-name": part} if part else {}
    return [
        a_waiting_pod(f"{part}m{n}", gpu_fraction=share, pod_group_name="pg", more_labels=labels, **more)
        for n in range(count)
    ]


def a_topology(*levels: str, name: str = "t", **aliases: str) -> Topology:
    """`aliases` are by the last part of a level's label."""
    listed = [{"nodeLabel": each, "alias": aliases.get(each.rpartition("/")[2], "")} for each in levels]
    return Topology.read({"metadata": {"name": name}, "spec": {"levels": listed}})


L4 = a_node_pool("l4", ["g6.xlarge"], requirements=[zones("a", "b")])


def test_one_zone_of_existing_and_new_nodes() -> None:
    hosts = [a_host("n0", "a"), a_host("n1", "b")]
    plan = planned(L4, *hosts, a_group(ZONE), *members(2))
    ((_, name),) = on_nodes(plan).items()
    assert new_zones(plan) == [{"n0": "a", "n1": "b"}[name]]
    assert not planned(L4, *hosts, a_group(None), *members(2)).nodes, "a preferred level asks for no node"


def test_the_zone_with_room_for_all_comes_first() -> None:
    hosts = [a_host("n0", "a"), a_host("n1", "b"), a_host("n2", "b")]
    assert set(on_nodes(planned(L4, *hosts, a_group(ZONE), *members(2))).values()) == {"n1", "n2"}


def test_running_pods_of_the_gang_decide() -> None:
    there = a_waiting_pod("there", node="n0", gpu_fraction="0.8", pod_group_name="pg", phase="Running")
    plan = planned(L4, a_host("n0", "b"), a_host("n1", "a"), there, a_group(ZONE), *members(1))
    assert new_zones(plan) == ["b"]


def test_one_node_at_host_level() -> None:
    assert [len(node.pods) for node in planned(POOL, a_group(HOST, 3), *members(3)).nodes] == [3]
    plan = planned(L4, a_group(HOST, 2), *members(2))
    assert not plan.nodes
    assert set(map(bool, refused(plan).values())) == {True}
    assert all("topologyConstraint" in why for why in refused(plan).values())


@pytest.mark.parametrize(("pool", "nodes"), [(L4, 0), (a_node_pool("l4", ["g6.xlarge"], more_labels={"rack": "r"}), 2)])
def test_a_level_that_new_nodes_do_not_have_is_refused(pool: Any, nodes: int) -> None:
    assert len(planned(pool, a_group("rack"), *members(2)).nodes) == nodes


def test_each_subgroup_has_its_own_domain() -> None:
    parts = [
        {"name": name, "minMember": 2, "topologyConstraint": {"topology": "t", "requiredTopologyLevel": ZONE}}
        for name in ("x", "y")
    ]
    hosts = [a_host("n0", "a"), a_host("n1", "b"), a_host("n2", "a"), a_host("n3", "b")]
    pods = [*members(2, part="x"), *members(2, part="y")]
    at = on_nodes(planned(*hosts, L4, a_group(None, 4, subGroups=parts), *pods))
    zone = {"n0": "a", "n1": "b", "n2": "a", "n3": "b"}
    assert len(at) == 4
    for part in "xy":
        assert len({zone[name] for uid, name in at.items() if uid.startswith(f"uid-{part}")}) == 1


def test_a_subgroup_keeps_those_that_are_parts_of_it_in_one_domain() -> None:
    constraint = {"topology": "t", "requiredTopologyLevel": ZONE}
    parts = [
        {"name": "outer", "topologyConstraint": constraint},
        *({"name": name, "minMember": 1, "parent": "outer"} for name in ("x", "y")),
        {"name": "alone", "minMember": 1},
    ]
    hosts = [a_host("n0", "a"), a_host("n1", "b"), a_host("n2", "b")]
    pods = [*members(1, part="x"), *members(1, part="y"), *members(1, part="alone")]
    at = on_nodes(planned(*hosts, a_group(None, 3, subGroups=parts), *pods))
    assert at["uid-alonem0"] == "n0"
    assert {at["uid-xm0"], at["uid-ym0"]} == {"n1", "n2"}


def test_subgroups_that_are_parts_of_each_other_are_no_endless_loop() -> None:
    parts = [{"name": name, "parent": other} for name, other in (("x", "y"), ("y", "x"))]
    planned(POOL, a_group(ZONE, 1, subGroups=parts), *members(1, part="x"))


@pytest.mark.parametrize(
    ("level", "topology", "placed"),
    [
        pytest.param(ZONE, a_topology(ZONE, HOST), 2, id="by its label"),
        pytest.param("z", a_topology(ZONE, HOST, zone="z"), 2, id="by its alias"),
        pytest.param("rack", a_topology(ZONE, HOST), 0, id="a level that it lacks"),
        pytest.param(ZONE, a_topology(ZONE, name="other"), 0, id="a Topology that does not exist"),
    ],
)
def test_levels_are_those_of_the_topology(level: str, topology: Topology, placed: int) -> None:
    hosts = [a_host("n0", "a", more={"rack": "r"}), a_host("n1", "b"), a_host("n2", "b", more={"rack": "r"})]
    plan = planned(*hosts, topology, a_group(level), *members(2))
    assert set(on_nodes(plan).values()) == ({"n1", "n2"} if placed else set())
    assert not plan.nodes
    for why in refused(plan).values():
        assert f"the level {level}" in why
        assert "Topology" in why


def test_a_level_without_a_topology_requires_nothing() -> None:
    """As in KAI."""
    group = PodGroup.read(
        {
            "metadata": {"name": "pg", "namespace": "team"},
            "spec": {"minMember": 2, "topologyConstraint": {"requiredTopologyLevel": ZONE}},
        }
    )
    plan = planned(a_host("n0", "a"), a_host("n1", "b"), a_topology(ZONE), group, *members(2))
    assert set(on_nodes(plan).values()) == {"n0", "n1"}


def test_equal_values_in_different_zones_are_different_domains() -> None:
    """Racks are numbered in each zone: those of a have room for one pod each, that of b for both."""
    hosts = [
        a_host("n0", "a", more={"rack": "1"}),
        a_host("n1", "b", more={"rack": "1"}),
        a_host("n2", "b", more={"rack": "1"}),
        a_host("n3", "a", more={"rack": "2"}),
    ]
    plan = planned(*hosts, a_topology(ZONE, "rack"), a_group("rack"), *members(2))
    assert set(on_nodes(plan).values()) == {"n1", "n2"}
    apart = planned(hosts[0], hosts[1], a_topology(ZONE, "rack"), a_group("rack"), *members(2))
    assert len(on_nodes(apart)) == 1, "not in both"


def test_a_node_without_a_wider_level_is_in_no_domain() -> None:
    hosts = [a_host("n0", more={"rack": "1"}), a_host("n1", more={"rack": "1", "block": "b"})]
    plan = planned(*hosts, a_topology("block", "rack"), a_group("rack", 1), *members(1))
    assert set(on_nodes(plan).values()) == {"n1"}


def test_wider_levels_that_say_nothing_more_cost_no_promise() -> None:
    """Whether a new node of the zone has the label of the block is not known; all nodes of a zone are in one."""
    hosts = [a_host("n0", "a", more={"block": "x"}), a_host("n1", "b", more={"block": "x"})]
    plan = planned(L4, *hosts, a_topology("block", ZONE), a_group(ZONE), *members(2))
    assert len(plan.nodes) == 1
