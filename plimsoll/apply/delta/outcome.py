"""What became of a Plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from plimsoll.apply.errors import Failure
from plimsoll.model import ObjectKey, Signal


@dataclass(frozen=True)
class Timing:
    """Where one stack's part of a delta spent its time, in seconds of a monotonic clock."""

    stack: str
    pre_started: bool
    """Whether the update had been started ahead of the delta."""
    start: float
    """Waiting for the engine: about nothing where pre-started."""
    review: float
    """Own work: live objects looked at, operations computed."""
    engine: float
    """From the release of the program to the engine's first operation."""
    provider: float
    """From there until every operation was confirmed."""

    @property
    def seconds(self) -> float:
        """From the start until all of it was confirmed."""
        return self.start + self.review + self.engine + self.provider


@dataclass(frozen=True)
class Outcome:
    """Keys of what was done, sorted as the Plan is. `failed` says why an operation was not."""

    created: tuple[ObjectKey, ...] = ()
    updated: tuple[ObjectKey, ...] = ()
    deleted: tuple[ObjectKey, ...] = ()
    forgotten: tuple[ObjectKey, ...] = ()
    """Planned for deletion, but gone already, or replaced by an object that is not ours to delete."""
    failed: Mapping[ObjectKey, Failure] = field(default_factory=lambda: MappingProxyType({}))
    timings: tuple[Timing, ...] = ()
    signalled: tuple[Signal, ...] = ()
    """Signals that the cluster has taken."""
    signalling: float = 0.0
    """Seconds that these took once every operation was confirmed."""

    @property
    def empty(self) -> bool:
        """Nothing was done, nor tried, to any object."""
        return not (self.created or self.updated or self.deleted or self.forgotten or self.failed)

    @classmethod
    def merged(cls, parts: Iterable["Outcome"]) -> "Outcome":
        """One outcome of parts over disjoint keys; where they meet, the later part's word holds."""
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
