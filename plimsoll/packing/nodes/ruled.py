"""Places pods with rules about other pods: one after the other, as a scheduler does, before all pods without rules.

Pods that must be together are placed from each of a few first nodes, and the best of these placings counts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from plimsoll.packing.nodes.need import HOST, FilledNode, FreeNode, Limit, NodePacking, NodeShape, PodNeed
from plimsoll.packing.nodes.rates import rated
from plimsoll.packing.nodes.rules import UNKNOWN, Domains, Rules
from plimsoll.packing.relation import Relation
from plimsoll.packing.units import GPU_MILLI, Milli, less

_FIRST_NODES: Final = 32
"""Maximum number of existing nodes, and of new ones, that are tried for the first of pods that must be together."""
_NEW_TIER: Final = 8
"""Tier of new nodes for the pods without rules: after all others."""


@dataclass(frozen=True, slots=True)
class _Host:
    """A node, with what is left of it."""

    free: FreeNode
    domains: Mapping[str, str]
    held: tuple[tuple[str, ...], ...]
    """Names of the pods on each device."""
    shape: NodeShape | None = None
    """Of a new node."""

    def fits(self, need: PodNeed) -> bool:
        free, size = self.free, need.milli.get(self.free.kind)
        if size is None or free.pods < 1 or any(getattr(free, name) < getattr(need, name) for name in HOST):
            return False
        if need.scheduler and free.scheduler not in ("", need.scheduler):
            return False
        devices = self._devices(need, size)
        return len(devices) == need.devices and free.pods >= 1 + self._reservations(devices, size)

    def _devices(self, need: PodNeed, size: Milli) -> list[int]:
        """The devices for the pod, those with the least left first; where pods are spread, those with the most."""
        able, sign = (at for at, left in enumerate(self.free.devices) if left >= size), -1 if self.free.spread else 1
        return sorted(able, key=lambda at: (sign * self.free.devices[at], at))[: need.devices]

    def _reservations(self, devices: Iterable[int], size: Milli) -> int:
        return sum(self.free.devices[at] == GPU_MILLI for at in devices) if size < GPU_MILLI else 0

    def with_pod(self, need: PodNeed) -> "_Host":
        free, size = self.free, need.milli[self.free.kind]
        devices = self._devices(need, size)
        left = replace(
            free,
            devices=tuple(each - size if at in devices else each for at, each in enumerate(free.devices)),
            cpu_milli=less(free.cpu_milli, need.cpu_milli),
            memory_mib=less(free.memory_mib, need.memory_mib),
            storage_mib=less(free.storage_mib, need.storage_mib),
            pods=less(free.pods, 1 + self._reservations(devices, size)),
            scheduler=free.scheduler or need.scheduler,
        )
        held = tuple((*each, need.name) if at in devices else each for at, each in enumerate(self.held))
        return replace(self, free=left, held=held)

    @property
    def order(self) -> tuple[object, ...]:
        """Best fit: the lowest tier first, then the least left; where pods are spread, the largest part. Nodes of
        unknown domains are for pods that may be anywhere, so these leave the others free."""
        free, unknown = self.free, sum(domain == UNKNOWN for domain in self.domains.values())
        left = sum(free.devices)
        if free.spread:
            return free.tier, -unknown, True, -left / len(free.devices), free.name
        return free.tier, -unknown, False, left, free.cpu_milli, free.memory_mib, free.name

    @property
    def filled(self) -> FilledNode:
        if self.shape is None:
            return FilledNode(self.held, self.free.kind, node=self.free.name)
        used = sorted((each for each in self.held if each), key=lambda each: (-len(each), each))
        padded = (*used, *((),) * (len(self.held) - len(used)))
        return FilledNode(padded, self.free.kind, shape=self.shape.name, domains=tuple(sorted(self.domains.items())))


@dataclass
class _Placing:
    """Hosts by name, with the pods that were placed."""

    hosts: dict[str, _Host]
    domains: Domains
    opened: Counter[str] = field(default_factory=Counter)
    """New nodes by the name of their shape."""
    cost: tuple[int, int, float, int] = (0, 0, 0.0, 0)
    """As of a placing: (pods without a place, GPUs, price, number of new nodes)."""
    unplaced: list[str] = field(default_factory=list)

    def copy(self) -> "_Placing":
        return _Placing(dict(self.hosts), self.domains.copy(), Counter(self.opened), self.cost, list(self.unplaced))


class RuledPlacing:
    """Where the pods with rules are. What they leave free is `free`, which includes the new nodes for them."""

    def __init__(
        self,
        needs: Iterable[PodNeed],
        shapes: Sequence[NodeShape],
        nodes: Iterable[FreeNode],
        limits: Sequence[Limit],
        rules: Rules,
    ) -> None:
        self._shapes = sorted(
            rated([each for each in shapes if each.gpus > 0]),
            key=lambda each: (each.gpus, each.price or 0.0, each.name),
        )
        self._limits, self._rules = limits, rules
        pods = tuple(needs)
        different = {(*sorted(need.milli.items()), *_amounts(need)): need for need in pods}.values()
        hosts = [_Host(node, rules.nodes.get(node.name, {}), ((),) * len(node.devices)) for node in nodes]
        able = {host.free.name: host for host in hosts if any(map(host.fits, different))}
        self._others = [host.free for host in hosts if host.free.name not in able]
        """Nodes that none of the pods fits."""
        placing = _Placing(able, Domains(rules))
        for unit in self._units(pods):
            placing = self._best(placing, unit)
        self._placing = placing

    @property
    def unplaced(self) -> tuple[str, ...]:
        return tuple(self._placing.unplaced)

    @property
    def free(self) -> list[FreeNode]:
        """What is left of all nodes, for pods without rules."""
        return [*self._others, *(host.free for host in self._placing.hosts.values())]

    @property
    def limits(self) -> list[Limit]:
        """What is left of the limits."""
        return [replace(each, left=each.left - self._use(each)) for each in self._limits]

    def joined(self, others: NodePacking) -> NodePacking:
        """With the pods without rules, which were packed onto `free`."""
        hosts, filled = dict(self._placing.hosts), list[FilledNode]()
        for node in others.nodes:
            if node.node in hosts:
                host = hosts[node.node]
                held = tuple((*a, *b) for a, b in zip(host.held, node.devices, strict=True))
                hosts[node.node] = replace(host, held=held)
            else:
                filled.append(node)
        filled += [host.filled for host in hosts.values() if any(host.held)]
        order = sorted(filled, key=lambda each: (each.node is None, each.node or each.shape or "", each.devices))
        return NodePacking(
            tuple(order),
            tuple(sorted((*others.unplaced, *self.unplaced))),
            gpus=others.gpus + self._placing.cost[1],
        )

    def _units(self, needs: Iterable[PodNeed]) -> Iterator[list[PodNeed]]:
        """Pods that must be together with each other, those without such rules first, and the largest first."""
        by_name = {need.name: need for need in sorted(needs, key=_large_first)}
        unit_of: dict[str, list[str]] = {name: [name] for name in by_name}
        members: defaultdict[object, list[str]] = defaultdict(list)
        for name in by_name:
            for group in self._rules.groups.get(name, ()):
                members[group].append(name)
        for name in by_name:
            for rule in self._rules.of.get(name, ()):
                if rule.relation is Relation.TOGETHER:
                    for other in members[rule.group]:
                        if unit_of[other] is not unit_of[name]:
                            joined = unit_of[name] + unit_of[other]
                            unit_of |= dict.fromkeys(joined, joined)
        units = list({id(names): names for names in unit_of.values()}.values())
        for names in sorted(units, key=lambda names: (len(names) > 1, _large_first(by_name[min(names)]))):
            yield [
                by_name[name]
                for name in sorted(names, key=lambda name: (self._follows(name), _large_first(by_name[name])))
            ]

    def _follows(self, name: str) -> bool:
        return any(rule.relation is Relation.TOGETHER for rule in self._rules.of.get(name, ()))

    def _best(self, placing: _Placing, unit: Sequence[PodNeed]) -> _Placing:
        if len(unit) == 1:
            return self._placed(placing, unit, next(self._options(placing, unit[0]), None))
        best: _Placing | None = None
        options = list(self._options(placing, unit[0]))
        existing = [each for each in options if each.shape is None or each.free.name in placing.hosts]
        new = [each for each in options if each.free.name not in placing.hosts]
        for option in (*existing[:_FIRST_NODES], *new[:_FIRST_NODES], None):
            found = self._placed(placing.copy(), unit, option)
            if best is None or found.cost < best.cost:
                best = found
            if best.cost[:2] == placing.cost[:2]:
                break
        assert best is not None, "None is an option"
        return best

    def _placed(self, placing: _Placing, unit: Sequence[PodNeed], first: _Host | None) -> _Placing:
        """With the pods of the unit, the first on this node."""
        for number, need in enumerate(unit):
            host = first if number == 0 else next(self._options(placing, need), None)
            without, gpus, price, nodes = placing.cost
            if host is None:
                placing.unplaced.append(need.name)
                placing.cost = without + 1, gpus, price, nodes
                continue
            if host.shape is not None and host.free.name not in placing.hosts:
                placing.opened[host.shape.name] += 1
                placing.cost = without, gpus + host.shape.gpus, round(price + (host.shape.price or 0.0), 9), nodes + 1
            placing.hosts[host.free.name] = host.with_pod(need)
            node = host.free.name if host.shape is None else host.shape.name
            placing.domains.put(need.name, host.domains, node, new=host.shape is not None)
        return placing

    def _options(self, placing: _Placing, need: PodNeed) -> Iterator[_Host]:
        """The nodes where the pod may be, best first."""
        fitting = [host for host in placing.hosts.values() if host.fits(need)]
        for host in sorted(fitting, key=lambda host: host.order):
            yield from self._with_domains(placing, need, host)
        for shape in self._shapes:
            if all(self._use(each, placing) + each.uses.get(shape.name, 0) <= each.left for each in self._limits):
                name = f"new {len(placing.hosts)}"
                yield from (host for host in self._new(placing, need, shape, name) if host.fits(need))

    def _with_domains(self, placing: _Placing, need: PodNeed, host: _Host) -> Iterator[_Host]:
        """The node if the pod may be there. Where the domains of a new node are not chosen yet, one for each choice."""
        if host.shape is None:
            if placing.domains.allows(need.name, host.domains):
                yield host
            return
        options = self._rules.shapes.get(host.shape.name, {})
        fixed = {key: (host.domains[key],) if key in host.domains else domains for key, domains in options.items()}
        for domains in placing.domains.open_to(need.name, fixed, host.free.name):
            yield replace(host, domains={**host.domains, **domains})

    def _new(self, placing: _Placing, need: PodNeed, shape: NodeShape, name: str) -> Iterator[_Host]:
        devices: tuple[Milli, ...] = (GPU_MILLI,) * shape.devices
        host = {name: getattr(shape, name) for name in (*HOST, "pods")}
        free = FreeNode(name, shape.kind, devices, **host, tier=_NEW_TIER, spread=shape.spread)
        if shape.kind in need.milli:
            yield from self._with_domains(placing, need, _Host(free, {}, ((),) * shape.devices, shape))

    def _use(self, limit: Limit, placing: _Placing | None = None) -> int:
        opened = (placing or self._placing).opened
        return sum(limit.uses.get(name, 0) * count for name, count in opened.items())


def _amounts(need: PodNeed) -> tuple[object, ...]:
    return need.devices, need.cpu_milli, need.memory_mib, need.storage_mib, need.scheduler


def _large_first(need: PodNeed) -> tuple[object, ...]:
    return -need.devices, -min(need.milli.values()), -need.cpu_milli, -need.memory_mib, need.name
