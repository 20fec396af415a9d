"""Which disturbances a run has."""

from collections import Counter
from random import Random

import pytest

from tests.e2e.chaos.disturbances import ALWAYS, DISTURBANCES, schedule

KINDS = list(DISTURBANCES)


@pytest.mark.parametrize("seed", range(20))
def test_a_short_run_has_what_is_always_drawn(seed: int) -> None:
    drawn = schedule(15, Random(seed), KINDS)
    assert len(drawn) == len(set(drawn)) == 15
    assert set(ALWAYS) <= set(drawn) <= set(KINDS)


def test_runs_of_other_seeds_have_other_kinds_in_another_order() -> None:
    runs = [schedule(15, Random(seed), KINDS) for seed in range(5)]
    assert len({tuple(run) for run in runs}) == len({frozenset(run) for run in runs}) == 5
    assert runs[1] == schedule(15, Random(1), KINDS)


def test_a_long_run_has_every_kind_before_any_is_repeated() -> None:
    counts = Counter(schedule(200, Random(1), KINDS))
    assert counts.keys() == set(KINDS)
    assert max(counts.values()) - min(counts.values()) == 1
