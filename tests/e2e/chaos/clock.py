"""`plimsoll` with a wall clock that a test sets: `python -m tests.e2e.chaos.clock FILE run ...`

Only this process has it, and only by `datetime` and `time.time`: an engine is a program of its own, and monotonic
clocks go on as they are. The log keeps the time of the host, by which the judge orders its lines.
"""

import datetime
import mmap
import struct
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Final, TypeAlias

import structlog.processors
from grpc._cython import cygrpc

TrueDatetime: TypeAlias = datetime.datetime
_SECONDS: Final = struct.Struct("d")


class Clock:
    """How many seconds the clock of a process is ahead, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(_SECONDS.pack(0.0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SECONDS.size)

    @property
    def ahead(self) -> float:
        seconds: float = _SECONDS.unpack(self._memory[:])[0]
        return seconds

    @ahead.setter
    def ahead(self, seconds: float) -> None:
        self._memory[:] = _SECONDS.pack(seconds)


def move(clock: Clock) -> None:
    """Replaces the clock of this process. To be called before anything else imports `datetime.datetime`."""

    class AnyDatetime(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, TrueDatetime)

    class Moved(TrueDatetime, metaclass=AnyDatetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> TrueDatetime:  # type: ignore[override]
            return TrueDatetime.now(tz) + datetime.timedelta(seconds=clock.ahead)

    true_time, of_the_host = time.time, SimpleNamespace(datetime=TrueDatetime, timezone=datetime.timezone)
    vars(structlog.processors)["datetime"] = of_the_host
    # It tells its core, which has the clock of the host, until when to wait.
    vars(cygrpc)["time"] = SimpleNamespace(**vars(time))
    datetime.datetime = Moved  # type: ignore[misc]
    time.time = lambda: true_time() + clock.ahead


if __name__ == "__main__":
    move(Clock(Path(sys.argv.pop(1))))
    from plimsoll.cli import main

    main()
