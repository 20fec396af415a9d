"""Proves changes: plans again with each, and keeps those that help."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, islice
from typing import Any, Final, NamedTuple

from plimsoll.explaining.chain import Remedy
from plimsoll.explaining.change import Change, Touches
from plimsoll.model import Snapshot

MOST_PLANS: Final = 400
"""Plans that one question may take."""
_PAIRED: Final = 10
"""Changes of which two are tried together where none helps alone."""
SHOWN: Final = 5


class Outcome(NamedTuple):
    """What a plan with a change is, beside the one without it."""

    helped: int
    """Of those that the question is about: with capacity now, and without before."""
    displaced: int = 0
    """Others that had capacity, and lose it."""
    nodes: int = 0
    gpus: int = 0
    price: float | None = 0.0


class Prover:
    def __init__(
        self, snapshot: Snapshot, outcome: Callable[[Snapshot], Outcome], most_plans: int = MOST_PLANS
    ) -> None:
        """`outcome` plans a snapshot with a change."""
        self._snapshot, self._outcome, self._left = snapshot, outcome, most_plans

    def remedies(self, changes: Iterable[Change]) -> tuple[Remedy, ...]:
        """The changes that help without taking from others, each with its least value; two together where none helps
        alone, and more where no two do. The cheapest first, then those that touch the fewest."""
        tried = list(changes)
        found = [remedy for change in tried if (remedy := self._least((change,))) is not None]
        if not found:
            pairs = combinations(tried[:_PAIRED], 2)
            pairs_of_two = (pair for pair in pairs if (pair[0].obj, pair[0].field) != (pair[1].obj, pair[1].field))
            found = list(islice(filter(None, (self._least(pair) for pair in pairs_of_two)), SHOWN))
        if not found and (several := self._several(tried)) is not None:
            found = [several]
        return tuple(sorted(found, key=_rank)[:SHOWN])

    def _several(self, changes: Sequence[Change]) -> Remedy | None:
        """All changes together, the first of each field, less each that is not needed beside the others."""
        of_fields: dict[tuple[str, str], Change] = {}
        for change in changes:
            if len(change.values):
                of_fields.setdefault((change.obj, change.field), change)
        kept = list(of_fields.values())
        if not self._help(kept):
            return None
        for change in sorted(kept, key=lambda each: -each.touches.width):
            fewer = [each for each in kept if each is not change]
            if self._help(fewer):
                kept = fewer
        return self._least(kept)

    def _help(self, changes: Sequence[Change]) -> bool:
        """Whether the greatest values help anybody together."""
        outcome = self._with(changes, [change.values[-1] for change in changes])
        return outcome is not None and outcome.helped > 0

    def _least(self, changes: Sequence[Change]) -> Remedy | None:
        """The changes with the least values that help as many as the greatest do; None if those help nobody.

        Where the greatest let in so many that others lose their capacity, the least values that help one are tried.
        """
        values: list[Any] = [change.values[-1] for change in changes if len(change.values)]
        most = self._with(changes, values) if len(values) == len(changes) else None
        if most is None or not most.helped:
            return None
        enough = 1 if most.displaced else most.helped

        def helps(position: int, value: Any) -> bool:
            outcome = self._with(changes, [*values[:position], value, *values[position + 1 :]])
            return outcome is not None and outcome.helped >= enough and bool(most.displaced or not outcome.displaced)

        for position, change in enumerate(changes):
            low, high = 0, len(change.values) - 1
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if helps(position, change.values[middle]) else (middle + 1, high)
            values[position] = change.values[high]
            if change.only is not None and helps(position, change.only(values[position])):
                values[position] = change.only(values[position])
        outcome = self._with(changes, values) or most
        if outcome.displaced:
            return None
        touches = max((change.touches for change in changes), key=lambda each: each.width)
        texts = tuple(change.text(value) for change, value in zip(changes, values, strict=True))
        return Remedy(texts, touches.value, outcome.helped, outcome.nodes, outcome.gpus, outcome.price)

    def _with(self, changes: Sequence[Change], values: Sequence[Any]) -> Outcome | None:
        """None where no more plans may be made."""
        if not self._left:
            return None
        self._left -= 1
        snapshot = self._snapshot
        for change, value in zip(changes, values, strict=True):
            snapshot = change.put(snapshot, value)
        return self._outcome(snapshot)


def _rank(remedy: Remedy) -> tuple[object, ...]:
    return (
        len(remedy.changes),
        remedy.price is None,
        remedy.price or 0.0,
        Touches(remedy.touches).width,
        -remedy.helped,
        remedy.changes,
    )
