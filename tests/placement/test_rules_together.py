"""Pods with several rules are planned where a scheduler could bind them one after the other, by a reading of the rules
that shares no code with the planner."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model.cluster import Node, PlainPod, Pod
from plimsoll.plan.demand import DemandPlan
from tests.builders import a_node_pool, a_plain_manifest, a_waiting_pod
from tests.demand.plans import on_nodes, planned, refused
from tests.placement.rules import HOST, ZONE, zones
from tests.placement.test_pods_among_pods import a_host

POOL = a_node_pool("gpu", ["g6.12xlarge"], requirements=[zones("a", "b", "c")])
APPS = "xyz"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Term(NamedTuple):
    """One rule of a pod."""

    relation: str
    operator: str
    """Of the expression that selects pods by their application."""
    named: tuple[str, ...]
    key: str
    skew: int
    least_domains: int

    def selects(self, app: str) -> bool:
        return (app in self.named) is (self.operator == "In")

    @property
    def manifest(self) -> dict[str, Any]:
        expression = {"key": "app", "operator": self.operator, "values": list(self.named)}
        selected = {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": self.key}
        if self.relation != "spread":
            return selected
        more = {"minDomains": self.least_domains} if self.least_domains > 1 else {}
        return selected | more | {"maxSkew": self.skew, "whenUnsatisfiable": "DoNotSchedule"}


class Drawn(NamedTuple):
    app: str
    share: str
    terms: tuple[Term, ...]

    def pod(self, number: int) -> Pod:
        labels = {"app": self.app}
        return a_waiting_pod(f"p{number}", gpu_fraction=self.share, more_labels=labels, rules=self._rules)

    def plain(self, number: int, node: str) -> PlainPod:
        """Such a pod without its share, on a node."""
        manifest = a_plain_manifest(f"plain{number}", node, namespace="team")
        manifest["metadata"]["labels"] = {"app": self.app}
        rules = self._rules
        manifest["spec"] |= {"affinity": rules, "topologySpreadConstraints": rules["topologySpreadConstraints"]}
        plain = PlainPod.read(manifest)
        assert plain is not None
        return plain

    @property
    def _rules(self) -> dict[str, Any]:
        of = {
            relation: [each.manifest for each in self.terms if each.relation == relation]
            for relation in ("near", "apart", "spread")
        }
        rules = {"podAffinity": {_REQUIRED: of["near"]}, "podAntiAffinity": {_REQUIRED: of["apart"]}}
        return rules | {"topologySpreadConstraints": of["spread"]}


Labels = Mapping[str, str]
_terms = st.builds(
    Term,
    st.sampled_from(["apart", "near", "spread"]),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from(APPS), min_size=1, max_size=2, unique=True).map(tuple),
    st.sampled_from([HOST, ZONE]),
    st.integers(1, 3),
    st.integers(1, 3),
)
_rules = st.lists(_terms, max_size=2).map(tuple)


def _pods_of(kinds: list[tuple[Term, ...]]) -> st.SearchStrategy[list[Drawn]]:
    shares = st.sampled_from(["0.2", "0.5", "0.9"])
    return st.lists(st.builds(Drawn, st.sampled_from(APPS), shares, st.sampled_from(kinds)), min_size=1, max_size=6)


_pods = st.lists(_rules, min_size=1, max_size=2).flatmap(_pods_of)
"""Several pods have the same rules, as those of a workload."""


def places(plan: DemandPlan, nodes: list[Node]) -> dict[str, Labels]:
    """The labels of the node of each planned pod, by UID. A new node whose zone is left open has none."""
    of_nodes = {node.name: dict(node.labels) for node in nodes}
    found: dict[str, Labels] = {uid: of_nodes[name] for uid, name in on_nodes(plan).items()}
    for number, node in enumerate(plan.nodes):
        zone = {each.key: each.values[0] for term in node.requires for each in term if len(each.values) == 1}
        found |= dict.fromkeys(node.pods, {HOST: f"new-{number}"} | zone)
    return found


class Bound(NamedTuple):
    """Pods that are bound."""

    pods: tuple[tuple[Drawn, Labels], ...]
    known: tuple[Labels, ...]
    """Nodes that exist."""

    def admits(self, pod: Drawn, at: Labels) -> bool:
        """Whether the scheduler may bind the pod to a node with these labels."""
        return (
            all(each.key in at for each in pod.terms if each.relation != "apart")
            and not any(self._repels(pod, at))
            and self._is_near(pod, at)
            and all(self._is_spread(each, pod, at) for each in pod.terms if each.relation == "spread")
        )

    def _repels(self, pod: Drawn, at: Labels) -> Iterable[bool]:
        for other, there in self.pods:
            for rules, of in ((pod.terms, other.app), (other.terms, pod.app)):
                for each in rules:
                    yield each.relation == "apart" and each.selects(of) and _same(each.key, at, there)

    def _is_near(self, pod: Drawn, at: Labels) -> bool:
        near = [each for each in pod.terms if each.relation == "near"]
        others = [there for other, there in self.pods if all(each.selects(other.app) for each in near)]
        if not others and all(each.selects(pod.app) for each in near):
            return True
        return all(any(at[each.key] == there.get(each.key) for there in others) for each in near)

    def _is_spread(self, term: Term, pod: Drawn, at: Labels) -> bool:
        counts = Counter(there[term.key] for other, there in self.pods if term.selects(other.app) and term.key in there)
        used = {there[term.key] for _, there in self.pods if term.key in there}
        domains = used | {node[term.key] for node in self.known} | {at[term.key]}
        least = 0 if len(domains) < term.least_domains else min(counts[each] for each in domains)
        return counts[at[term.key]] + term.selects(pod.app) - least <= term.skew


def _same(key: str, one: Labels, other: Labels) -> bool:
    """Whether the nodes may be in one domain: one that is left open may be any."""
    return key not in one or key not in other or one[key] == other[key]


def in_some_order(
    pods: tuple[tuple[Drawn, Labels], ...], known: tuple[Labels, ...], there_before: tuple[tuple[Drawn, Labels], ...]
) -> bool:
    """Whether the pods can be bound one after the other beside those that were there before."""
    seen = set[frozenset[int]]()

    def completes(there: frozenset[int]) -> bool:
        if len(there) == len(pods):
            return True
        if there in seen:
            return False
        seen.add(there)
        bound = Bound((*there_before, *(pods[each] for each in sorted(there))), known)
        return any(
            bound.admits(*pods[each]) and completes(there | {each}) for each in range(len(pods)) if each not in there
        )

    return completes(frozenset())


@settings(max_examples=60)
@given(_pods, st.integers(0, 3), st.lists(st.tuples(st.integers(0, 2), _pods), max_size=2))
def test_planned_pods_can_be_bound_one_after_the_other(
    drawn: list[Drawn], hosts: int, plain: list[tuple[int, list[Drawn]]]
) -> None:
    nodes = [a_host(f"n{number}", "abc"[number]) for number in range(hosts)]
    by_uid = {f"uid-p{number}": each for number, each in enumerate(drawn)}
    beside = [(each, nodes[at]) for at, pods in plain if at < hosts for each in pods]
    plan = planned(
        POOL,
        *nodes,
        *(each.pod(number) for number, each in enumerate(drawn)),
        *(each.plain(number, node.name) for number, (each, node) in enumerate(beside)),
    )
    at = places(plan, nodes)
    assert at.keys() | refused(plan).keys() == by_uid.keys()
    pods = tuple((by_uid[uid], labels) for uid, labels in at.items())
    there_before = tuple((each, node.labels) for each, node in beside)
    assert in_some_order(pods, tuple(node.labels for node in nodes), there_before), (drawn, beside, at)
