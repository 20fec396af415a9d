"""Signals trigger pods whose nodes register while an update runs.

An update takes seconds, and Karpenter checks pending pods again meanwhile: once pods use the GPUs of a registered node
whose trigger pod is still Unschedulable, Karpenter creates another node.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

from plimsoll.errors import PlimsollError
from plimsoll.model import Plan, Signal, SignalReason, Snapshot
from plimsoll.plan.requests import any_registered

CHECK_SECONDS: Final = 0.1
"""Interval between checks of the snapshot in memory; a check is cheap while no node changes."""


class ReadySignals:
    """Context manager that checks and signals in a thread; `sent` are the signals that the cluster accepted.

    `plan` is called only in that thread meanwhile. Errors of observing and planning are left to the next round.
    """

    def __init__(
        self,
        began: Snapshot,
        observe: Callable[[], Snapshot],
        plan: Callable[[Snapshot], Plan],
        send: Callable[[Sequence[Signal]], Sequence[Signal]],
    ) -> None:
        self._nodes = began.nodes
        self._observe = observe
        self._plan = plan
        self._send = send
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ready-signals")
        self.sent: list[Signal] = []

    def __enter__(self) -> Self:
        self._watching = self._pool.submit(self._watch)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._pool.shutdown(wait=True)
        if error is None:
            self._watching.result()

    def _watch(self) -> None:
        while not self._over.wait(CHECK_SECONDS):
            try:
                self._check()
            except PlimsollError:
                return

    def _check(self) -> None:
        snapshot = self._observe()
        if snapshot.nodes is self._nodes:
            return
        self._nodes = snapshot.nodes
        if not any_registered(snapshot):
            return
        sent = {signal.key for signal in self.sent}
        due = [each for each in self._plan(snapshot).signals if each.reason == SignalReason.CAPACITY_READY]
        self.sent += self._send([each for each in due if each.key not in sent])
