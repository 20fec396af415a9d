"""What is answered while an update runs is disarmed before the update has ended."""

import threading
from collections.abc import Iterable
from datetime import datetime
from typing import cast

import pytest

from plimsoll.apply import Applier, Outcome
from plimsoll.errors import PlimsollError
from plimsoll.loop import Loop
from plimsoll.model import Plan, Signal, SignalReason, Snapshot
from plimsoll.observe.cluster import Observer
from plimsoll.report import Reporter
from tests.capacity_requests.cluster import Cluster, at, claim, node, pool, share_pod

PATIENCE = 20
"""Seconds; only a failure takes them."""


class Slow:
    """Observer, applier and reporter in one: a node comes while `apply` runs, which ends once a signal was sent."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.seen = cluster.snapshot()
        self.sent: list[Signal] = []
        self.signalled = threading.Event()

    def run_round(self) -> None:
        Loop(cast(Observer, self), cast(Applier, self), cast(Reporter, self), self.now).run_round()

    def now(self) -> datetime:
        return at(40)

    def snapshot(self) -> Snapshot:
        return self.seen

    def require_lease(self) -> None: ...

    def remove_gates(self, removals: object) -> None: ...

    def report(self, *_: object) -> None: ...

    def resources(self) -> list[object]:
        return []

    def signal(self, signals: Iterable[Signal]) -> tuple[Signal, ...]:
        found = tuple(signals)
        self.sent += found
        if found:
            self.signalled.set()
        return found

    def apply(self, plan: Plan) -> Outcome:
        assert plan.creations
        self.cluster.objects += [claim("gpu-1", at(2), nodeName="n1"), node("n1", at(4))]
        self.seen = self.cluster.snapshot()
        assert self.signalled.wait(PATIENCE), "not disarmed while the update ran"
        return Outcome()


def waiting_for_a_node() -> Cluster:
    """A trigger is armed, and more is to be asked for."""
    cluster = Cluster(pool(), *(share_pod(f"first-{number}", "0.9") for number in range(8)))
    cluster.run_round(at(0))
    cluster.objects += [share_pod(f"later-{number}", "0.9") for number in range(8)]
    return cluster


def test_a_trigger_whose_node_comes_while_an_update_runs_is_disarmed_at_once() -> None:
    slow = Slow(waiting_for_a_node())
    slow.run_round()
    [signal] = slow.sent
    assert signal.reason is SignalReason.CAPACITY_READY
    assert signal.message.endswith("n1")


def test_what_cannot_be_observed_meanwhile_is_left_to_the_next_round() -> None:
    class Blind(Slow):
        def apply(self, plan: Plan) -> Outcome:
            self.blind = True
            assert self.signalled.wait(PATIENCE), "nobody has looked"
            return Outcome()

        blind = False

        def snapshot(self) -> Snapshot:
            if self.blind:
                self.signalled.set()
                raise PlimsollError("the watch has ended")
            return self.seen

    blind = Blind(waiting_for_a_node())
    blind.run_round()
    assert not blind.sent


def test_a_fault_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(waiting_for_a_node())

    def fail(_: Iterable[Signal]) -> tuple[Signal, ...]:
        slow.signalled.set()
        raise ZeroDivisionError

    monkeypatch.setattr(slow, "signal", fail)
    with pytest.raises(ZeroDivisionError):
        slow.run_round()
