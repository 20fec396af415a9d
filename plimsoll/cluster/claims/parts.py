"""Parts of devices that several claims share (`allowMultipleAllocations`), as the scheduler counts them.

A claim takes some of each capacity of such a device. Plans count that as one part of the device, as large as that of
the capacity of which the claim takes the most. That is exact for claims that take most of the same capacity. For
others, such as of much memory beside much of the cores, it is never too little.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from plimsoll.model.dra import Claimable, RequestPolicy, qualified
from plimsoll.packing import GPU_MILLI, Milli, exact_milli
from plimsoll.quantity import parse_quantity


class Part(NamedTuple):
    """What a request takes of each of its devices."""

    milli: Milli = 0
    """Thousandths; 0: none can be had."""
    why: str = ""
    """Why none can be had."""
    not_planned: str = ""
    """What is not planned, so that it is not known how much that is."""


@lru_cache(maxsize=65_536)
def part_of(device: Claimable, asked: tuple[tuple[str, str], ...]) -> Part:
    """What a request for these amounts, by the name of the capacity, takes of a device."""
    amounts, policies = dict(device.capacity), dict(device.policies)
    wanted = {qualified(name, device.driver): (name, amount) for name, amount in asked}
    for known, (name, amount) in wanted.items():
        if known not in amounts:
            return Part(why=f"capacity {name} of {amount}")
    most = Fraction(0)
    for name, total in amounts.items():
        short, amount = wanted.get(name, (name, ""))
        try:
            taken = _taken(amount, total, policies.get(name))
        except _FractionalError:
            return Part(not_planned=f"a fraction of capacity {short}")
        if taken is None or taken > parse_quantity(total):
            return Part(why=f"capacity {short} of {amount or taken}")
        most = max(most, _ratio(taken, parse_quantity(total)))
    return Part(exact_milli(most)) if most else Part(not_planned="devices of which a claim takes nothing")


def free_part(device: Claimable, consumed: Iterable[Mapping[str, str]]) -> Milli:
    """Thousandths of a device that are left of each capacity, beside what claims have."""
    left, claims = Fraction(1), list(consumed)
    for name, total in device.capacity:
        used = sum((parse_quantity(each[name]) for each in claims if name in each), Decimal(0))
        left = min(left, 1 - _ratio(used, parse_quantity(total)))
    return exact_milli(max(Fraction(0), left))


def held_part(device: Claimable, consumed: Mapping[str, str]) -> Milli:
    """Thousandths of a device that a claim has, of the capacity of which that is the most."""
    totals = dict(device.capacity)
    parts = (
        _ratio(parse_quantity(amount), parse_quantity(totals[name]))
        for name, amount in consumed.items()
        if name in totals
    )
    return exact_milli(min(Fraction(1), max(parts, default=Fraction(0))))


class _FractionalError(Exception):
    """Steps between amounts that are not whole, which releases of Kubernetes round in different ways."""


def _taken(asked: str, total: str, policy: RequestPolicy | None) -> Decimal | None:
    """What a claim takes that asks for an amount, or, if that is empty, for none; None if no claim may take as much.

    As calculateConsumedCapacity and violatesPolicy of the scheduler.
    """
    if not asked:
        return _default(total, policy)
    amount = parse_quantity(asked)
    if policy is None:
        return amount
    if policy.valid_values:
        return next((value for value in map(parse_quantity, policy.valid_values) if value >= amount), None)
    if policy.valid_range is None:
        return amount
    return _in_range(amount, policy)


def _in_range(amount: Decimal, policy: RequestPolicy) -> Decimal | None:
    found = policy.valid_range
    assert found is not None
    least, most = parse_quantity(found.min), parse_quantity(found.max) if found.max is not None else None
    if amount <= least:
        amount = least
    elif found.step is not None:
        step = parse_quantity(found.step)
        if step <= 0 or any(each != each.to_integral_value() for each in (amount, least, step)):
            raise _FractionalError
        amount = least - (int(least - amount) // int(step)) * step
    return amount if most is None or amount <= most or amount == _of(policy.default) else None


def _of(amount: str | None) -> Decimal | None:
    return None if amount is None else parse_quantity(amount)


def _default(total: str, policy: RequestPolicy | None) -> Decimal:
    return parse_quantity(total if policy is None or policy.default is None else policy.default)


def _ratio(amount: Decimal, total: Decimal) -> Fraction:
    """0 of nothing is nothing."""
    if not total:
        return Fraction(int(amount > 0))
    return Fraction(amount) / Fraction(total)


def whole_by_default(device: Claimable) -> bool:
    """Whether a claim that asks for no amount gets all of the device."""
    return not device.shared or part_of(device, ()).milli == GPU_MILLI
