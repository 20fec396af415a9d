"""What pods need of a node besides GPUs, and what nodes have: CPU, memory, and disk."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from plimsoll.cluster.profiles import HOST
from plimsoll.model.meta import EPHEMERAL_STORAGE

Allocatable = Mapping[str, str | int | float]
Amounts = Mapping[str, int]
"""By resource: thousandths of a CPU, MiB of memory, MiB of ephemeral storage."""
CPU: Final = "cpu"
MEMORY: Final = "memory"
DISK: Final = EPHEMERAL_STORAGE


def amounts_of(allocatable: Allocatable) -> dict[str, int]:
    """The amounts that can be read; without those of 0, which a kubelet reports until it has measured."""
    found = {}
    for resource in (CPU, MEMORY, DISK):
        with suppress(ValueError):
            found[resource] = HOST[resource](allocatable.get(resource, 0))
    return {resource: amount for resource, amount in found.items() if amount > 0}


def most_of(stated: Sequence[Allocatable]) -> dict[str, int]:
    """The most of each resource that one of them has; most of many nodes state what others do."""
    most: dict[str, int] = {}
    for resource in (CPU, MEMORY, DISK):
        different = {each.get(resource, 0) for each in stated}
        found = [amount for each in different if (amount := amounts_of({resource: each}).get(resource))]
        most |= {resource: max(found)} if found else {}
    return most


def lacking(needed: Amounts, has: Amounts) -> str:
    """The first resource of which a node has less than needed; empty where it has enough, as far as is known."""
    return next((each for each, amount in needed.items() if each in has and has[each] < amount), "")


def said(resource: str, amount: int) -> str:
    """The amount for messages, such as `23.5 CPUs`."""
    if resource == CPU:
        return f"{amount / 1000:g} {'CPU' if amount == 1000 else 'CPUs'}"
    return f"{amount / 1024:.2f} GiB of {resource}"


def short_of_host(needed: Amounts, has: Amounts) -> str:
    """What the node lacks for one pod; empty where it lacks nothing, as far as is known."""
    resource = lacking(needed, has)
    if not resource:
        return ""
    return f"too little {resource}: {said(resource, has[resource])}, {said(resource, needed[resource])} needed"
