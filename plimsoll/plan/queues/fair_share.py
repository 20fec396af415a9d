"""Fair share: how KAI divides GPUs, CPU and memory over the tree of queues.

As its documentation says: at each level every queue gets its quota first, as far as work asks for it; what is left goes
by priority, and within one priority by over-quota weight, up to each one's requests and limit. The shares of a level
are divided over the next one. Where quotas promise more than there is, KAI keeps them all, so that the shares of a
level add up to more than there is.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Final

from plimsoll.plan.queues.tree import MILLI, QueueTree, Resource

UNIT: Final = MILLI
"""What weights divide is given out in whole GPUs, millicores and MB; amounts are thousandths of them."""

Amount = Mapping[Resource, int]
"""Thousandths of a GPU, of a millicore and of a MB."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one queue may have of one resource at its level; amounts in thousandths."""

    name: str
    guaranteed: int
    """Its quota, as far as its requests and its limit go."""
    wanted: int
    """Its requests, as far as its limit goes; at least `guaranteed`."""
    weight: float = 1
    """Over the quota; 0 gets nothing there."""
    priority: int = 100
    created: str = ""
    """The older one gets the unit that cannot be divided."""


def fair_shares(tree: QueueTree, total: Amount, requested: Mapping[str, Amount]) -> dict[str, dict[Resource, int]]:
    """The fair share of every queue that reaches a root.

    `requested` is what the pods of each queue that pods name ask, bound or not; what they ask counts for all its
    ancestors.
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
    """One resource over the queues of one level, in thousandths. In which order the claims come makes no difference."""
    shares = {claim.name: claim.guaranteed for claim in claims}
    left = max(0, total - sum(shares.values()))
    for _, tier in groupby(sorted(claims, key=_by_priority), key=lambda claim: claim.priority):
        left = _divide_tier(left, list(tier), shares)
    return shares


def _divide_tier(left: int, tier: Iterable[Claim], shares: dict[str, int]) -> int:
    """Adds to the shares of one priority by weight; what is left over."""
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
        # Less than a unit for each is left; whole units go where the most was cut off.
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
