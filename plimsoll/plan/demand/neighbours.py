"""Neighbours: the rules of waiting pods about other pods, waiting or running, and the domains of nodes."""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from itertools import chain
from operator import or_
from typing import Final

from plimsoll.cluster.nodes import index_of
from plimsoll.cluster.pods import node_of, ruled_pods
from plimsoll.cluster.profiles import CHOSEN_BY_PROVIDER, NodeProfile
from plimsoll.labels import HOSTNAME, NODEPOOL
from plimsoll.model.cluster import Neighbour, Pod
from plimsoll.model.kai import POD_GROUP_NAME, SUB_GROUP_NAME, TopologyConstraint
from plimsoll.model.meta import NodeRequirement, Placement, PodRule, PodSelector, Terms
from plimsoll.packing import Relation
from plimsoll.packing.nodes import UNKNOWN, Place, Rule, Rules
from plimsoll.plan.classes import Refusal, RefusalReason, gang_levels
from plimsoll.plan.demand.hosts import ShapeOffer
from plimsoll.plan.demand.inputs import DemandInputs
from plimsoll.plan.demand.spread_nodes import SpreadNodes
from plimsoll.plan.demand.usable import Usable

_MOST_COMPARED: Final = 250_000
"""Rules times waiting pods of a namespace: half a second."""
_ALWAYS: Final = 32
"""Rules that a namespace may have, however many pods wait."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The pods that a rule is about."""

    selectors: tuple[PodSelector, ...] = ()
    """All match its pods."""
    gang: tuple[str, str, tuple[str, ...]] | None = None
    """Or: namespace, PodGroup and subgroups of its pods; without subgroups: all."""
    deleting: bool = True
    """Whether pods that are being deleted count."""
    on: SpreadNodes | None = None
    """The nodes on which its pods count; None: all."""

    def holds(self, pod: Pod | Neighbour) -> bool:
        if pod.deleting and not self.deleting:
            return False
        if self.gang is not None:
            namespace, group, parts = self.gang
            named = pod.namespace == namespace and pod.annotations.get(POD_GROUP_NAME) == group
            return named and (not parts or pod.labels.get(SUB_GROUP_NAME, "") in parts)
        return all(each.matches(pod.namespace, pod.labels) for each in self.selectors)


_NO_GROUPS: Final = frozenset[int]()


@dataclass(frozen=True)
class _Groups:
    """Groups by a label, PodGroup or namespace that all their pods have: tenants may make thousands of them. Each is
    told by its number, because the hash of a group takes long."""

    groups: Sequence[_Group]

    @cached_property
    def _by_mark(self) -> Mapping[object, list[int]]:
        found = defaultdict[object, list[int]](list)
        for number, group in enumerate(self.groups):
            for mark in _marks(group):
                found[mark].append(number)
        return found

    def of(self, pod: Pod | Neighbour) -> frozenset[int]:
        """Those that hold the pod."""
        marks = (None, pod.namespace, (POD_GROUP_NAME, pod.annotations.get(POD_GROUP_NAME)), *pod.labels.items())
        if self._by_mark.keys().isdisjoint(marks):
            return _NO_GROUPS
        named = (number for mark in marks for number in self._by_mark.get(mark, ()))
        return frozenset(number for number in named if self.groups[number].holds(pod))


def _marks(group: _Group) -> Iterable[object]:
    """What a pod of the group has one of; None: nothing is known."""
    if group.gang is not None:
        return ((POD_GROUP_NAME, group.gang[1]),)
    for selector in group.selectors:
        for each in selector.labels or ():
            if each.operator == "In":
                return [(each.key, value) for value in each.values]
    return next((each.namespaces for each in group.selectors if each.namespaces is not None), (None,))


def rules_of(inputs: DemandInputs, usable: Usable, without: Container[str] = ()) -> Rules | None:
    """The rules that concern waiting pods; None if there are none. Those of the pods `without`, by UID, are left out,
    which have no place."""
    of_classes = (item for members in inputs.classes.values() for item in members.ruled.items())
    ruled = {uid: pod for uid, pod in of_classes if uid not in without}
    repelling = frozenset(_repelling(inputs, {free.name for free in usable.free}))
    if not ruled and not repelling:
        return None
    waiting = {uid: each.pod for members in inputs.classes.values() for uid, each in members.shares.items()}
    kept_away = _kept_away(repelling, waiting)
    if not ruled and not kept_away:
        return None
    found = _Neighbours(inputs, usable, waiting, ruled, kept_away).rules
    return found if found.of or found.groups else None


