"""Trigger pods whose nodes register while an update runs are withdrawn before the update ends."""

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

PATIENCE = 120
"""Maximum seconds to wait; only a failing test waits that long."""


class Slow:
    """Observer, applier and reporter in one. A node registers while `apply` runs, which ends after a signal was
    sent."""

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

    def report(self, *_: object, **__: object) -> None: ...

    def resources(self) -> list[object]:
        return []

    def recorded(self) -> frozenset[str]:
        return frozenset()

    def signal(self, signals: Iterable[Signal]) -> tuple[Signal, ...]:
        found = tuple(signals)
        self.sent += found
        if found:
            self.signalled.set()
        return found

    def dry_run(self, workloads: object) -> dict[object, object]:
        return {}

    def apply(self, plan: Plan) -> Outcome:
        assert plan.creations
        self.cluster.objects += [claim("gpu-1", at(2), nodeName="n1"), node("n1", at(4))]
        self.seen = self.cluster.snapshot()
        assert self.signalled.wait(PATIENCE), "not withdrawn while the update ran"
        return Outcome()


def waiting_for_a_node() -> Cluster:
    """A trigger pod is unschedulable, and more capacity is to be requested."""
    cluster = Cluster(pool(), *(share_pod(f"first-{number}", "0.9") for number in range(8)))
    cluster.run_round(at(0))
    cluster.objects += [share_pod(f"later-{number}", "0.9") for number in range(8)]
    return cluster


def test_a_trigger_pod_whose_node_registers_during_an_update_is_withdrawn_at_once() -> None:
    slow = Slow(waiting_for_a_node())
    slow.run_round()
    [signal] = slow.sent
    assert signal.reason is SignalReason.CAPACITY_READY
    assert signal.message.endswith("n1")


def test_errors_of_observing_during_an_update_are_left_to_the_next_round() -> None:
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


def test_a_defect_of_the_program_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(waiting_for_a_node())

    def fail(_: Iterable[Signal]) -> tuple[Signal, ...]:
        slow.signalled.set()
        raise ZeroDivisionError

    monkeypatch.setattr(slow, "signal", fail)
    with pytest.raises(ZeroDivisionError):
        slow.run_round()
