"""What conditions on labels leave open: whether one node can meet several of them, and which values are left."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, product
from operator import attrgetter
from typing import Final

from plimsoll.model.meta import NodeRequirement, Terms

_MOST: Final = 16
"""Number of alternatives that are compared, and of subsets beyond which only members that are in none add more. Fewer
are stricter, never wrong."""
_MOST_SETS: Final = 64
"""Number of different sets that are combined with each other. Each further one is a subset of its own."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_OTHER: Final = "-"
"""Stands for a value that no condition names. No label has it: it is not a valid value."""

Term = tuple[NodeRequirement, ...]
Given = Callable[[str], Sequence[NodeRequirement]]
"""The conditions on the label of this key that all nodes in question meet."""


def narrowed(term: Iterable[NodeRequirement], given: Given) -> Term | None:
    """The conditions of `term` that some of the nodes do not meet, those on one label merged where `In` is among them.

    None: no node can meet all conditions. Empty: all nodes meet them.
    """
    found: list[NodeRequirement] = []
    for key, of_key in groupby(sorted(set(term)), key=attrgetter("key")):
        known, asked = tuple(given(key)), tuple(of_key)
        values = [value for value in _values((*known, *asked)) if _all_allow(known, value)]
        left = [value for value in values if _all_allow(asked, value)]
        if not left:
            return None
        undecided = [each for each in asked if not all(map(each.allows, values))]
        if undecided and any(each.operator == "In" for each in (*known, *asked)):
            undecided = [NodeRequirement(key, "In", tuple(value for value in left if value is not None))]
        found += undecided
    return tuple(found)


def all_met(sets: Iterable[Terms], given: Given) -> Terms | None:
    """Alternatives of which each meets all these sets of alternatives.

    None: no node can meet all sets. Empty: all nodes meet them.
    """
    found: Terms = ()
    for each in sets:
        pairs = product(found or ((),), each or ((),))
        terms = {term for a, b in pairs if (term := narrowed((*a, *b), given)) is not None}
        if not terms:
            return None
        fewest = sorted(terms, key=lambda term: (len(term), term))[:_MOST]
        # A term with all conditions of another adds no node to it.
        least = (term for term in fewest if not any(set(other) < set(term) for other in fewest))
        found = () if () in terms else tuple(sorted(least))
    return found


def largest_sets(sets: Iterable[Terms], given: Given) -> dict[frozenset[Terms], Terms]:
    """Subsets of `sets` that one node can meet together, and to which no other member can be added, with alternatives
    that meet each. Each of `sets` is in one of them; not every possible one is found where there are many."""
    found: dict[frozenset[Terms], Terms] = {}
    ordered = sorted(sets)
    for each in ordered[:_MOST_SETS]:
        grown = dict[frozenset[Terms], Terms]()
        for known, together in found.items():
            joined = all_met((together, each), given)
            if joined is not None:
                grown[known | {each}] = joined
                continue
            grown[known] = together
            if len(found) < _MOST:
                grown.update([_joined(each, known, given)])
        if not any(each in members for members in grown):
            grown.update([_joined(each, {other for members in found for other in members}, given)])
        found = {members: terms for members, terms in grown.items() if not any(members < other for other in grown)}
    found |= {frozenset((each,)): each for each in ordered[_MOST_SETS:]}
    return dict(sorted(found.items(), key=lambda item: (-len(item[0]), sorted(item[0]))))


def _joined(each: Terms, known: Iterable[Terms], given: Given) -> tuple[frozenset[Terms], Terms]:
    """`each`, and of `known` what a node can meet with it, in order; with alternatives that meet them."""
    members, together = [each], each
    for other in sorted(known):
        met = all_met((together, other), given)
        if met is not None:
            members.append(other)
            together = met
    return frozenset(members), together


def _all_allow(conditions: Iterable[NodeRequirement], value: str | None) -> bool:
    return all(each.allows(value) for each in conditions)


def _values(conditions: Sequence[NodeRequirement]) -> list[str | None]:
    """One value of each kind that the conditions tell apart, sorted; None stands for a node without the label."""
    found = {near for each in conditions for value in each.values for near in _near(value)}
    return [*sorted(found | {_OTHER}), None]


def _near(value: str) -> Iterator[str]:
    yield value
    if _NUMBER.fullmatch(value):
        yield from (str(int(value) - 1), str(int(value) + 1))
