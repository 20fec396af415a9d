"""Lists of names in messages: the first few, and how many more."""

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
