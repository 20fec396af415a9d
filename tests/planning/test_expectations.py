"""Own writes are awaited: objects that appear, objects that are deleted at once, and writes that no watch shows."""

from datetime import UTC, datetime

from plimsoll.loop import DEADLINE, Expectations
from tests.builders import a_claim, a_snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JUST_AFTER = NOW + DEADLINE / 100


def test_created_objects_must_be_observed() -> None:
    expected = Expectations.of(["uid-a", "uid-b"], [], NOW)
    assert not expected.met_by(a_snapshot(a_claim("a")), JUST_AFTER)
    assert expected.met_by(a_snapshot(a_claim("a"), a_claim("b", deleting=True)), JUST_AFTER)


def test_another_object_of_the_same_name_does_not_count() -> None:
    other = a_claim("a").model_copy(update={"uid": "uid-of-another"})
    assert not Expectations.of(["uid-a"], [], NOW).met_by(a_snapshot(other), JUST_AFTER)


def test_an_object_that_was_deleted_again_counts_as_observed() -> None:
    expected = Expectations.of(["uid-a", "uid-b"], [], NOW)
    gone = a_snapshot(a_claim("a")).model_copy(update={"gone": frozenset({"uid-b"})})
    assert expected.met_by(gone, JUST_AFTER)


def test_deleted_objects_must_be_terminating_or_gone() -> None:
    expected = Expectations.of([], ["uid-a"], NOW)
    assert not expected.met_by(a_snapshot(a_claim("a")), JUST_AFTER)
    assert expected.met_by(a_snapshot(a_claim("a", deleting=True)), JUST_AFTER)
    assert expected.met_by(a_snapshot(), JUST_AFTER)


def test_writes_that_no_watch_shows_are_awaited_until_the_deadline() -> None:
    expected = Expectations.of(["uid-a"], [], NOW)
    assert not expected.met_by(a_snapshot(), JUST_AFTER)
    assert expected.met_by(a_snapshot(), NOW + DEADLINE)
