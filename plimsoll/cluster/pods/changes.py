"""Which pods of a snapshot differ from those of the previous one."""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from plimsoll.model.cluster import Pod

T = TypeVar("T")
_STEP: Final = 1024


class PodChanges(NamedTuple):
    gone: tuple[Pod, ...]
    """Including pods that were replaced by a newer value."""
    new: tuple[Pod, ...]


def pod_changes(before: Sequence[Pod], after: Sequence[Pod]) -> PodChanges:
    """By identity, as `value_changes`."""
    return PodChanges(*value_changes(before, after))


def value_changes(before: Sequence[T], after: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Removed and new values. Unchanged values are the same objects in both, mostly at the same position."""
    start = _same(before, after)
    tail = _same(before[start:][::-1], after[start:][::-1])
    old, young = before[start : len(before) - tail], after[start : len(after) - tail]
    kept = set(map(id, old)) & set(map(id, young))
    return tuple(each for each in old if id(each) not in kept), tuple(each for each in young if id(each) not in kept)


def _same(one: Sequence[object], other: Sequence[object]) -> int:
    """Number of identical values from the start."""
    end = min(len(one), len(other))
    for at in range(0, end, _STEP):
        # Sequences compare identical objects first, so unchanged parts cost almost nothing.
        if one[at : at + _STEP] != other[at : at + _STEP]:
            return next((n for n in range(at, min(at + _STEP, end)) if one[n] is not other[n]), end)
    return end
