"""Whether the definition of a custom kind is there: told by the watch of the definitions, awaited by the kind's."""

import threading
from typing import Final

ABSENT: Final = ""


class Presence:
    """The resource version of a definition; ABSENT where there is none, None until that is known."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._version: str | None = None
        self._ended = False

    def set(self, version: str) -> None:
        with self._changed:
            self._version = version
            self._changed.notify_all()

    def end(self) -> None:
        """Frees whoever waits, for good."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_other_than(self, version: str | None) -> str | None:
        """Blocks until the definition's version is known and another one. After `end` the value means nothing."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._version not in (None, version))
            return self._version
