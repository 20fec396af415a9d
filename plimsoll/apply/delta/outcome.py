"""The outcome of applying a Plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from plimsoll.apply.errors import Failure
from plimsoll.model import ObjectKey, Signal


@dataclass(frozen=True)
class Timing:
    """How long the steps of one stack's part of a Plan took, in seconds of a monotonic clock."""

    stack: str
    pre_started: bool
    """Whether the update had been pre-started."""
    start: float
    """Waiting for the engine; almost 0 if it was pre-started."""
    review: float
    """Reading live objects and computing the operations."""
    engine: float
    """From the release of the program until the engine's first operation."""
    provider: float
    """From then until every operation was confirmed."""

    @property
    def seconds(self) -> float:
        """From the start until every operation was confirmed."""
        return self.start + self.review + self.engine + self.provider


@dataclass(frozen=True)
class Outcome:
    """Keys of the objects by operation, sorted as in the Plan; `failed` has the reason of each failed operation."""

    created: tuple[ObjectKey, ...] = ()
    updated: tuple[ObjectKey, ...] = ()
    deleted: tuple[ObjectKey, ...] = ()
    forgotten: tuple[ObjectKey, ...] = ()
    """Deletions of objects that no longer exist, or were replaced by an object that this writer may not delete."""
    failed: Mapping[ObjectKey, Failure] = field(default_factory=lambda: MappingProxyType({}))
    timings: tuple[Timing, ...] = ()
    signalled: tuple[Signal, ...] = ()
    """Signals that the cluster accepted."""
    signalling: float = 0.0
    """Seconds that signals took after every operation was confirmed."""

    @property
    def empty(self) -> bool:
        """Whether no operation was done or failed."""
        return not (self.created or self.updated or self.deleted or self.forgotten or self.failed)

    @classmethod
    def failing(cls, keys: Iterable[ObjectKey], failure: Failure) -> "Outcome":
        """All operations failed, for the same reason."""
        return cls(failed=MappingProxyType(dict.fromkeys(keys, failure)))

    @classmethod
    def merged(cls, parts: Iterable["Outcome"]) -> "Outcome":
        """Combines outcomes. If two contain the same key, the later one counts."""
        created: dict[ObjectKey, None] = {}
        updated: dict[ObjectKey, None] = {}
        deleted: dict[ObjectKey, None] = {}
        forgotten: dict[ObjectKey, None] = {}
        failed: dict[ObjectKey, Failure] = {}
        timings: list[Timing] = []
        for part in parts:
            for done, keys in (
                (created, part.created),
                (updated, part.updated),
                (deleted, part.deleted),
                (forgotten, part.forgotten),
            ):
                for key in keys:
                    done[key] = None
                    failed.pop(key, None)
            failed.update(part.failed)
            timings.extend(part.timings)
        return cls(
            created=tuple(sorted(created, key=str)),
            updated=tuple(sorted(updated, key=str)),
            deleted=tuple(sorted(deleted, key=str)),
            forgotten=tuple(sorted(forgotten, key=str)),
            failed=MappingProxyType(failed),
            timings=tuple(timings),
        )
