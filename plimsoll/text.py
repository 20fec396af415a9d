"""Names and numbers in messages: short lists, counts, and names that could have been meant."""

import difflib
import re
from collections.abc import Collection, Iterable
from itertools import islice

SHOWN = 5


def shortlist(items: Collection[str] | Iterable[str], shown: int = SHOWN) -> str:
    """`a, b, c, d, e and 12 more`"""
    items = items if isinstance(items, Collection) else list(items)
    more = len(items) - shown
    return ", ".join(islice(items, shown)) + (f" and {more} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`"""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def figure(number: float) -> str:
    """Four digits at least, with the whole part in full: `0.526`, `98.32`, `14,752.5`"""
    return f"{number:.4g}" if abs(number) < 1000 else f"{number:,.2f}".rstrip("0").rstrip(".")


def nearest(name: str, names: Collection[str]) -> tuple[str, ...]:
    """At most three similar names, closest first, without regard to case."""
    by_folded = {each.casefold(): each for each in names}
    folded = name.strip().casefold()
    begun = [each for each in sorted(by_folded, key=len) if len(folded) >= 3 and each.startswith(folded)]
    close = difflib.get_close_matches(folded, by_folded, n=3, cutoff=0.7)
    if len(folded) >= 3:
        close += [each for each in by_folded if folded in each]
    close += [each for each in by_folded if folded in re.split(r"[^a-z0-9]+", each)]
    return tuple(by_folded[each] for each in dict.fromkeys([*begun, *close]))[:3]


def misspelled(name: str, names: Collection[str], alike: float) -> str:
    """The name that this one is by its letters, or nearly: by at least that part of them, as difflib counts. Empty if
    none is. Stricter than `nearest`, for names that may well be others'."""
    by_letters = {_letters(each): each for each in names}
    found = difflib.get_close_matches(_letters(name), by_letters, n=1, cutoff=alike)
    return by_letters[found[0]] if found else ""


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.casefold())


def did_you_mean(near: Collection[str]) -> str | None:
    """A hint for people; None where nothing is near."""
    return f"did you mean {' or '.join(near)}?" if near else None
