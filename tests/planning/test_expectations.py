"""Own writes are awaited: those that came, those that came and went, and those that nobody sees."""

from datetime import UTC, datetime

from plimsoll.loop import DEADLINE, Expectations
from tests.builders import a_claim, a_snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JUST_AFTER = NOW + DEADLINE / 100


def test_what_was_made_must_be_seen() -> None:
    expected = Expectations.of(["uid-a", "uid-b"], [], NOW)
    assert not expected.met_by(a_snapshot(a_claim("a")), JUST_AFTER)
    assert expected.met_by(a_snapshot(a_claim("a"), a_claim("b", deleting=True)), JUST_AFTER)


def test_another_of_the_same_name_is_not_what_was_made() -> None:
    other = a_claim("a").model_copy(update={"uid": "uid-of-another"})
    assert not Expectations.of(["uid-a"], [], NOW).met_by(a_snapshot(other), JUST_AFTER)


def test_what_was_made_and_is_gone_again_has_been_seen() -> None:
    expected = Expectations.of(["uid-a", "uid-b"], [], NOW)
    gone = a_snapshot(a_claim("a")).model_copy(update={"gone": frozenset({"uid-b"})})
    assert expected.met_by(gone, JUST_AFTER)


def test_what_was_deleted_must_be_going() -> None:
    expected = Expectations.of([], ["uid-a"], NOW)
    assert not expected.met_by(a_snapshot(a_claim("a")), JUST_AFTER)
    assert expected.met_by(a_snapshot(a_claim("a", deleting=True)), JUST_AFTER)
    assert expected.met_by(a_snapshot(), JUST_AFTER)


def test_what_no_watch_ever_shows_is_awaited_for_a_time() -> None:
    expected = Expectations.of(["uid-a"], [], NOW)
    assert not expected.met_by(a_snapshot(), JUST_AFTER)
    assert expected.met_by(a_snapshot(), NOW + DEADLINE)
