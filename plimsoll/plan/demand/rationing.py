"""Share limits: which pods go first if limits leave room for some of the pods only."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import FilledNode, Filling, FreeNode, PodNeed, place, takes
from plimsoll.plan.classes import Gang
from plimsoll.plan.demand.packer import as_node_shape
from plimsoll.plan.pools import Excess, PoolLimits, PoolShape

Rank = Callable[[str], tuple[int, str, str]]
"""Of a pod by UID; the least goes first."""


@dataclass(frozen=True)
class Rationed:
    """A class of pods that competes for the limits."""

    needs: Mapping[str, PodNeed]
    """By UID."""
    shapes: Sequence[PoolShape]
    free: Sequence[FreeNode]
    """What it has of existing nodes, and what was promised to it."""


class LeftOut(NamedTuple):
    """Why a pod has no place."""

    why: str
    nameless: str
    """The same without names of others."""


def ration(
    classes: Sequence[Rationed], limits: PoolLimits, rank: Rank, gangs: Sequence[Gang] = ()
) -> Mapping[str, LeftOut]:
    """The pods that there is no room for under the limits, by UID.

    Pods take room one after the other, the first by `rank` first. One that finds none leaves what there is to those
    that come later and need less. Gangs go as a whole or not at all. Pods that no limit keeps out are not told.
    """
    given_up: dict[str, LeftOut] = {}
    while True:
        over = _Ration(classes, limits.copy()).over(rank, given_up)
        out = {uid: LeftOut(str(excess), str(excess)) for uid, excess in over.items()} | given_up
        broken = [gang for gang in gangs if over.keys() & set(gang.pods) and _lacking(gang, out)]
        if not broken:
            return out
        broken.sort(key=lambda gang: min(map(rank, gang.pods)))
        for gang in broken[len(broken) // 2 :]:
            said = f"starts as a whole, and {_lacking(gang, out)} more of its pods need a place"
            excess = next(over[uid] for uid in gang.pods if uid in over)
            left = LeftOut(f"{gang.name} {said}: {excess}", f"a gang {said}: {excess}")
            given_up |= dict.fromkeys(gang.pods, left)


def _lacking(gang: Gang, out: Mapping[str, LeftOut]) -> int:
    return gang.lacking(lambda uid: uid not in out)


def as_free(filled: FilledNode, needs: Mapping[str, PodNeed]) -> FreeNode:
    """The part of an existing node that these pods were given."""
    gpus = tuple(sum(needs[name].milli[filled.kind] for name in held) for held in filled.gpus)
    pods = [needs[name] for name in filled.pods]
    cpu_milli, memory_mib = sum(need.cpu_milli for need in pods), sum(need.memory_mib for need in pods)
    return FreeNode(filled.node or "", filled.kind, gpus, cpu_milli, memory_mib, len(pods))


class _Ration:
    def __init__(self, classes: Sequence[Rationed], limits: PoolLimits) -> None:
        self._limits = limits
        self._class_of = {uid: each for each in classes for uid in each.needs}
        self._fillings = {id(each): Filling(each.free) for each in classes}
        self._opened = 0

    def over(self, rank: Rank, without: Container[str]) -> dict[str, Excess]:
        """UID to the limit that keeps the pod out."""
        found: dict[str, Excess] = {}
        full: dict[tuple[object, ...], Excess] = {}
        """By what was asked for: room only ever gets less."""
        for uid in sorted((uid for uid in self._class_of if uid not in without), key=rank):
            each = self._class_of[uid]
            need = each.needs[uid]
            sizes = (id(each), need.devices, need.cpu_milli, need.memory_mib, *sorted(need.milli.items()))
            excess = full.get(sizes) or self._place(each, need)
            if excess is not None:
                found[uid] = full[sizes] = excess
        return found

    def _place(self, each: Rationed, need: PodNeed) -> Excess | None:
        """Places the pod, on a new node where it must be; the limit that keeps it out, None where none does."""
        filling = self._fillings[id(each)]
        if place(filling, need):
            return None
        able = [shape for shape in each.shapes if shape.kind in need.milli and takes(as_node_shape(shape), need)]
        excesses = {shape.name: self._limits.excess(shape) for shape in able}
        allowed = [shape for shape in able if excesses[shape.name] is None]
        if not allowed:
            return next(iter(excesses.values()), None)
        shape = min(allowed, key=self._order)
        self._limits.give(shape, -1)
        self._opened += 1
        name = f"\x7f{self._opened:08}"
        gpus = (GPU_MILLI,) * shape.gpus
        filling.add([FreeNode(name, shape.kind, gpus, shape.cpu_milli, shape.memory_mib, shape.pods)])
        place(filling, need)
        return None

    def _order(self, shape: PoolShape) -> tuple[float, float, float, str]:
        """As new nodes are chosen: the greatest weight, what uses up the limits the least, the lowest price."""
        price = shape.price / shape.gpus if shape.price is not None else float("inf")
        return -shape.weight, self._limits.use(shape) / shape.gpus, price, shape.name
