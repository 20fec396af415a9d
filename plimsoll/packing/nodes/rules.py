"""Rules of pods about other pods: together in one domain, in different ones, or spread over several."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from plimsoll.packing.relation import Relation

UNKNOWN: Final = ""
"""Domain of a node that has one, but it is not known which. No rule allows it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Nodes with the same value of the label `key` are one domain."""

    relation: Relation
    key: str
    group: Hashable
    """Identifies the pods that it is about."""
    skew: int = 1
    domains: frozenset[str] = frozenset()
    """SPREAD: the domains of the nodes that exist. Without any, those that new nodes can have."""
    least_domains: int = 1
    """SPREAD: with fewer domains, the fewest pods of one are 0."""


Place = tuple[Hashable, str, str]
"""(group, key, domain)"""


@dataclass(frozen=True)
class Rules:
    """The rules of the pods of one problem, and what they depend on."""

    of: Mapping[str, tuple[Rule, ...]]
    """By name of the pod."""
    groups: Mapping[str, frozenset[Hashable]]
    """The groups that a pod belongs to, by its name."""
    nodes: Mapping[str, Mapping[str, str]]
    """The domains of a free node by key, by its name; a key that it does not have is missing."""
    shapes: Mapping[str, Mapping[str, tuple[str, ...]]]
    """The domains that a new node can have by key, by name of the shape; none: each node is one of its own."""
    placed: Mapping[Place, int] = field(default_factory=dict)
    """Number of pods of a group that are in a domain already."""
    present: frozenset[Hashable] = frozenset()
    """Groups of which a pod has a node."""
    kept_from: frozenset[Place] = frozenset()
    """Where pods that have a node keep those of a group away."""
    uncounted: Mapping[Hashable, frozenset[str]] = field(default_factory=dict)
    """By group, the names of free nodes and shapes that a spread over its pods leaves out."""

    def concern(self, name: str) -> bool:
        """Whether the pod has rules, or others have rules about it."""
        return name in self.of or name in self.groups

    def follows(self, name: str) -> bool:
        """Whether the pod must be near pods that are not of its own kind, so that these come first."""
        groups = self.groups.get(name, frozenset())
        return any(rule.relation is Relation.TOGETHER and rule.group not in groups for rule in self.of.get(name, ()))

    def alike(self, name: str) -> tuple[object, ...]:
        """Equal for pods with the same rules that are in the same groups."""
        return self.of.get(name, ()), self.groups.get(name, frozenset())


class Domains:
    """Which pods are in which domains, while they are placed one after the other."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._counts: defaultdict[tuple[Hashable, str], dict[str, int]] = defaultdict(dict)
        for (group, key, domain), count in rules.placed.items():
            self._counts[group, key][domain] = count
        self._present = set(rules.present)
        self._kept: defaultdict[tuple[str, str], set[Hashable]] = defaultdict(set)
        """The groups that pods keep away from a domain, by key and domain."""
        for group, key, domain in rules.kept_from:
            self._kept[key, domain].add(group)
        self._opened: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        """(domain, name of the shape) of new nodes, by key."""
        keys: defaultdict[Hashable, set[str]] = defaultdict(set)
        for own in rules.of.values():
            for rule in own:
                keys[rule.group].add(rule.key)
        for group, key, _ in rules.kept_from:
            keys[group].add(key)
        self._keys = keys
        self._keys_of = {name: self._find_keys(name) for name in {*rules.of, *rules.groups}}

    def copy(self) -> "Domains":
        other = Domains.__new__(Domains)
        other._rules, other._keys, other._keys_of = self._rules, self._keys, self._keys_of
        other._counts = defaultdict(dict, {place: dict(counts) for place, counts in self._counts.items()})
        other._present = set(self._present)
        other._kept = defaultdict(set, {place: set(groups) for place, groups in self._kept.items()})
        other._opened = defaultdict(set, {key: set(opened) for key, opened in self._opened.items()})
        return other

    def keys_of(self, name: str) -> list[str]:
        """The labels that decide where the pod may be, or others because of it."""
        return self._keys_of.get(name, [])

    def _find_keys(self, name: str) -> list[str]:
        own = {rule.key for rule in self._rules.of.get(name, ())}
        return sorted(own.union(*(self._keys[group] for group in self._rules.groups.get(name, ()))))

    def open_to(self, name: str, options: Mapping[str, Sequence[str]], node: str) -> Iterator[dict[str, str]]:
        """The domains of a new node of this name where the pod may be, those with the fewest pods first."""
        keys = [key for key in self.keys_of(name) if key in options]
        values = [options[key] or (node,) for key in keys]
        found = [dict(zip(keys, each, strict=True)) for each in product(*values)]
        allowed = [domains for domains in found if self.allows(name, domains)]
        yield from sorted(allowed, key=lambda domains: (self._beside(name, domains), sorted(domains.items())))

    def _beside(self, name: str, domains: Mapping[str, str]) -> int:
        spread = (rule for rule in self._rules.of.get(name, ()) if rule.relation is Relation.SPREAD)
        return sum(self._counts[rule.group, rule.key].get(domains.get(rule.key, ""), 0) for rule in spread)

    def allows(self, name: str, domains: Mapping[str, str]) -> bool:
        """Whether the pod may be on a node of these domains."""
        if any(domains.get(key) == UNKNOWN for key in self.keys_of(name)):
            return False
        groups = self._rules.groups.get(name, frozenset())
        if any(place in self._kept and not self._kept[place].isdisjoint(groups) for place in domains.items()):
            return False
        return all(
            self._meets(rule, domains.get(rule.key), rule.group in groups) for rule in self._rules.of.get(name, ())
        )

    def _meets(self, rule: Rule, domain: str | None, is_member: bool) -> bool:
        if domain is None:
            return rule.relation is Relation.APART
        counts = self._counts[rule.group, rule.key]
        match rule.relation:
            case Relation.APART:
                return not counts.get(domain)
            case Relation.TOGETHER:
                return bool(counts.get(domain)) or (is_member and rule.group not in self._present)
            case Relation.SPREAD:
                return counts.get(domain, 0) + is_member - self._fewest(rule, counts) <= rule.skew

    def _fewest(self, rule: Rule, counts: Mapping[str, int]) -> int:
        left_out = self._rules.uncounted.get(rule.group, frozenset())
        known = rule.domains or self._possible(rule.key, left_out)
        domains = known | {domain for domain, shape in self._opened[rule.key] if shape not in left_out}
        if len(domains) < rule.least_domains or not known:
            return 0
        return min(counts.get(each, 0) for each in domains)

    def _possible(self, key: str, left_out: frozenset[str]) -> frozenset[str]:
        """The domains that new nodes can have; none if each is one of its own."""
        shapes = (domains for shape, domains in self._rules.shapes.items() if shape not in left_out)
        return frozenset(domain for domains in shapes for domain in domains.get(key, ()))

    def put(self, name: str, domains: Mapping[str, str], node: str, *, new: bool) -> None:
        """Notes that the pod is on a node of these domains. `new`: a new one, and `node` is the name of its shape."""
        groups = self._rules.groups.get(name, frozenset())
        self._present |= {group for group in groups if not self._keys[group].isdisjoint(domains)}
        counting = [group for group in groups if node not in self._rules.uncounted.get(group, ())]
        for key, domain in domains.items():
            if new:
                self._opened[key].add((domain, node))
            for group in counting:
                if key in self._keys[group]:
                    counts = self._counts[group, key]
                    counts[domain] = counts.get(domain, 0) + 1
        for rule in self._rules.of.get(name, ()):
            if rule.relation is Relation.APART and rule.key in domains:
                self._kept[rule.key, domains[rule.key]].add(rule.group)
