"""GPUs and cost over a year in the Environment's status: enough points for a line, and few enough for a status."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.api import MOST_POINTS, CapacityPoint
from plimsoll.report import CapacityHistory, thinned
from tests.builders import a_gpu_node, a_snapshot, an_environment

NOW = datetime(2026, 7, 1, 12, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def point(time: datetime, gpus: int = 0) -> CapacityPoint:
    return CapacityPoint(time=time.strftime("%Y-%m-%dT%H:%M:%SZ"), gpus=gpus)


def test_a_point_has_the_gpus_and_the_price_of_the_nodes() -> None:
    environment = an_environment(catalog={"prices": {"priced": 2.5}})
    nodes = [a_gpu_node(name, gpus=4, instance_type="priced") for name in ("a", "b")]
    snapshot = a_snapshot(*nodes, environment=environment)
    (found,) = CapacityHistory().with_point((), snapshot, NOW, applied=True)
    assert found == CapacityPoint(time="2026-07-01T12:30:00Z", gpus=8, cost=5.0)
    (unpriced,) = CapacityHistory().with_point((), a_snapshot(a_gpu_node("a", instance_type="x")), NOW, applied=True)
    assert unpriced.cost is None


def test_a_point_is_added_once_an_hour_and_only_with_a_delta() -> None:
    history, known = CapacityHistory(), (point(NOW - DAY),)
    assert history.with_point(known, a_snapshot(), NOW, applied=False) == known
    for minutes, number in ((0, 2), (20, 2), (40, 3)):
        points = history.with_point((), a_snapshot(), NOW + timedelta(minutes=minutes), applied=True)
        assert len(points) == number, minutes
    assert points[0] == known[0], "a restarted controller continues what the cluster has"


seconds = st.lists(st.integers(0, 500 * 86400), max_size=300)


@given(seconds, st.integers(0, 86400))
def test_what_is_kept_is_bounded_recent_and_no_other_than_was_given(ages: list[int], more: int) -> None:
    points = [point(NOW - timedelta(seconds=age), gpus) for gpus, age in enumerate(ages)]
    kept = thinned(points, NOW)
    assert len(kept) <= MOST_POINTS
    assert set(kept) <= set(points)
    assert [each.time for each in kept] == sorted(each.time for each in kept)
    assert all(each.time >= point(NOW - 365 * DAY).time for each in kept)
    if points and min(ages) <= 365 * 86400:
        assert kept[-1].time == max(each.time for each in points)
    later = NOW + timedelta(seconds=more)
    assert thinned(kept, NOW) == kept
    assert set(thinned(kept, later)) <= set(kept)


def test_a_year_of_hours_is_few_points_whose_gaps_grow_with_age() -> None:
    kept: tuple[CapacityPoint, ...] = ()
    start = NOW - 400 * DAY
    for hour in range(400 * 24 + 1):
        time = start + timedelta(hours=hour)
        kept = thinned((*kept, point(time)), time)
    assert 110 <= len(kept) <= MOST_POINTS
    times = [datetime.fromisoformat(each.time) for each in kept]
    gaps = {later - time for time, later in pairwise(times)}
    assert max(gaps) <= 10 * DAY
    assert times[0] <= NOW - 355 * DAY
    assert [time for time in times if time > NOW - DAY] == [NOW - timedelta(hours=n) for n in range(23, -1, -1)]