def with_too_many_rules(inputs: DemandInputs) -> Mapping[str, Refusal]:
    """The pods beyond the different rules that those of a namespace may have, by UID. Each rule is compared with each
    pod, and tenants may give each pod rules of its own. Highest priority first, then the oldest, pods whose rules are
    new count."""
    ruled = defaultdict[str, list[tuple[str, Pod]]](list)
    for uid, pod in (item for members in inputs.classes.values() for item in members.ruled.items()):
        if pod.rules:
            ruled[pod.namespace].append((uid, pod))
    if not ruled:
        return {}
    waiting = Counter(each.pod.namespace for members in inputs.classes.values() for each in members.shares.values())
    found = dict[str, Refusal]()
    for namespace, pods in ruled.items():
        most = max(_ALWAYS, _MOST_COMPARED // waiting[namespace])
        if sum(len(pod.rules) for _, pod in pods) > most:
            found |= dict.fromkeys(_beyond(pods, most), _refusal(namespace, most))
    return found


def _beyond(pods: list[tuple[str, Pod]], most: int) -> list[str]:
    """UIDs of the pods whose rules are beyond the number."""
    seen, count, found = set[object](), 0, list[str]()
    for uid, pod in sorted(pods, key=lambda item: (-item[1].priority, item[1].creation_timestamp, item[0])):
        named = {key for rule in pod.rules for key in (*rule.pods.same, *rule.pods.other)}
        # Those that are read from equal texts are one object, and their hash takes long.
        rules = *map(id, pod.rules), *((key, pod.labels.get(key)) for key in sorted(named))
        if rules in seen:
            continue
        if count + len(pod.rules) > most:
            found.append(uid)
            continue
        seen.add(rules)
        count += len(pod.rules)
    return found


def _refusal(namespace: str, most: int) -> Refusal:
    return Refusal(
        RefusalReason.LIMIT,
        f"the pods of namespace {namespace!r} that wait have more than {most} different rules about other pods",
        "wait for those with higher priority and the older ones, or let their affinities and spreads differ less",
        ((repr(namespace), "of the pods"),),
    )


def choosing_domains(inputs: DemandInputs) -> frozenset[Placement]:
    """The placements of pods that rules may keep from some domains of new nodes, such as zones."""
    snapshot = inputs.cluster.snapshot
    ruled = {each.placement: members.ruled.values() for each, members in inputs.classes.items() if members.ruled}
    there = chain[Pod | Neighbour](
        ruled_pods(snapshot.pods), *(each.repelling for each in snapshot.host_loads.values())
    )
    rules = (rule for pod in chain(there, *ruled.values()) for rule in pod.rules if rule.key != HOSTNAME)
    if any(rule.relation is Relation.APART for rule in rules):
        return frozenset(each.placement for each in inputs.classes)  # whom others keep away is not looked at
    return frozenset(placement for placement, pods in ruled.items() if any(map(_chooses, pods)))


def _chooses(pod: Pod) -> bool:
    """Whether rules of the pod, or of its gang, are about other domains than nodes."""
    return not pod.rules or any(rule.key != HOSTNAME for rule in pod.rules)


def _repelling(inputs: DemandInputs, free: Collection[str]) -> Iterator[tuple[PodSelector, str, str]]:
    """The domains from which pods keep others away: the selector of these, the label, and its value."""
    snapshot = inputs.cluster.snapshot
    named = ((node_of(pod), pod) for pod in ruled_pods(snapshot.pods) if not pod.finished)
    of_plain = ((name, pod) for name, load in snapshot.host_loads.items() for pod in load.repelling)
    by_name, places = index_of(snapshot.nodes).by_name, dict[int, tuple[tuple[PodSelector, str], ...]]()
    for name, pod in chain[tuple[str, Pod | Neighbour]](named, of_plain):
        of_pod = places.get(id(pod))
        if of_pod is None:  # many pods without GPUs are one object
            apart = (rule for rule in pod.rules if rule.relation is Relation.APART)
            of_pod = places[id(pod)] = tuple((rule.pods.of(pod.namespace, pod.labels), rule.key) for rule in apart)
        labels = by_name[name].labels if name in by_name else {}
        for selector, key in of_pod:
            # Most of these rules are about the pod's own node, and most nodes have nothing to offer.
            if key in labels and (key != HOSTNAME or name in free):
                yield selector, key, labels[key]


def _kept_away(
    repelling: Collection[tuple[PodSelector, str, str]], waiting: Mapping[str, Pod]
) -> Mapping[tuple[str, str], list[str]]:
    """UIDs of the waiting pods that are kept from a domain, by its label and value."""
    found = defaultdict[tuple[str, str], int](int)
    if repelling:
        pods = _Selected(tuple(waiting.values()))
        for selector, key, domain in repelling:
            found[key, domain] |= pods.by(selector)
    uids = tuple(waiting)
    return {
        place: [uids[at] for at, bit in enumerate(reversed(bin(bits))) if bit == "1"]
        for place, bits in sorted(found.items())
        if bits
    }


class _Selected:
    """Which of many pods selectors select, as the bits of a number: of both there may be thousands."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._all = (1 << len(pods)) - 1
        self._of_namespace = defaultdict[str, int](int)
        self._of_label = defaultdict[str, defaultdict[str, int]](lambda: defaultdict(int))
        self._with_key = defaultdict[str, int](int)
        for at, pod in enumerate(pods):
            self._of_namespace[pod.namespace] |= 1 << at
            for key, value in pod.labels.items():
                self._of_label[key][value] |= 1 << at
                self._with_key[key] |= 1 << at

    def by(self, selector: PodSelector) -> int:
        if selector.labels is None:
            return 0
        found = self._all
        if selector.namespaces is not None:
            found = _either(self._of_namespace.get(each, 0) for each in selector.namespaces)
        for each in selector.labels:
            found &= self._meeting(each)
        return found

    def _meeting(self, condition: NodeRequirement) -> int:
        if condition.operator in ("Exists", "DoesNotExist"):
            found = self._with_key.get(condition.key, 0)
        else:
            of_value: Mapping[str, int] = self._of_label.get(condition.key, {})
            found = _either(of_value.get(each, 0) for each in condition.values)
        return found if condition.operator in ("In", "Exists") else self._all & ~found


def _either(several: Iterable[int]) -> int:
    return reduce(or_, several, 0)


class _Levels(dict[TopologyConstraint, tuple[str, ...]]):
    """The labels of nodes that are the same in one domain of a level. KAI takes equal values of a label for one domain
    only if all wider levels have equal values, too: those count where nodes of the cluster differ in them."""

    def __init__(self, inputs: DemandInputs) -> None:
        super().__init__()
        self._topologies = inputs.topologies
        self._nodes = inputs.cluster.snapshot.nodes

    def __missing__(self, level: TopologyConstraint) -> tuple[str, ...]:
        topology = self._topologies.get(level.topology)
        if topology is None:  # none is known at all, else the pod is refused
            return (level.required,)
        *wider, narrowest = topology.down_to(level.required) or (level.required,)
        found = self[level] = (*(key for key in wider if self._differ(narrowest, key)), narrowest)
        return found

    def _differ(self, label: str, key: str) -> bool:
        """Whether nodes of the cluster with one value of the label have no value of `key`, or several."""
        values: dict[str, str] = {}
        labels = [node.labels for node in self._nodes if label in node.labels]
        return any(key not in each or values.setdefault(each[label], each[key]) != each[key] for each in labels)


@dataclass(frozen=True)
class _Neighbours:
    inputs: DemandInputs
    usable: Usable
    waiting: Mapping[str, Pod]
    """By UID."""
    ruled: Mapping[str, Pod]
    """Those with rules."""
    kept_away: Mapping[tuple[str, str], list[str]]
    """See `_kept_away`."""

    @property
    def rules(self) -> Rules:
        placed, present = self._placed
        groups, kept = _Groups(tuple(self._ruling)), self._kept
        return Rules(
            of={uid: self._of(pod) for uid, pod in self.ruled.items()},
            groups={
                uid: found for uid, pod in self.waiting.items() if (found := groups.of(pod) | kept.get(uid, _NO_GROUPS))
            },
            nodes=self._nodes,
            shapes=self._shapes,
            placed=placed,
            present=present,
            kept_from=frozenset((number, *place) for number, place in enumerate(self.kept_away, len(self._ruling))),
            uncounted=self._uncounted,
        )

    @cached_property
    def _numbers(self) -> Mapping[_Group, int]:
        """The groups as in the Rules."""
        return {group: number for number, group in enumerate(self._ruling)}

    @property
    def _kept(self) -> Mapping[str, frozenset[int]]:
        """By UID, groups of those that are kept from each domain; their numbers come after."""
        found = defaultdict[str, list[int]](list)
        for number, uids in enumerate(self.kept_away.values(), len(self._ruling)):
            for uid in uids:
                found[uid].append(number)
        return {uid: frozenset(numbers) for uid, numbers in found.items()}

    def _of(self, pod: Pod) -> tuple[Rule, ...]:
        return tuple(
            Rule(
                rule.relation,
                rule.key,
                self._numbers[group],
                rule.skew,
                frozenset() if group.on is None else self._domains[group.on, rule.key],
                rule.least_domains,
            )
            for rule, group in _with_groups(pod)
        ) + tuple(Rule(Relation.TOGETHER, key, self._numbers[group]) for group, key in self._gang(pod))

    @cached_property
    def _ruling(self) -> Mapping[_Group, frozenset[str]]:
        """The groups that the rules of waiting pods are about, with the keys of these rules."""
        keys_of = defaultdict[_Group, set[str]](set)
        for pod in self.ruled.values():
            for rule, group in _with_groups(pod):
                keys_of[group].add(rule.key)
            for group, key in self._gang(pod):
                keys_of[group].add(key)
        return {group: frozenset(keys) for group, keys in keys_of.items()}

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(key for key, _ in self.kept_away).union(*self._ruling.values())

    def _gang(self, pod: Pod) -> Iterator[tuple[_Group, str]]:
        """The gangs of the pod whose pods are together, with the labels."""
        for parts, level in gang_levels(pod, self.inputs.group_of(pod)).items():
            group = _Group(gang=(pod.namespace, pod.annotations[POD_GROUP_NAME], parts))
            yield from ((group, key) for key in self._levels[level])

    @cached_property
    def _levels(self) -> "_Levels":
        return _Levels(self.inputs)

    @cached_property
    def _placed(self) -> tuple[Mapping[Place, int], frozenset[Hashable]]:
        """How many pods of each group are in a domain, and the groups that have such pods."""
        counts, present = Counter[Place](), set[Hashable]()
        if not self._ruling:
            return counts, frozenset()
        by_name = index_of(self.inputs.cluster.snapshot.nodes).by_name

        @cache
        def counts_on(counted: SpreadNodes, name: str) -> bool:
            return counted.has(by_name[name])

        ruling, keys_of = tuple(self._ruling), tuple(self._ruling.values())
        for name, numbers in self._groups_on_nodes(_Groups(ruling)):
            if numbers and (node := by_name.get(name)) is not None:
                for number in numbers:
                    keys, on = keys_of[number] & node.labels.keys(), ruling[number].on
                    present |= {number} if keys else set()
                    if on is None or counts_on(on, name):
                        counts.update((number, key, node.labels[key]) for key in keys)
        return counts, frozenset(present)

    @cached_property
    def _uncounted(self) -> Mapping[Hashable, frozenset[str]]:
        """As `Rules.uncounted`. What is not a node yet counts."""
        by_name = index_of(self.inputs.cluster.snapshot.nodes).by_name
        free = [by_name[each.name] for each in self.usable.free if each.name in by_name]

        @cache
        def left_out(counted: SpreadNodes) -> frozenset[str]:
            shapes = (
                name for name, at in self._shapes.items() if not counted.may_have(self.usable.offers[name].shape, at)
            )
            return frozenset((*shapes, *(node.name for node in free if not counted.has(node))))

        return {self._numbers[group]: left_out(group.on) for group in self._ruling if group.on is not None}

    def _groups_on_nodes(self, groups: _Groups) -> Iterator[tuple[str, frozenset[int]]]:
        """The groups of each pod that has a node, with the node's name."""
        snapshot = self.inputs.cluster.snapshot
        for pod in snapshot.pods:
            if (name := node_of(pod)) and not pod.finished:
                yield name, groups.of(pod)
        of_neighbour = dict[int, frozenset[int]]()
        for name, load in snapshot.host_loads.items():
            for neighbour in load.neighbours:  # equal ones are mostly one object
                found = of_neighbour.get(id(neighbour))
                if found is None:
                    found = of_neighbour[id(neighbour)] = groups.of(neighbour)
                if found:
                    yield name, found

    @cached_property
    def _nodes(self) -> Mapping[str, Mapping[str, str]]:
        """The domains of free nodes, of NodeClaims and of requested nodes."""
        claims = {claim.name: claim.labels for claim in self.inputs.cluster.snapshot.node_claims}
        found: dict[str, Mapping[str, str]] = {}
        for free in self.usable.free:
            name = free.name
            if name in self.usable.requested:
                found[name] = self._requested(name)
                continue
            profile = self.inputs.supply[name][1]
            known = profile.labels if profile.node else claims.get(name, {})
            options = {} if profile.node else {key: self._values(profile, key, ()) for key in self._keys}
            found[name] = {**_only(options, name), **{key: known[key] for key in self._keys if key in known}}
        return found

    def _requested(self, name: str) -> Mapping[str, str]:
        node = self.usable.requested[name]
        types = {f"{node.node_pool}/{each}" for each in node.instance_types}
        shapes = [each for each in (*self.inputs.shapes, *self.inputs.unready) if each.name in types]
        of_shapes = {
            key: [values for shape in shapes if (values := self._values(shape, key, node.requires)) is not None]
            for key in self._keys
        }
        alike = {
            key: several[0] if len(set(several)) == 1 else (UNKNOWN, UNKNOWN)
            for key, several in of_shapes.items()
            if several
        }
        return _only(alike, name)

    @cached_property
    def _shapes(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        return {name: self._shape(offer) for name, offer in self.usable.offers.items()}

    def _shape(self, offer: ShapeOffer) -> Mapping[str, tuple[str, ...]]:
        found = ((key, self._values(offer.shape, key, offer.together)) for key in sorted(self._keys))
        return {key: values for key, values in found if values is not None}

    def _values(self, profile: NodeProfile, key: str, required: Terms) -> tuple[str, ...] | None:
        """The domains that such a node may have under these conditions; none: one of its own; None: it has none."""
        if key == HOSTNAME:
            return ()
        if key in profile.labels:
            return (profile.labels[key],)
        given = profile.given(key)
        named = {value for each in given if each.operator == "In" for value in each.values}
        if not named and not key.startswith(CHOSEN_BY_PROVIDER):
            return None
        nodes = index_of(self.inputs.cluster.snapshot.nodes).with_label(NODEPOOL, profile.node_pool)
        named = named or {node.labels[key] for node in nodes if key in node.labels}
        allowed = {
            value
            for value in named
            if all(each.allows(value) for each in given)
            and any(all(each.allows(value) for each in term if each.key == key) for term in required or ((),))
        }
        return tuple(sorted(allowed)) or (UNKNOWN,)

    @cached_property
    def _domains(self) -> Mapping[tuple[SpreadNodes, str], frozenset[str]]:
        """The domains over which pods are spread: those of the nodes that exist and of those that were requested."""
        of_spread = {(group.on, key) for group, keys in self._ruling.items() if group.on for key in keys}
        return {(counted, key): self._domains_of(counted, key) for counted, key in of_spread}

    def _domains_of(self, counted: SpreadNodes, key: str) -> frozenset[str]:
        nodes = (node.labels[key] for node in self.inputs.cluster.snapshot.nodes if counted.has(node))
        coming = (
            domains[key] for name, domains in self._nodes.items() if name in self.usable.requested and domains.get(key)
        )
        return frozenset((*nodes, *coming))


def _with_groups(pod: Pod | Neighbour) -> Iterator[tuple[PodRule, _Group]]:
    """The rules of a pod with the groups that they are about. As in the scheduler, a pod has affinity to those pods
    that all its affinity terms select."""
    selectors = [rule.pods.of(pod.namespace, pod.labels) for rule in pod.rules]
    with_selectors = list(zip(pod.rules, selectors, strict=True))
    near = {selector for rule, selector in with_selectors if rule.relation is Relation.TOGETHER}
    in_order = tuple(sorted(near, key=repr))
    for rule, selector in with_selectors:
        together = rule.relation is Relation.TOGETHER
        selected = in_order if together else (selector,)
        if rule.relation is Relation.SPREAD and isinstance(pod, Pod):
            yield rule, _Group(selected, deleting=False, on=SpreadNodes.of(pod, rule))
        else:
            yield rule, _Group(selected)


def _only(options: Mapping[str, tuple[str, ...] | None], name: str) -> dict[str, str]:
    """The domains of one node, by what they can be."""
    found = ((key, values) for key, values in options.items() if values is not None)
    return {key: (values[0] if len(values) == 1 else UNKNOWN) if values else name for key, values in found}
