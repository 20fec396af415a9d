"""Pods with different conditions on labels that a NodePool leaves open share a new node if one node can meet them."""

from collections.abc import Iterable, Mapping
from itertools import combinations, product
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.cluster import Node, Pod
from plimsoll.model.meta import Placement
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from tests.builders import a_node_pool, a_snapshot, a_waiting_pod
from tests.calls import calls
from tests.demand.plans import on_new, planned, refused, requests_of

A100: Final = "p4d.24xlarge"
ZONE, CAPACITY, ARCH, HOST = (
    "topology.kubernetes.io/zone",
    "karpenter.sh/capacity-type",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
)
VALUES: Final = {ZONE: ("a", "b", "c"), CAPACITY: ("spot", "on-demand"), ARCH: ("amd64", "arm64")}
"""The values that conditions name. Nodes of the NodePool may have another architecture, which it does not restrict."""
NODES: Final = tuple(
    Node.read({"metadata": {"name": f"node-{value}", "labels": {key: value}}})
    for key, values in VALUES.items()
    for value in values
)
"""Nodes without GPUs: the values of their labels exist."""
POOL: Final = a_node_pool(
    "pool",
    (A100,),
    requirements=[{"key": key, "operator": "In", "values": list(VALUES[key])} for key in (ZONE, CAPACITY)],
)


def tenth(name: str, selector: Mapping[str, str] | None = None, *affinity: dict[str, Any]) -> Pod:
    return a_waiting_pod(name, gpu_fraction="0.1", selector=dict(selector or {}), affinity=affinity)


def condition(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    "unlike",
    [
        pytest.param([({ZONE: "b"},), ({}, condition(ZONE, "Exists"))], id="a zone, and any zone"),
        pytest.param([({ZONE: "b"},), ({}, condition(ZONE, "In", "a", "b"))], id="a zone, and two zones"),
        pytest.param([({ZONE: "b"},), ({}, condition(ZONE, "NotIn", "a"))], id="a zone, and not another"),
        pytest.param([({ZONE: "b"},), ({CAPACITY: "on-demand"},)], id="two labels"),
        pytest.param([({ZONE: "b"},), ({ZONE: "b", CAPACITY: "on-demand"},)], id="one label, and two"),
        pytest.param([({ARCH: "amd64"},), ({}, condition(ARCH, "In", "amd64", "arm64"))], id="not restricted"),
        pytest.param([({"beta.kubernetes.io/arch": "amd64"},), ({},)], id="a former key"),
        pytest.param([({"kubernetes.io/os": "linux"},), ({ARCH: "amd64"},), ({ZONE: "b"},), ({},)], id="three labels"),
    ],
)
def test_pods_with_conditions_that_one_node_can_meet_share_it(unlike: list[Any]) -> None:
    pods = [tenth(f"pod-{number}", *conditions) for number, conditions in enumerate(unlike)]
    (node,) = planned(*pods, *NODES, POOL).nodes
    assert len(node.pods) == len(pods)
    assert not planned(*pods, *NODES, POOL, requested=requests_of([node])).nodes
    for pod in pods:
        again = planned(pod, *NODES, POOL, requested=requests_of([node]))
        assert not again.nodes, "the requested node serves each alone"


@pytest.mark.parametrize(
    "typo",
    [
        pytest.param(({ZONE: "zz"},), id="a zone"),
        pytest.param(({}, condition(ZONE, "In", "a", "zz")), id="a zone that exists, and one that may not"),
        pytest.param(({ARCH: "amd", CAPACITY: "spot"},), id="an architecture, and what exists"),
    ],
)
def test_a_value_that_no_node_has_is_required_of_no_node_for_others(typo: Any) -> None:
    """Nor do others use a node that was requested for it, and is not there: it may never come."""
    pods = [tenth("typo", *typo), tenth("typo-too", *typo), tenth("other"), tenth("zone", {ZONE: "a"})]
    pool = a_node_pool("pool", (A100,))
    nodes = planned(*pods, *NODES, pool).nodes
    assert {frozenset(node.pods) for node in nodes} == {
        frozenset({"uid-typo", "uid-typo-too"}),
        frozenset({"uid-other", "uid-zone"}),
    }
    assert not planned(*pods, *NODES, pool, requested=requests_of(nodes)).nodes
    (of_typo,) = (node for node in nodes if "uid-typo" in node.pods)
    assert on_new(planned(*pods, *NODES, pool, requested=requests_of([of_typo]))) == {"uid-other", "uid-zone"}


def test_a_value_is_shared_as_soon_as_a_node_has_it() -> None:
    """A controller plans again and again."""
    planner, pool = DemandPlanner(), a_node_pool("pool", (A100,))
    pods = [tenth("zone", {ZONE: "a"}), tenth("other")]
    for nodes, expected in (((), 2), (NODES, 1), ((), 2)):
        assert len(planner.plan(a_snapshot(*pods, *nodes, pool)).nodes) == expected


def test_a_limit_of_one_node_serves_pods_that_can_share_it() -> None:
    limited = a_node_pool("pool", (A100,), limits={"nvidia.com/gpu": 8})
    plan = planned(tenth("zone", {ZONE: "b"}), tenth("capacity", {CAPACITY: "on-demand"}), *NODES, limited)
    assert len(on_new(plan)) == 2
    assert not refused(plan)


