"""A watch that stays open and delivers nothing has failed: it is told, its kind is listed again and watched anew."""

from collections.abc import Iterator

import pytest

from plimsoll.cli.controller import Service
from plimsoll.kube import Connection
from plimsoll.observe.cluster import DEFINITIONS, NODES, Health, Observer, SilentWatchError
from tests.awaiting import await_condition
from tests.observing.apiserver import FakeApiserver
from tests.observing.test_following import await_names, await_watch, start

SILENCE = 2.0


@pytest.fixture
def observer(connection: Connection) -> Iterator[Observer]:
    observer = Observer(connection, silence=SILENCE)
    yield observer
    observer.stop()


def test_what_a_silent_watch_missed_is_seen_after_the_limit(cluster: FakeApiserver, observer: Observer) -> None:
    cluster.put(NODES.path, "old")
    start(observer)
    await_watch(cluster)
    cluster.stall(NODES.path)
    cluster.delete(NODES.path, "old")
    cluster.put(NODES.path, "new")
    await_names(observer, "new")
    assert len(cluster.seen(NODES.path, watch=False)) > 1, "the kind was listed again"


def test_a_silent_watch_is_told_until_it_delivers_again(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    await_watch(cluster)
    cluster.stall_all(NODES.path)
    await_condition(lambda: "Node" in observer.silent(), 120, "a silent watch")
    await_condition(lambda: len(cluster.seen(NODES.path, watch=False)) > 2, 120, "it is listed again and again")
    assert "Node" in observer.silent(), "a list is not an event"
    cluster.deliver(NODES.path)
    await_condition(lambda: "Node" not in observer.silent(), 120, "it is heard")


def test_a_watch_is_asked_to_end_before_it_counts_as_silent(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    await_condition(lambda: len(cluster.seen(NODES.path, watch=True)) > 2, 120, "watches that end")
    assert {int(each.query["timeoutSeconds"]) < SILENCE for each in cluster.requests if each.watch} == {True}


def test_only_watched_kinds_have_an_age(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    assert {"Node", "Pod", DEFINITIONS.name} <= observer.ages().keys()
    assert "Workspace" not in observer.ages(), "it is not defined"


def test_the_metrics_of_a_controller_have_the_ages_of_its_watches(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    service = Service()
    service.watches(observer)
    age = service.metrics.registry.get_sample_value("plimsoll_watch_age_seconds", {"kind": "Node"})
    assert age is not None
    assert 0 <= age <= observer.ages()["Node"] + SILENCE


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_thread_that_hangs_is_seen_by_the_age() -> None:
    clock = Clock()
    health = Health(["Node"], 150.0, clock)
    health.listed("Node")
    clock.now = 150.0
    assert (health.ages(), health.silent()) == ({"Node": 150.0}, ())
    clock.now = 150.1
    assert health.silent() == ("Node",)
    health.heard("Node")
    assert health.silent() == ()


def test_a_kind_that_is_no_longer_defined_is_not_silent() -> None:
    health = Health(["Queue"], 150.0, Clock())
    health.listed("Queue")
    health.failed("Queue", SilentWatchError("silent"))
    assert health.silent() == ("Queue",)
    health.unwatched("Queue")
    assert (health.silent(), health.ages()) == ((), {})
