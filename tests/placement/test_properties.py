"""Each planned pod may be where it is planned, by a reading of the rules that shares no code with the planner."""

from collections import Counter, defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model.cluster import Node, Pod
from plimsoll.plan.demand import DemandPlan
from tests.builders import a_node_pool, a_waiting_pod
from tests.demand.plans import on_nodes, planned, refused, requests_of
from tests.placement.rules import HOST, ZONE, apart, near, spread, zones
from tests.placement.test_pods_among_pods import a_host

Rule = tuple[str, str, str]
"""(relation, app that it is about, label)"""
_MAKE = {"apart": apart, "near": near, "spread": spread}
_POOL = a_node_pool("gpu", ["g6.12xlarge"], requirements=[zones("a", "b", "c")])
_rules = st.tuples(st.sampled_from(["apart", "near", "spread"]), st.sampled_from("xy"), st.sampled_from([HOST, ZONE]))
_pods = st.lists(
    st.tuples(st.sampled_from("xy"), st.sampled_from(["0.2", "0.5", "0.9"]), st.none() | _rules), min_size=1, max_size=7
)


def _pod(number: int, app: str, share: str, rule: Rule | None) -> Pod:
    rules = _MAKE[rule[0]](rule[1], rule[2]) if rule else None
    return a_waiting_pod(f"p{number}", gpu_fraction=share, more_labels={"app": app}, rules=rules)


def _domains(plan: DemandPlan, nodes: list[Node]) -> dict[str, dict[str, str]]:
    """The labels of the node of each planned pod, by UID."""
    labels = {node.name: dict(node.labels) for node in nodes}
    found = {uid: labels[name] for uid, name in on_nodes(plan).items()}
    for number, node in enumerate(plan.nodes):
        zone = {each.key: each.values[0] for term in node.requires for each in term if len(each.values) == 1}
        found |= dict.fromkeys(node.pods, {HOST: f"new-{number}"} | zone)
    return found


def _broken(rule: Rule, uid: str, apps: dict[str, str], at: dict[str, dict[str, str]], known: set[str]) -> bool:
    relation, app, key = rule
    counts: Counter[str] = Counter()
    unknown = 0
    for other, labels in at.items():
        if apps[other] == app and other != uid:
            counts[labels.get(key, "")] += 1
            unknown += key not in labels
    own = at[uid].get(key, "")
    match relation:
        case "apart":
            return bool(counts[own] or unknown or not own) and bool(counts)
        case "near":
            return not counts[own] and (bool(counts) or apps[uid] != app)
        case _:
            counts[own] += apps[uid] == app
            return not own or counts[own] - min(counts[each] for each in {*counts, *known, own}) > 1


@settings(max_examples=40)
@given(_pods, st.integers(0, 3))
def test_planned_pods_keep_the_rules(drawn: list[tuple[str, str, Rule | None]], hosts: int) -> None:
    nodes = [a_host(f"n{number}", "abc"[number]) for number in range(hosts)]
    pods = {f"uid-p{number}": _pod(number, *each) for number, each in enumerate(drawn)}
    rules = {f"uid-p{number}": rule for number, (_, _, rule) in enumerate(drawn)}
    apps = {uid: pod.labels["app"] for uid, pod in pods.items()}
    plan = planned(_POOL, *nodes, *pods.values())
    at = _domains(plan, nodes)
    assert at.keys() | refused(plan).keys() == pods.keys()
    known: defaultdict[str, set[str]] = defaultdict(set)
    for node in nodes:
        known[HOST].add(node.name)
        known[ZONE].add(node.labels[ZONE])
    for uid in at:
        rule = rules[uid]
        # The skew of a spread is judged where the pod is placed; others that follow may raise it.
        if rule is not None and not (rule[0] == "spread" and _others_follow(rule, rules)):
            assert not _broken(rule, uid, apps, at, known[rule[2]]), (rule, uid, at)


def _others_follow(rule: Rule, rules: dict[str, Any]) -> bool:
    return any(other != rule for other in rules.values())


@settings(max_examples=20)
@given(_pods, st.sampled_from(["apart", "near", "spread"]), st.sampled_from([HOST, ZONE]))
def test_the_planned_nodes_suffice_in_the_next_round(
    drawn: list[tuple[str, str, Rule | None]], relation: str, key: str
) -> None:
    """Pods of one application that have a rule about each other, among others."""
    own = (relation, "x", key)
    pods = [_pod(number, app, share, own if app == "x" else None) for number, (app, share, _) in enumerate(drawn)]
    plan = planned(_POOL, *pods)
    again = planned(_POOL, *pods, requested=requests_of(plan.nodes))
    assert not again.nodes
    assert len(again.needed) == len(plan.nodes)
    assert refused(again) == refused(plan)


@settings(max_examples=20)
@given(_pods)
def test_the_order_of_pods_does_not_matter(drawn: list[tuple[str, str, Rule | None]]) -> None:
    pods = [_pod(number, *each) for number, each in enumerate(drawn)]
    assert planned(_POOL, *pods) == planned(_POOL, *reversed(pods))