@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param(({ZONE: "a"}, condition(ZONE, "In", "b")), id="selector and affinity"),
        pytest.param(({}, condition(ZONE, "NotIn", *VALUES[ZONE])), id="no value is left"),
        pytest.param(({}, condition(ZONE, "DoesNotExist")), id="every node has a zone"),
        pytest.param(({HOST: "node-1"},), id="the name of a new node is not known"),
    ],
)
def test_no_node_is_requested_for_conditions_that_none_can_meet(conditions: Any) -> None:
    plan = planned(tenth("pod", *conditions), POOL)
    assert not plan.nodes
    assert set(refused(plan)) == {"uid-pod"}


CONDITIONS: Final = st.sampled_from(sorted(VALUES)).flatmap(
    lambda key: st.builds(
        lambda operator, values: condition(key, operator, *(values if operator in ("In", "NotIn") else ())),
        st.sampled_from(("In", "In", "NotIn", "Exists", "DoesNotExist")),
        st.lists(st.sampled_from(VALUES[key]), min_size=1, max_size=2, unique=True),
    )
)


@given(st.lists(st.lists(CONDITIONS, max_size=3), min_size=1, max_size=6))
def test_nodes_are_as_few_as_possible_and_meet_the_conditions_of_their_pods(wanted: list[list[dict[str, Any]]]) -> None:
    pods = [tenth(f"pod-{number}", {}, *conditions) for number, conditions in enumerate(wanted)]
    plan = planned(*pods, *NODES, POOL)
    able = [{pod.uid for pod in pods if pod.placement.allows(labels)} for labels in possible_nodes()]
    servable = set[str]().union(*able)
    assert on_new(plan) == servable
    assert len(plan.nodes) == fewest_sets(servable, able)
    assert not broken_promises(plan, pods)
    assert not planned(*pods, *NODES, POOL, requested=requests_of(plan.nodes)).nodes


def test_a_hundred_zones_are_planned_at_once() -> None:
    pods = [tenth(f"pod-{number}", {ZONE: f"zone-{number:02}"}) for number in range(100)]
    assert len(planned(*pods, a_node_pool("pool", (A100,))).nodes) == 100


def test_a_node_pool_that_changed_is_read_again() -> None:
    """A controller plans again and again; the plan is that of a new one."""
    planner = DemandPlanner()
    pod = tenth("pod", {ZONE: "b"})
    for zones in (["a"], ["a", "b"], ["c"], ["b"]):
        pool = a_node_pool("pool", (A100,), requirements=[{"key": ZONE, "operator": "In", "values": zones}])
        plan = planner.plan(a_snapshot(pod, pool))
        assert bool(plan.nodes) == ("b" in zones), zones
        assert plan == planned(pod, pool)


def test_many_alternatives_of_many_pods_are_planned_in_seconds() -> None:
    """Each pod allows one of 30 pairs of values, so that only some alternatives are compared."""
    labels = ("karpenter.k8s.aws/a", "karpenter.k8s.aws/b", "karpenter.k8s.aws/c")
    pods = []
    for number in range(20):
        terms = [
            {
                "matchExpressions": [
                    condition(labels[number % 3], "In", f"v{n}"),
                    condition(ZONE, "In", f"z{number + n}"),
                ]
            }
            for n in range(30)
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        placement = Placement.read({"affinity": {"nodeAffinity": required}})
        pods.append(tenth(f"pod-{number:02}").model_copy(update={"placement": placement}))
    plan = planned(*pods, a_node_pool("pool", (A100,)))
    assert len(on_new(plan)) == 20


def possible_nodes() -> list[dict[str, str]]:
    """The labels of each node that can come from the NodePool."""
    values = {**VALUES, ARCH: (*VALUES[ARCH], "another")}
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def fewest_sets(all_of: set[str], sets: Iterable[set[str]]) -> int:
    """The least number of these sets that together have all members."""
    distinct = list({frozenset(each) for each in sets})
    counts = range(len(all_of) + 1)
    return next(n for n in counts for some in combinations(distinct, n) if all_of <= set[str]().union(*some))


def broken_promises(plan: DemandPlan, pods: list[Pod]) -> list[str]:
    """Nodes that cannot come as requested, or may come with labels that one of their pods does not allow."""
    by_uid = {pod.uid: pod for pod in pods}
    wrong = []
    for node in plan.nodes:
        terms = node.requires or ((),)
        come = [
            labels
            for labels in possible_nodes()
            if any(all(each.allows(labels.get(each.key)) for each in term) for term in terms)
        ]
        met = all(by_uid[uid].placement.allows(labels) for labels in come for uid in node.pods)
        if not come or not met:
            wrong.append(f"{sorted(node.pods)} on {node.requires}")
    return wrong


@pytest.mark.parametrize("value", ["--5", "\u00b2", "9" * 5000, "-"])
def test_a_value_that_looks_like_a_number_ends_no_plan(value: str) -> None:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [condition(ZONE, "In", value)]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    placed = tenth("a").model_copy(update={"placement": Placement.read({"affinity": affinity})})
    plan = planned(placed, tenth("b", None, condition(ZONE, "NotIn", value)), POOL)
    assert on_new(plan) == {"uid-a", "uid-b"}


def test_the_cost_of_different_conditions_does_not_double_with_each() -> None:
    open_pool = a_node_pool("pool", (A100,))

    def cost(number: int) -> int:
        pods = [tenth(f"pod-{n}", {ZONE: f"zone-{n}"}) for n in range(number)]
        plans: list[DemandPlan] = []
        spent = calls(lambda: plans.append(planned(*pods, open_pool)))
        assert len(on_new(plans[0])) == len(plans[0].nodes) == number
        return spent

    assert cost(80) < 4 * cost(40)
