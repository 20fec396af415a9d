"""Pods that must be apart, together or spread get the nodes that the scheduler needs for them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.cluster import Node, PlainPod, Pod
from plimsoll.model.meta import PodSelector
from plimsoll.plan.demand import DemandPlan, DemandPlanner, PlannedNode
from tests.builders import a_gpu_node, a_node_pool, a_plain_manifest, a_snapshot, a_waiting_pod
from tests.demand.plans import on_nodes, planned, refused, requests_of, types
from tests.placement.rules import HOST, ZONE, apart, near, spread, zones

L4 = "NVIDIA L4"
POOL = a_node_pool("gpu", ["g6.12xlarge"], requirements=[zones("a", "b", "c")])
"""Nodes with 4 L4 in three zones."""


def pods(count: int, rules: dict[str, Any], *, app: str = "a", share: str = "0.4", **more: Any) -> list[Pod]:
    return [
        a_waiting_pod(f"{app}{number}", gpu_fraction=share, more_labels={"app": app}, rules=rules, **more)
        for number in range(count)
    ]


def running(name: str, node: str, app: str, rules: dict[str, Any] | None = None, share: str = "0.1") -> Pod:
    return a_waiting_pod(name, node=node, gpu_fraction=share, more_labels={"app": app}, rules=rules, phase="Running")


def a_host(name: str, zone: str = "a", gpus: int = 1, more: dict[str, str] | None = None) -> Node:
    labels = {HOST: name, ZONE: zone} | (more or {})
    return a_gpu_node(name, L4, gpus=gpus, instance_type="g6.xlarge", more_labels=labels)


def zone_of(node: PlannedNode) -> str:
    (value,) = {value for term in node.requires for each in term if each.key == ZONE for value in each.values}
    return value


def new_zones(plan: DemandPlan) -> list[str]:
    return sorted(map(zone_of, plan.nodes))


@pytest.mark.parametrize("rules", [apart("a"), spread("a")], ids=["apart", "spread"])
def test_pods_that_must_be_on_different_nodes_get_a_node_each(rules: dict[str, Any]) -> None:
    plan = planned(POOL, *pods(3, rules))
    assert [len(node.pods) for node in plan.nodes] == [1, 1, 1]
    assert plan.least_gpus == 4, "the bound ignores rules"
    again = planned(POOL, *pods(3, rules), requested=requests_of(plan.nodes))
    assert not again.nodes
    assert len(again.needed) == 3


@pytest.mark.parametrize("rules", [apart("a", ZONE), spread("a", ZONE)], ids=["apart", "spread"])
def test_pods_that_must_be_in_different_zones_get_a_node_in_each(rules: dict[str, Any]) -> None:
    plan = planned(POOL, *pods(3, rules))
    assert new_zones(plan) == ["a", "b", "c"]
    assert not planned(POOL, *pods(3, rules), requested=requests_of(plan.nodes)).nodes


@pytest.mark.parametrize("rules", [apart("a", ZONE), spread("a", ZONE)], ids=["apart", "spread"])
def test_a_pod_that_selects_a_zone_keeps_no_other_there(rules: dict[str, Any]) -> None:
    pinned = a_waiting_pod("pinned", gpu_fraction="0.4", selector={ZONE: "a"})
    plan = planned(POOL, *pods(3, rules), pinned)
    assert not refused(plan)
    assert new_zones(plan) == ["a", "b", "c"]
    (with_pinned,) = [node for node in plan.nodes if "uid-pinned" in node.pods]
    assert zone_of(with_pinned) == "a"
    assert len(with_pinned.pods) == 2


def test_a_pod_without_rules_goes_where_others_keep_it_not_away() -> None:
    host, guard = a_host("n0", "a"), running("guard", "n0", "guard", apart("a", ZONE))
    pinned = a_waiting_pod("pinned", gpu_fraction="0.4", selector={ZONE: "a"})
    plan = planned(POOL, host, guard, *pods(1, {}), pinned)
    assert not refused(plan)
    assert on_nodes(plan) == {"uid-pinned": "n0"}
    assert zone_of(plan.nodes[0]) in "bc"


def test_what_is_in_no_further_zone_is_refused_with_the_rule() -> None:
    plan = planned(POOL, *pods(4, apart("a", ZONE)))
    assert new_zones(plan) == ["a", "b", "c"]
    (why,) = refused(plan).values()
    assert "podAntiAffinity" in why
    assert ZONE in why


def test_a_zone_is_not_guessed() -> None:
    plan = planned(a_node_pool("gpu", ["g6.12xlarge"]), *pods(2, spread("a", ZONE)))
    assert not plan.nodes
    assert len(refused(plan)) == 2


def test_a_spread_over_zones_counts_running_pods() -> None:
    nodes = [a_host("n-a", "a"), a_host("n-b", "b"), a_host("n-c", "c")]
    there = [running("r0", "n-a", "a"), running("r1", "n-b", "a"), running("full", "n-c", "other", share="0.9")]
    plan = planned(POOL, *nodes, *there, *pods(1, spread("a", ZONE)))
    assert new_zones(plan) == ["c"]


def test_pods_without_rules_fill_the_nodes_of_those_with_rules() -> None:
    others = [a_waiting_pod(f"other{number}", gpu_fraction="0.6") for number in range(9)]
    plan = planned(POOL, *pods(3, apart("a")), *others)
    assert types(plan) == ["g6.12xlarge"] * 3
    assert sum(len(node.pods) for node in plan.nodes) == 12


def test_free_nodes_come_first_and_full_ones_keep_pods_of_others_away() -> None:
    nodes = [a_host("n0"), a_host("n1"), a_host("n2")]
    guard = running("guard", "n0", "guard", apart("a"))
    plan = planned(POOL, *nodes, guard, running("same", "n1", "a"), *pods(2, apart("a")))
    assert set(on_nodes(plan).values()) == {"n2"}
    assert len(plan.nodes) == 1


def test_a_running_pod_keeps_a_pod_without_rules_away() -> None:
    guard, host = running("guard", "n0", "guard", apart("a")), a_host("n0")
    assert len(planned(POOL, host, guard, *pods(1, {})).nodes) == 1
    elsewhere = a_node_pool("other", ["g6.xlarge"], more_labels={"team": "x"})
    plan = planned(elsewhere, host, guard, *pods(1, {}, selector={HOST: "n0"}))
    assert "anti-affinity of other pods" in refused(plan)["uid-a0"]


VALUES = st.sampled_from(["x", "y"])
CONDITION = st.builds(
    lambda key, operator, values: {
        "key": key,
        "operator": operator,
        **({"values": values} if "In" in operator else {}),
    },
    VALUES,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(VALUES, min_size=1, max_size=2),
)
OTHERS = st.lists(st.tuples(st.dictionaries(VALUES, VALUES), st.sampled_from(["team", "else"])), min_size=1, max_size=4)


@given(
    st.lists(CONDITION, max_size=2), st.sampled_from([{}, {"namespaces": ["else"]}, {"namespaceSelector": {}}]), OTHERS
)
def test_a_running_pod_keeps_those_away_that_it_selects(
    conditions: list[Any], where: dict[str, Any], others: list[tuple[dict[str, str], str]]
) -> None:
    guard = running("guard", "n0", "g", apart("a", **where, labelSelector={"matchExpressions": conditions}))
    [rule] = guard.rules
    selector = rule.pods.of("team", guard.labels)
    shares = [
        a_waiting_pod(f"pod-{at}", gpu_fraction="0.1", namespace=namespace, more_labels=labels)
        for at, (labels, namespace) in enumerate(others)
    ]
    beside = {each.uid for each in shares if not selector.matches(each.namespace, each.labels)}
    assert on_nodes(planned(guard, a_host("n0"), *shares)).keys() == beside


@pytest.mark.parametrize("chosen", [{}, {"matchLabels": {"team": "x"}}], ids=["all", "by-labels"])
def test_a_running_pod_keeps_pods_of_other_namespaces_away(chosen: dict[str, Any]) -> None:
    """Which namespaces have the labels is not read: none may be left out."""
    guard = a_plain("guard", "n0", apart("a", namespaceSelector=chosen))
    (share,) = pods(1, {}, namespace="elsewhere")
    assert types(beside_plain(guard, POOL, a_host("n0"), share)) == ["g6.12xlarge"]
    alone = a_plain("guard", "n0", apart("a"))
    assert on_nodes(beside_plain(alone, POOL, a_host("n0"), share))


def a_plain(name: str, node: str, rules: dict[str, Any] | None = None) -> PlainPod:
    """A pod without GPU that runs, and whose application is its name."""
    manifest = a_plain_manifest(name, node, namespace="team")
    manifest["metadata"]["labels"] = {"app": name}
    manifest["spec"] |= {"affinity": rules or {}}
    plain = PlainPod.read(manifest)
    assert plain is not None
    return plain


def beside_plain(plain: PlainPod, *objects: Any) -> DemandPlan:
    return DemandPlanner().plan(a_snapshot(plain, *objects))


@pytest.mark.parametrize(
    ("rules", "of_plain", "node"),
    [
        (apart("web"), None, "n1"),
        (apart("other"), None, "n0"),
        (apart("web", ZONE), None, None),
        ({}, apart("a"), "n1"),
        (near("web"), None, "n0"),
        (near("a", ZONE), None, "n0"),
        ({}, None, "n0"),
    ],
    ids=["apart", "apart-from-others", "other-zone", "kept-away", "near", "first-of-its-kind", "none"],
)
def test_pods_without_gpus_count_where_they_are_known(
    rules: dict[str, Any], of_plain: dict[str, Any] | None, node: str | None
) -> None:
    hosts = [a_host("n0"), a_host("n1")]
    (share,) = pods(1, rules)
    plan = beside_plain(a_plain("web", "n0", of_plain), *hosts, share)
    assert on_nodes(plan).get("uid-a0") == node
    assert bool(refused(plan)) == (node is None)


def test_a_share_apart_from_a_pod_without_gpu_on_the_only_node_is_asked_a_node_for() -> None:
    (share,) = pods(1, apart("web"))
    plan = beside_plain(a_plain("web", "n0"), POOL, a_host("n0"), share)
    assert types(plan) == ["g6.12xlarge"]
    assert not on_nodes(plan)


def test_thousands_of_rules_of_a_tenant_are_not_compared_with_each_pod() -> None:
    """Each comparison is counted: one of each rule with each pod would be four million."""
    plain = [a_plain(f"web{number}", "n0", apart(f"web{number}", ZONE)) for number in range(2000)]
    compared = 0

    def matches(selector: PodSelector, namespace: str, labels: Mapping[str, str]) -> bool:
        nonlocal compared
        compared += 1
        return original(selector, namespace, labels)

    original = PodSelector.matches
    shares = pods(200, apart("other"), share="0.01") + pods(1, {}, app="web7")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PodSelector, "matches", matches)
        plan = planned(POOL, a_host("n0"), *plain, *shares)
    assert compared < 10_000
    assert on_nodes(plan)["uid-a0"] == "n0"
    assert "uid-web70" not in on_nodes(plan)


def test_a_spread_counts_pods_without_gpus() -> None:
    (share,) = pods(1, spread("web", ZONE), app="web")
    plan = beside_plain(a_plain("web", "n0"), a_host("n0", "a"), a_host("n1", "b"), share)
    assert on_nodes(plan) == {"uid-web0": "n1"}


def test_affinity_follows_running_and_waiting_pods() -> None:
    nodes = [a_host("n0", gpus=2), a_host("n1", gpus=2)]
    plan = planned(*nodes, running("cache", "n1", "cache"), *pods(2, near("cache"), share="0.7"))
    assert set(on_nodes(plan).values()) == {"n1"}
    first = a_waiting_pod("cache", gpu_fraction="0.5", more_labels={"app": "cache"})
    plan = planned(POOL, first, *pods(3, near("cache"), share="0.9"))
    assert [len(node.pods) for node in plan.nodes] == [4], "one node that has room for all of them"


def test_affinity_to_itself_keeps_all_in_one_zone() -> None:
    plan = planned(POOL, *pods(6, near("a", ZONE), share="0.9"))
    assert len(plan.nodes) == 2
    assert len(set(new_zones(plan))) == 1


def test_affinity_to_pods_that_are_not_there_is_refused() -> None:
    assert "podAffinity" in refused(planned(POOL, *pods(1, near("cache"))))["uid-a0"]


def test_a_label_that_no_new_node_has_cannot_be_promised() -> None:
    assert len(refused(planned(POOL, *pods(2, spread("a", "rack"))))) == 2
    plan = planned(a_node_pool("gpu", ["g6.12xlarge"], more_labels={"rack": "r1"}), *pods(2, near("a", "rack")))
    assert len(plan.nodes) == 1


def test_namespaces_by_labels_are_refused_by_name_and_all_namespaces_are_read() -> None:
    by_labels = apart("a", namespaceSelector={"matchLabels": {"team": "x"}})
    assert "namespaceSelector" in refused(planned(POOL, *pods(1, by_labels)))["uid-a0"]
    elsewhere = a_waiting_pod("b", namespace="others", gpu_fraction="0.4", more_labels={"app": "a"})
    assert len(planned(POOL, elsewhere, *pods(1, apart("a"))).nodes) == 1, "the pod's own namespace only"
    assert len(planned(POOL, elsewhere, *pods(1, apart("a", namespaceSelector={}))).nodes) == 2
    assert len(planned(POOL, elsewhere, *pods(1, apart("a", namespaces=["others"]))).nodes) == 2


def test_match_label_keys_tell_revisions_apart() -> None:
    rules = apart("a", matchLabelKeys=["revision"])
    old, new = (
        a_waiting_pod(name, gpu_fraction="0.4", more_labels={"app": "a", "revision": name}, rules=rules)
        for name in ("old", "new")
    )
    assert len(planned(POOL, old, new).nodes) == 1


@pytest.mark.parametrize(
    ("rules", "nodes"),
    [
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"}]},
            1,
        ),
        (spread("a", skew=2), 2),
        (spread("b"), 1),
        (spread("a", ZONE, minDomains=3), 3),
    ],
)
def test_a_spread_is_as_wide_as_it_must_be(rules: dict[str, Any], nodes: int) -> None:
    assert len(planned(POOL, *pods(3, rules)).nodes) == nodes


def test_nodes_that_a_pod_cannot_use_are_no_domains_unless_its_policy_says_so() -> None:
    nodes = [a_host("n0", gpus=2, more={"pool": "x"}), a_host("n1", more={"pool": "y"})]
    there = [running("r", "n0", "a", share="0.4")]
    for policy, new in (("Honor", 0), ("Ignore", 1)):
        rules = spread("a", nodeAffinityPolicy=policy)
        plan = planned(*nodes, *there, *pods(1, rules, selector={"pool": "x"}))
        assert len(plan.nodes) == new


def test_limits_leave_out_only_those_without_room() -> None:
    limited = a_node_pool("gpu", ["g6.12xlarge"], limits={"nvidia.com/gpu": 8}, requirements=[zones("a")])
    plan = planned(limited, *pods(3, apart("a")))
    assert len(plan.nodes) == 2
    assert Counter(refused(plan)) == Counter({"uid-a2": refused(plan)["uid-a2"]})
    assert "nvidia.com/gpu" in refused(plan)["uid-a2"]


@pytest.mark.parametrize("rules", [apart("a"), near("a"), spread("a")], ids=["apart", "near", "spread"])
def test_a_rule_of_a_pod_that_no_node_could_serve_is_no_error(rules: dict[str, Any]) -> None:
    nowhere = pods(1, rules, selector={"no": "such"})
    plan = planned(POOL, *nowhere, *pods(1, {}, app="b"))
    assert "no=such" in refused(plan)["uid-a0"]
    assert len(plan.nodes) == 1, "others get theirs"


def test_a_rule_of_one_pod_takes_nothing_from_another_of_its_size() -> None:
    """The first cannot be near the second, as both need a whole node, and whoever wrote it may be another tenant."""
    small = a_node_pool("small", ["g6.xlarge"])
    for first in ("a", "z"):
        follower = a_waiting_pod(first, gpu_fraction="0.9", more_labels={"app": first}, rules=near("b"))
        plan = planned(small, follower, *pods(1, {}, app="b", share="0.9"))
        assert list(refused(plan)) == [f"uid-{first}"]
        assert [node.pods for node in plan.nodes] == [("uid-b0",)]


def test_a_pod_that_must_be_near_others_comes_after_them_whatever_its_order() -> None:
    limited = a_node_pool("gpu", ["g6.12xlarge"], limits={"nvidia.com/gpu": 4})
    follower = a_waiting_pod("a", gpu_fraction="0.4", priority=9, more_labels={"app": "a"}, rules=near("b"))
    plan = planned(limited, follower, *pods(5, {}, app="b", share="0.6"))
    assert "uid-a" not in refused(plan)
    assert len(refused(plan)) == 1


def _of_pool(name: str, zone: str, pool: str) -> Node:
    return a_host(name, zone, more={"pool": pool})


def test_a_spread_counts_no_pods_where_its_pods_may_not_be() -> None:
    """Neither by their node selector nor, with `nodeTaintsPolicy: Honor`, for a taint."""
    nodes = [_of_pool("mine-a", "a", "mine"), _of_pool("theirs-a", "a", "theirs"), _of_pool("mine-b", "b", "mine")]
    full = running("full", "mine-b", "other", share="0.9")
    mine: dict[str, Any] = {"selector": {"pool": "mine"}}
    there = running("there", "theirs-a", "a")
    plan = planned(POOL, *nodes, full, there, *pods(1, spread("a", ZONE), **mine))
    assert on_nodes(plan) == {"uid-a0": "mine-a"}
    ignoring = spread("a", ZONE, nodeAffinityPolicy="Ignore")
    assert not on_nodes(planned(*nodes, full, there, *pods(1, ignoring, **mine)))
    tainted = a_gpu_node("theirs-a", L4, gpus=1, more_labels={HOST: "theirs-a", ZONE: "a"}, taints=["kept"])
    honoring = spread("a", ZONE, nodeTaintsPolicy="Honor")
    assert on_nodes(planned(nodes[0], tainted, nodes[2], full, there, *pods(1, honoring))) == {"uid-a0": "mine-a"}
    assert not on_nodes(planned(nodes[0], tainted, nodes[2], full, there, *pods(1, spread("a", ZONE))))


def test_a_node_is_asked_for_where_a_spread_counts_too_few_pods() -> None:
    """Those on nodes of others would make up for them."""
    nodes = [_of_pool("mine-a", "a", "mine"), _of_pool("mine-b", "b", "mine"), _of_pool("theirs-b", "b", "theirs")]
    there = [
        running("r0", "mine-a", "a"),
        running("full", "mine-b", "other", share="0.9"),
        running("r1", "theirs-b", "a"),
    ]
    pool = a_node_pool("gpu", ["g6.xlarge"], requirements=[zones("a", "b")], more_labels={"pool": "mine"})
    plan = planned(pool, *nodes, *there, *pods(1, spread("a", ZONE), selector={"pool": "mine"}))
    assert new_zones(plan) == ["b"]


def test_pods_of_others_on_new_nodes_are_not_counted_either() -> None:
    """Two NodePools of one zone each: the spread is over the one that its pods select."""
    mine = a_node_pool("mine", ["g6.xlarge"], requirements=[zones("a")], more_labels={"pool": "mine"})
    theirs = a_node_pool("theirs", ["g6.xlarge"], requirements=[zones("b")], more_labels={"pool": "theirs"})
    of_theirs = [a_waiting_pod("t", gpu_fraction="0.9", more_labels={"app": "a"}, selector={"pool": "theirs"})]
    plan = planned(mine, theirs, *of_theirs, *pods(3, spread("a", ZONE), share="0.3", selector={"pool": "mine"}))
    assert not refused(plan)
    assert sorted(node.node_pool for node in plan.nodes) == ["mine", "theirs"]


def test_affinity_to_its_own_kind_starts_anew_where_none_is_in_a_domain() -> None:
    """A pod of the kind is on a node without the label."""
    bare = a_gpu_node("bare", L4, gpus=1, more_labels={HOST: "bare"})
    plan = planned(bare, a_host("n", "a"), running("r", "bare", "a"), *pods(1, near("a", ZONE)))
    assert on_nodes(plan) == {"uid-a0": "n"}
