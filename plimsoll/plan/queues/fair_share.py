"""Fair share: how KAI divides GPUs, CPU and memory over the tree of queues.

As documented by KAI: at each level, every queue first gets its quota, as far as its work requests it. The rest is
divided by priority, and within one priority by over-quota weight, up to each queue's requests and limit. The shares of
a level are divided over the next level. If quotas exceed the total, KAI keeps all of them, so the shares of a level can
add up to more than there is.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Final

from plimsoll.plan.queues.tree import MILLI, QueueTree, Resource

UNIT: Final = MILLI
"""Weighted amounts are whole GPUs, millicores and MB; amounts are in thousandths of them."""

Amount = Mapping[Resource, int]
"""In thousandths of a GPU, of a millicore and of a MB."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one queue may have of one resource, among the queues of its level; amounts in thousandths."""

    name: str
    guaranteed: int
    """Its quota, up to its requests and its limit."""
    wanted: int
    """Its requests, up to its limit; at least `guaranteed`."""
    weight: float = 1
    """Over-quota weight; with 0 it gets nothing over its quota."""
    priority: int = 100
    created: str = ""
    """Creation time; the older queue gets an indivisible unit."""


def fair_shares(tree: QueueTree, total: Amount, requested: Mapping[str, Amount]) -> dict[str, dict[Resource, int]]:
    """The fair share of every queue that reaches a root.

    `requested` is what the pods of each queue request, bound or not; it counts for all ancestors of the queue.
    """
    requests: dict[str, dict[Resource, int]] = {name: dict.fromkeys(Resource, 0) for name in tree}
    for name, amount in requested.items():
        for above in tree.lineage(name):
            for resource in Resource:
                requests[above][resource] += amount.get(resource, 0)
    shares: dict[str, dict[Resource, int]] = {}
    levels: list[tuple[Amount, tuple[str, ...]]] = [(total, tree.roots)]
    while levels:
        amount, names = levels.pop()
        for name in names:
            shares[name] = {}
        for resource in Resource:
            claims = [_claim(tree, name, resource, amount[resource], requests[name][resource]) for name in names]
            for name, share in divide(amount[resource], claims).items():
                shares[name][resource] = share
        levels += [(shares[name], tree.children[name]) for name in names if name in tree.children]
    return shares


def divide(total: int, claims: Collection[Claim]) -> dict[str, int]:
    """Divides one resource over the queues of one level, in thousandths. The order of the claims does not matter."""
    shares = {claim.name: claim.guaranteed for claim in claims}
    left = max(0, total - sum(shares.values()))
    for _, tier in groupby(sorted(claims, key=_by_priority), key=lambda claim: claim.priority):
        left = _divide_tier(left, list(tier), shares)
    return shares


def _divide_tier(left: int, tier: Iterable[Claim], shares: dict[str, int]) -> int:
    """Adds to the shares of one priority by weight; returns the rest."""
    open_claims = [claim for claim in tier if claim.weight > 0 and claim.wanted > shares[claim.name]]
    while left > 0 and open_claims:
        weights = sum(Fraction(claim.weight) for claim in open_claims)
        parts = {claim.name: left * Fraction(claim.weight) / weights for claim in open_claims}
        satisfied = [claim for claim in open_claims if claim.wanted - shares[claim.name] <= parts[claim.name]]
        if satisfied:
            for claim in satisfied:
                left -= claim.wanted - shares[claim.name]
                shares[claim.name] = claim.wanted
            open_claims = [claim for claim in open_claims if claim not in satisfied]
            continue
        for claim in open_claims:
            whole = int(parts[claim.name] // UNIT) * UNIT
            shares[claim.name] += whole
            left -= whole
        # Less than a unit for each is left: whole units go to the queues with the largest remainder.
        for claim in sorted(open_claims, key=lambda claim: (-(parts[claim.name] % UNIT), claim.created, claim.name)):
            given = min(UNIT, left, claim.wanted - shares[claim.name])
            shares[claim.name] += given
            left -= given
        open_claims = [claim for claim in open_claims if claim.wanted > shares[claim.name]]
    return left


def _claim(tree: QueueTree, name: str, resource: Resource, total: int, requests: int) -> Claim:
    amounts = tree.amounts(name, resource)
    wanted = requests if amounts.limit is None else min(requests, amounts.limit)
    return Claim(
        name=name,
        guaranteed=min(wanted, total if amounts.quota is None else amounts.quota),
        wanted=wanted,
        weight=amounts.weight,
        priority=tree.priority(name),
        created=tree.queue(name).creation_timestamp,
    )


def _by_priority(claim: Claim) -> tuple[int, str]:
    return (-claim.priority, claim.name)
