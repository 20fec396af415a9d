"""Known: results of functions of values, which are the same as long as the values are."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
_CLUSTER = ()
"""The subject of a function of the whole cluster."""


def _always(_: object) -> bool:
    return True


class _Table(NamedTuple, Generic[K, T]):
    """The results of a function for several subjects."""

    arguments: tuple[object, ...] | None
    """What all of them are of; None: not all last."""
    parts: Mapping[K, tuple[tuple[object, ...], T]]
    """Of those that last, what each is of, and the result."""
    results: Mapping[K, T]

    def after(
        self,
        arguments: tuple[object, ...],
        reads: Mapping[K, tuple[object, ...]],
        compute: Callable[[K], T],
        lasts: Callable[[T], bool],
    ) -> "_Table[K, T]":
        """The table of these arguments, and of what is read for each subject."""
        parts, results = dict[K, tuple[tuple[object, ...], T]](), dict[K, T]()
        for subject, read in reads.items():
            known = self.parts.get(subject)
            if known is None or known[0] != read:
                known = read, compute(subject)
            results[subject] = known[1]
            if lasts(known[1]):
                parts[subject] = known
        same = list(self.results.items()) == list(results.items())
        return _Table(arguments if len(parts) == len(results) else None, parts, self.results if same else results)


class Known:
    """The last result of each function, with the arguments that it is of.

    It changes no result: the arguments are everything that a function reads. A result that also depends on the time is
    kept only where it lasts. Arguments are compared by value, which costs nothing for those that are the same objects.
    Not thread-safe.
    """

    def __init__(self) -> None:
        self._results: dict[tuple[str, Hashable], tuple[tuple[object, ...], Any]] = {}
        self._before: dict[tuple[str, Hashable], tuple[tuple[object, ...], Any]] = {}

    def begin(self) -> None:
        """Begins a round: what nobody asked for in the last one is forgotten, such as results for deleted objects."""
        self._before, self._results = self._results, {}

    def result(
        self,
        function: str,
        arguments: tuple[object, ...],
        compute: Callable[[], T],
        *,
        subject: Hashable = _CLUSTER,
    ) -> T:
        """The known result of the function for these arguments, or what `compute` returns; where there is one for each
        of several subjects, `subject` is that which is meant."""
        at = (function, subject)
        known = self._results.get(at) or self._before.get(at)
        if known is None or known[0] != arguments:
            known = (arguments, compute())
        self._results[at] = known
        found: T = known[1]
        return found

    def each(
        self,
        function: str,
        arguments: tuple[object, ...],
        subjects: Iterable[K],
        reads: Callable[[K], tuple[object, ...]],
        compute: Callable[[K], T],
        *,
        lasts: Callable[[T], bool] = _always,
    ) -> Mapping[K, T]:
        """The results for all subjects, such as Workspaces: the same mapping while the arguments are equal, which are
        everything that the function reads for any of them. Where they are not, each subject's result is known while
        what `reads` returns is equal. `lasts` says whether a result is the same at any later time."""
        at = (function, _CLUSTER)
        _, before = self._results.get(at) or self._before.get(at) or ((), _Table[K, T]((), {}, {}))
        if before.arguments != arguments:
            before = before.after(arguments, {subject: reads(subject) for subject in subjects}, compute, lasts)
        self._results[at] = (), before
        results: Mapping[K, T] = before.results
        return results
