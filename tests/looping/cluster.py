"""A cluster in memory, for the loop and for the controller that runs it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

import pytest

from plimsoll.apply import Applier, Outcome, OwnedResource
from plimsoll.cli.controller import Controller, ControllerStatus, Service, Stopping
from plimsoll.cli.writing import Writer, WriterOptions
from plimsoll.kube import Connection
from plimsoll.loop import Loop
from plimsoll.model import Change, ObjectKey, Plan, Refusal, Snapshot
from plimsoll.observe.cluster import Observer
from plimsoll.plan.view import ClusterView
from plimsoll.report import Reporter
from tests.builders import NC24, a_snapshot, a_workspace

START = datetime(2026, 1, 1, tzinfo=UTC)


class Cluster:
    """Observer, applier and reporter in one. The test decides when applied changes are observed."""

    def __init__(self, *seen: Snapshot) -> None:
        self.seen = list(seen)
        self.now = START
        self.applied: list[Plan] = []
        self.expected: list[int] = []
        self.reported: list[Snapshot] = []
        self.there: list[Collection[str]] = []
        self.asked: list[list[str]] = []
        """Names of the workloads of each request for dry runs."""
        self.refusals: dict[str, Refusal] = {}
        """The answers to these, by name."""

    def loop(self) -> Loop:
        return Loop(cast(Observer, self), cast(Applier, self), cast(Reporter, self), lambda: self.now)

    def snapshot(self) -> Snapshot:
        return self.seen[0]

    def pause(self, idle: float, maximum: float) -> bool:
        """The next snapshot ends the burst."""
        more = len(self.seen) > 1
        if more:
            self.seen.pop(0)
        return more

    def require_lease(self) -> None:
        pass

    @contextmanager
    def expecting(self, creations: int) -> Iterator[None]:
        self.expected.append(creations)
        yield

    def apply(self, plan: Plan) -> Outcome:
        self.applied.append(plan)
        return Outcome(
            created=tuple(each.key for each in plan.creations), deleted=tuple(each.key for each in plan.deletions)
        )

    def dry_run(self, workloads: Sequence[Change]) -> Mapping[ObjectKey, Refusal]:
        self.asked.append([each.key.name for each in workloads])
        return {each.key: self.refusals[each.key.name] for each in workloads if each.key.name in self.refusals}

    def signal(self, signals: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(signals)

    def remove_gates(self, removals: Sequence[Any]) -> int:
        assert not removals
        return 0

    def resources(self) -> list[OwnedResource]:
        made = [each.key for plan in self.applied for each in plan.creations]
        return [OwnedResource("stack", key, f"uid-{key.name}", "urn") for key in made]

    def recorded(self) -> frozenset[str]:
        """Of the test's own objects, too: they have been there all along."""
        return frozenset(each.uid for seen in self.seen for each in seen.workloads).union(
            each.uid for each in self.resources()
        )

    def forget_missing(self, there: Collection[str]) -> None:
        self.there.append(there)

    def report(
        self, view: ClusterView, plan: Plan, now: datetime, failures: object, stacks: object, **more: object
    ) -> None:
        self.reported.append(view.observed)


class ControlledCluster(Cluster):
    """A cluster that a controller observes and writes to. Each wait of the loop takes its whole time, on the test's
    clock, unless `during_wait` shows a change."""

    identity = "here_1_a"

    def __init__(self, *seen: Snapshot) -> None:
        super().__init__(*seen)
        self.during_wait: Callable[[], None] = lambda: None
        self.during_apply: Callable[[], None] = lambda: None
        self.interrupted = False

    def seconds(self) -> float:
        return (self.now - START).total_seconds()

    def controller(self, service: Service, stopping: Stopping, monkeypatch: pytest.MonkeyPatch) -> Controller:
        """A controller whose writer is this cluster; its loop and its health have the test's clock."""

        @contextmanager
        def writer_of(*_: object) -> Iterator[Writer]:
            name = self.snapshot().environment.name
            yield Writer(name, cast(Observer, self), cast(Applier, self), cast(Reporter, self))

        monkeypatch.setattr("plimsoll.cli.controller.controller.writer_of", writer_of)
        monkeypatch.setattr("plimsoll.cli.controller.controller.Loop", partial(Loop, clock=lambda: self.now))
        service.status = ControllerStatus(self.seconds)
        options = WriterOptions(None, None, None, "", None, "plugin")
        return Controller(options, cast(Connection, None), cast(Observer, self), service, stopping)

    def start(self, *_: object) -> None:
        """The Lease is free."""

    def interrupt(self) -> None:
        self.interrupted = True

    def wait(self, idle: float, maximum: float, timeout: float) -> None:
        self.now += timedelta(seconds=timeout)
        self.during_wait()

    def wake(self) -> None:
        """No wait lasts."""

    def silent(self) -> tuple[str, ...]:
        return ()

    def ages(self) -> dict[str, float]:
        return {}

    def apply(self, plan: Plan) -> Outcome:
        self.during_apply()
        return super().apply(plan)


def wanting(workspaces: int) -> Snapshot:
    return a_snapshot(
        *(
            a_workspace(f"ws{number}", uid=f"u{number}", instance_type=NC24, selector={})
            for number in range(workspaces)
        ),
        nap=True,
    )
