"""Events about pods without capacity say which change is proven to help."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest

from plimsoll.report import PAUSE_SECONDS, Event, PodEvents, PodRemedies
from tests.builders import a_queue
from tests.capacity_requests.cluster import Cluster, at, demand_environment, pool, share_pod

LIMITED = pool().model_copy(update={"limits": {"nvidia.com/gpu": 0}})
QUEUES = (a_queue("root", parent=""), a_queue("rivals"))


class Told:
    """Events of rounds of a cluster, as they are recorded."""

    def __init__(self, *objects: Any) -> None:
        self.cluster = Cluster(*objects, environment=demand_environment())
        self.seconds = 0.0
        self.events = PodEvents()
        self.recorded: list[Event] = []
        self.remedies = PodRemedies(self._record, lambda: self.seconds)

    def _record(self, events: Iterable[Event], now: datetime) -> None:
        self.recorded += events

    def run_round(self, seconds: float = 0) -> None:
        plan = self.cluster.run_round(at(seconds))
        self.remedies.record(self.events.of(plan.demands), self.cluster.snapshot(), at(seconds))

    def notes(self) -> dict[str, str]:
        """By pod, once all are recorded."""
        self.remedies.close()
        return {event.regarding.name: event.note for event in self.recorded}


def test_the_event_of_a_pod_says_the_least_change_that_a_plan_has_proven() -> None:
    told = Told(LIMITED, share_pod("one"), share_pod("other"))
    told.run_round()
    notes = told.notes()
    assert notes.keys() == {"one", "other"}
    for name, note in notes.items():
        why, _, change = note.partition("; proven to help: ")
        assert why.startswith("no capacity requested: "), note
        assert why.endswith(f"plimsoll why pod team/{name}")
        assert change == "NodePool gpu: spec.limits[nvidia.com/gpu]: 0 -> 8"
    assert {event.name for event in told.recorded} == {
        event._replace(note=event.series, series="").name for event in told.recorded
    }, "a repetition is counted in the same object"


def test_a_pod_with_capacity_is_told_at_once() -> None:
    told = Told(pool(), share_pod("one"))
    told.run_round()
    (event,) = told.recorded
    assert "proven" not in event.note


def test_queues_of_others_are_not_proposed_to_the_tenant_of_a_pod() -> None:
    typo = share_pod("one").model_copy(update={"labels": {"kai.scheduler/queue": "typo"}})
    told = Told(pool(), typo, *QUEUES)
    told.run_round()
    (note,) = told.notes().values()
    assert "proven" not in note


def test_pods_that_nothing_can_serve_do_not_keep_the_controller_planning() -> None:
    told = Told(LIMITED, share_pod("one"))
    told.run_round()
    told.remedies.flush()
    for number, seconds in enumerate((1, PAUSE_SECONDS + 1)):
        told.seconds = seconds
        told.cluster.objects.append(share_pod(f"later-{number}"))
        told.run_round(seconds)
        told.remedies.flush()
    notes = told.notes()
    assert {name: "proven" in note for name, note in notes.items()} == {
        "one": True, "later-0": False, "later-1": True
    }  # fmt: skip


def test_events_are_recorded_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise TypeError("unsupported operand")

    monkeypatch.setattr("plimsoll.report.pod_remedies.plan_demand", fails)
    told = Told(LIMITED, share_pod("one"))
    told.run_round()
    (note,) = told.notes().values()
    assert note.startswith("no capacity requested: ")


def test_what_a_killed_process_had_not_recorded_the_next_one_records() -> None:
    """A process that is killed while a question is answered has recorded nothing of it."""
    killed = Told(LIMITED, share_pod("one"))
    plan = killed.cluster.run_round(at(0))
    (lost,) = killed.events.of(plan.demands)
    following = Told()
    following.cluster = killed.cluster
    following.run_round(5)
    following.notes()
    (event,) = following.recorded
    assert event.name == lost.name
    assert "proven" in event.note
    following.run_round(6)
    assert len(following.recorded) == 1, "in one process, it is recorded once"
