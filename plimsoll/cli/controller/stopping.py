"""Graceful shutdown of the controller on SIGTERM and SIGINT."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from plimsoll.stop_request import StopRequest

Action = Callable[[], None]


class Stopping(StopRequest):
    """Made by a signal. Its handlers take no lock and start nothing, as they interrupt this very thread.

    Where nothing is at work that could be stopped, a signal ends the process with SystemExit and the `exit_code`: as
    process 1 of a container it would be ignored without a handler.
    """

    def __init__(self, exit_code: int = 0) -> None:
        super().__init__()
        self._exit_code = exit_code
        self._actions: list[Action] = []

    @contextmanager
    def by(self, *actions: Action) -> Iterator[None]:
        """Within, a signal calls these, and not those of an outer context; they make what runs there end soon. They are
        called at once if a signal came before."""
        before, self._actions = self._actions, list(actions)
        try:
            if self.requested:
                self._act()
            yield
        finally:
            self._actions = before

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.request()
        if not self._actions:
            raise SystemExit(self._exit_code)
        self._act()

    def _act(self) -> None:
        for action in self._actions:
            action()
