"""Fair share: how KAI divides GPUs, CPU and memory over the tree of queues (`resource_division` of KAI 0.17).

At each level, every queue first gets its quota, as far as its work requests it. The rest is divided by priority, and
within one priority by over-quota weight: a queue gets what it requests, or the whole units of its part. What is lost by
rounding is passed down to the lower priorities; what is left then is given out by one unit each, from the highest
priority down, to the queues that lost most. The shares of a level are divided over the next level. If quotas exceed the
total, KAI keeps all of them, so the shares of a level can add up to more than there is.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Annotated, Final

from pydantic import Field

from plimsoll.cluster.queues.amount import MILLI, NOTHING, Amount, Resource
from plimsoll.cluster.queues.tree import QueueTree
from plimsoll.packing import Milli

UNIT: Final = {Resource.GPU: MILLI, Resource.CPU: MILLI, Resource.MEMORY: 1}
"""Weighted amounts are whole GPUs and millicores; KAI's unit of memory is the byte."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one queue may have of one resource, among the queues of its level; amounts in thousandths."""

    name: str
    guaranteed: Milli
    """Its quota, up to its requests and its limit."""
    wanted: Milli
    """Its requests, up to its limit; at least `guaranteed`."""
    weight: float = 1
    """Over-quota weight; with 0 it gets nothing over its quota."""
    priority: int = 100
    created: str = ""
    """Creation time; the older queue gets an indivisible unit."""
    usage: float = 0
    """What it used of the cluster in the past, from 0 to 1."""


UsageByQueue = dict[str, dict[Resource, Annotated[float, Field(ge=0, le=1)]]]
"""Part of the cluster that each queue used, by resource."""


@dataclass(frozen=True, slots=True)
class PastUsage:
    """Time-based fair share: queues that used more in the past get less over their quota."""

    k_value: float = 0
    """`spec.kValue` of KAI's SchedulingShard; 0: past usage does not count."""
    by_queue: UsageByQueue | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        if not self.k_value or self.by_queue is not None:
            return ()
        return (
            f"the past usage of queues is absent: with kValue {self.k_value:g} every queue counts as having used 0",
        )

    def of(self, queue: str, resource: Resource) -> float:
        return (self.by_queue or {}).get(queue, {}).get(resource, 0)


NO_USAGE: Final = PastUsage()


def fair_shares(
    tree: QueueTree, totals: Mapping[str, Amount], requested: Mapping[str, Amount], past: PastUsage = NO_USAGE
) -> dict[str, Amount]:
    """The fair share of every queue that reaches a root, of what its shard has: `totals` are by shard.

    `requested` is what the pods of each queue request, bound or not; it counts for all ancestors of the queue.
    """
    requests = tree.with_descendants(requested)
    shares: dict[str, Amount] = {}
    levels = [(totals.get(shard, NOTHING), roots) for shard, roots in tree.shards.items()]
    while levels:
        amount, names = levels.pop()
        parts = {
            resource: divide(
                amount[resource],
                [_claim(tree, name, resource, (amount, requests[name]), past) for name in names],
                UNIT[resource],
                past.k_value,
            )
            for resource in Resource
        }
        shares |= {name: Amount(*(parts[resource][name] for resource in Resource)) for name in names}
        levels += [(shares[name], tree.children[name]) for name in names if name in tree.children]
    return shares


def divide(total: Milli, claims: Collection[Claim], unit: int = MILLI, k_value: float = 0) -> dict[str, Milli]:
    """Divides one resource over the queues of one level, in thousandths. The order of the claims does not matter."""
    shares = {claim.name: claim.guaranteed for claim in claims}
    left = max(0, total - sum(shares.values()))
    lost: list[list[tuple[Fraction, Claim]]] = []
    for _, tier in groupby(sorted(claims, key=lambda claim: -claim.priority), key=lambda claim: claim.priority):
        left, rounded = _divide_tier(left, list(tier), shares, unit, Fraction(k_value))
        lost.append(rounded)
    for rounded in lost:
        for _, claim in sorted(rounded, key=lambda each: (-each[0], each[1].created, each[1].name)):
            given = min(unit, left)
            shares[claim.name] += given
            left -= given
    return shares


def _divide_tier(
    left: Milli, tier: Collection[Claim], shares: dict[str, Milli], unit: int, k_value: Fraction
) -> tuple[Milli, list[tuple[Fraction, Claim]]]:
    """Adds to the shares of one priority by weight; returns the rest, and what each queue lost by rounding."""
    lost: dict[str, tuple[Fraction, Claim]] = {}
    again = True
    while again and left > 0:
        weights = _weights([claim for claim in tier if claim.wanted > shares[claim.name]], k_value)
        whole, again = sum(weights.values()), False
        if not whole:
            break
        to_divide = left
        for claim in tier:
            if not claim.weight or claim.name not in weights:
                continue
            part, wanted = to_divide * weights[claim.name] / whole, claim.wanted - shares[claim.name]
            if wanted <= part:
                given: Milli = wanted
                lost.pop(claim.name, None)
                again = again or wanted < part
            else:
                given = int(part // unit) * unit
                if part > given:
                    lost[claim.name] = (part - given, claim)
            shares[claim.name] += given
            left -= given
    return left, list(lost.values())


def _weights(claims: Collection[Claim], k_value: Fraction) -> dict[str, Fraction]:
    """Over-quota weights of queues that want more, as parts of 1, shifted by past usage."""
    total = sum((Fraction(claim.weight) for claim in claims), Fraction(0))
    if not total:
        return {}
    parts = {claim.name: (Fraction(claim.weight) / total, Fraction(claim.usage)) for claim in claims}
    return {name: max(Fraction(0), part + k_value * (part - usage)) for name, (part, usage) in parts.items()}


def _claim(
    tree: QueueTree, name: str, resource: Resource, total_and_requested: tuple[Amount, Amount], past: PastUsage
) -> Claim:
    amounts = tree.amounts(name, resource)
    total, requested = (each[resource] for each in total_and_requested)
    wanted = requested if amounts.limit is None else min(requested, amounts.limit)
    return Claim(
        name=name,
        guaranteed=min(total if amounts.quota is None else amounts.quota, wanted),
        wanted=wanted,
        weight=amounts.weight,
        priority=tree.priority(name),
        created=tree.queue(name).creation_timestamp,
        usage=past.of(name, resource),
    )
