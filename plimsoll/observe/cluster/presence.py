"""Presence: whether the CustomResourceDefinition of a kind exists. Set by the watch of the definitions, awaited by the
watch of the kind."""

import threading
from typing import Final

ABSENT: Final = ""


class Presence:
    """The resource version of a definition; ABSENT if it does not exist, None until this is known."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._version: str | None = None
        self._ended = False

    def set(self, version: str) -> None:
        with self._changed:
            self._version = version
            self._changed.notify_all()

    def end(self) -> None:
        """Ends all current and future waits."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_other_than(self, version: str | None) -> str | None:
        """Blocks until the version of the definition is known and differs from `version`. After `end`, the result has
        no meaning."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._version not in (None, version))
            return self._version
