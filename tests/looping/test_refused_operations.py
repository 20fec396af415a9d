"""Operations that the cluster refuses: each waits for its own next attempt, and nothing else waits for it."""

from collections.abc import Iterable
from datetime import timedelta
from types import MappingProxyType

import pytest

from plimsoll.apply import Failure, FailureKind, Outcome
from plimsoll.loop import FIRST_PAUSE, LONGEST_PAUSE
from plimsoll.model import ObjectKey, Plan, Snapshot
from tests.builders import a_claim, a_snapshot, an_environment
from tests.looping.cluster import Cluster


class Refusing(Cluster):
    """Refuses deletions by name, and says when each was tried."""

    def __init__(self, *names: str, kind: FailureKind = FailureKind.REFUSED) -> None:
        super().__init__(left(*names))
        self.refused = set(names)
        self.kind = kind
        self.tried: dict[str, list[float]] = {}
        self.began = self.now

    def apply(self, plan: Plan) -> Outcome:
        failed: dict[ObjectKey, Failure] = {}
        for each in plan.deletions:
            self.tried.setdefault(each.key.name, []).append((self.now - self.began).total_seconds())
            if each.key.name in self.refused:
                failed[each.key] = Failure(self.kind, "a webhook says no")
        return Outcome(failed=MappingProxyType(failed))


def left(*names: str, limit: int = 2) -> Snapshot:
    environment = an_environment(nap=True, limits={"deletionsPerTick": limit})
    return a_snapshot(*(a_claim(name, ("team", "gone")) for name in names), environment=environment)


def test_each_waits_twice_as_long_as_before_and_others_are_not_kept_waiting() -> None:
    cluster = Refusing("a", "b", "c")
    cluster.refused = {"a", "b"}
    loop = cluster.loop()
    for _ in range(600):
        loop.run_round()
        cluster.now += timedelta(seconds=1)
    first = FIRST_PAUSE.total_seconds()
    assert cluster.tried["a"][:4] == [0, first, 3 * first, 7 * first]
    gaps = [later - before for before, later in zip(cluster.tried["a"], cluster.tried["a"][1:], strict=False)]
    assert max(gaps) == LONGEST_PAUSE.total_seconds()
    assert cluster.tried["c"][0] <= 1, "the refused ones take nothing of the limit"


def test_a_clock_that_is_set_back_lengthens_no_pause() -> None:
    cluster = Refusing("a")
    loop = cluster.loop()
    cluster.now += timedelta(hours=2)
    loop.run_round()
    cluster.now -= timedelta(hours=2)
    loop.run_round()
    assert cluster.tried["a"] == [7200, 0]


@pytest.mark.parametrize("kind", [FailureKind.UNREACHABLE, FailureKind.BEING_DELETED])
def test_what_is_not_of_the_object_is_tried_in_the_next_round(kind: FailureKind) -> None:
    cluster = Refusing("a", kind=kind)
    loop = cluster.loop()
    for _ in range(3):
        loop.run_round()
        cluster.now += timedelta(seconds=1)
    assert cluster.tried["a"] == [0, 1, 2]


def test_a_round_says_what_waits_and_why_until_it_is_done() -> None:
    cluster = Refusing("a")
    loop = cluster.loop()
    assert not loop.run_round().waiting
    result = loop.run_round()
    assert reasons(result.waiting.values()) == ["Refused: a webhook says no"]
    assert result.plan is not None
    assert result.plan.empty
    cluster.refused = set()
    cluster.now += FIRST_PAUSE
    loop.run_round()
    assert not loop.run_round().waiting


def test_what_is_gone_is_forgotten() -> None:
    cluster = Refusing("a")
    loop = cluster.loop()
    loop.run_round()
    cluster.seen = [left()]
    assert not loop.run_round().waiting
    cluster.seen = [left("a")]
    loop.run_round()
    assert cluster.tried["a"] == [0, 0]


def reasons(failures: Iterable[Failure]) -> list[str]:
    return [str(each) for each in failures]
