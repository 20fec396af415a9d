"""Fair shares: quota first, then priority, then weight, never beyond requests and limits."""

import random
from collections.abc import Iterable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.queues import Amount, Claim, PastUsage, QueueTree, Resource, divide, fair_shares
from plimsoll.model.kai import Queue
from tests.queues.manifests import amounts, queue

G = 1000
"""Thousandths of a GPU."""


def claim(name: str, quota: float, wanted: float, weight: float = 1, priority: int = 100, created: str = "") -> Claim:
    return Claim(name, round(min(quota, wanted) * G), round(wanted * G), weight, priority, created)


@pytest.mark.parametrize(
    ("total", "claims", "shares"),
    [
        # Quota first, and not more than is requested.
        (10, [claim("a", 4, 10), claim("b", 2, 10)], {"a": 6, "b": 4}),
        (10, [claim("a", 4, 3), claim("b", 2, 10)], {"a": 3, "b": 7}),
        (10, [claim("a", 4, 1), claim("b", 2, 2)], {"a": 1, "b": 2}),
        # What is left goes by weight.
        (8, [claim("a", 0, 10, 3), claim("b", 0, 10, 1)], {"a": 6, "b": 2}),
        (9, [claim("a", 1, 10, 3), claim("b", 0, 10, 1)], {"a": 7, "b": 2}),
        (8, [claim("a", 0, 10, 0), claim("b", 0, 10)], {"a": 0, "b": 8}),
        # What one does not need is the others'.
        (9, [claim("a", 0, 1), claim("b", 0, 10), claim("c", 0, 10)], {"a": 1, "b": 4, "c": 4}),
        # A higher priority first.
        (8, [claim("a", 0, 6, priority=200), claim("b", 0, 6)], {"a": 6, "b": 2}),
        (8, [claim("a", 0, 6, priority=200), claim("b", 4, 6)], {"a": 4, "b": 4}),
        # What is lost by rounding is passed down, and what is then left goes by priority again.
        (
            1,
            [claim("a", 0, 1, priority=200), claim("b", 0, 1, priority=200), claim("c", 0, 1)],
            {"a": 0, "b": 0, "c": 1},
        ),
        (
            3,
            [claim("a", 0, 9, priority=200), claim("b", 0, 9, priority=200), claim("c", 0, 9)],
            {"a": 1, "b": 1, "c": 1},
        ),
        (
            3,
            [claim("a", 0, 9, priority=200), claim("b", 0, 9, priority=200), claim("c", 0, 0)],
            {"a": 2, "b": 1, "c": 0},
        ),
        # Whole GPUs: the part that cannot be divided goes to the one that lost most, then to the oldest.
        (5, [claim("a", 0, 9), claim("b", 0, 9)], {"a": 3, "b": 2}),
        (5, [claim("a", 0, 9, created="2"), claim("b", 0, 9, created="1")], {"a": 2, "b": 3}),
        (5, [claim("a", 0, 9, 2), claim("b", 0, 9, 1)], {"a": 3, "b": 2}),
        # Fractions are given if they are requested.
        (1, [claim("a", 0, 0.3), claim("b", 0, 0.9)], {"a": 0.3, "b": 0.7}),
        # The last unit is given completely, although less is requested.
        (3, [claim("a", 0, 1.6), claim("b", 0, 9)], {"a": 2, "b": 1}),
        # Quotas that promise more than there is are kept.
        (4, [claim("a", 4, 4), claim("b", 4, 4)], {"a": 4, "b": 4}),
        (0, [], {}),
    ],
)
def test_one_level(total: float, claims: list[Claim], shares: dict[str, float]) -> None:
    assert {name: share / G for name, share in divide(round(total * G), claims).items()} == shares


CLAIMS = st.lists(
    st.builds(
        lambda name, quota, more, weight, priority: Claim(name, quota, quota + more, weight, priority),
        st.text("abcdefgh", min_size=1, max_size=3),
        st.integers(0, 5000),
        st.integers(0, 9000),
        st.sampled_from([0, 0.5, 1, 2, 3]),
        st.sampled_from([50, 100, 200]),
    ),
    max_size=7,
    unique_by=lambda each: each.name,
)
TOTALS = st.integers(0, 40_000)


@given(TOTALS, CLAIMS)
def test_shares_do_not_exceed_the_total_or_the_quotas(total: int, claims: list[Claim]) -> None:
    assert sum(divide(total, claims).values()) <= max(total, sum(each.guaranteed for each in claims))


@given(TOTALS, CLAIMS)
def test_each_queue_gets_its_quota_and_at_most_what_it_requests(total: int, claims: list[Claim]) -> None:
    shares = divide(total, claims)
    assert all(each.guaranteed <= shares[each.name] < each.wanted + G for each in claims)


@given(TOTALS, CLAIMS)
def test_nothing_is_left_while_a_queue_with_a_weight_requests_more(total: int, claims: list[Claim]) -> None:
    shares = divide(total, claims)
    hungry = [each for each in claims if each.weight and shares[each.name] < each.wanted]
    assert not hungry or sum(shares.values()) >= total


@given(TOTALS, CLAIMS)
def test_a_lower_priority_gets_only_rounding_losses_while_a_higher_one_requests_more(
    total: int, claims: list[Claim]
) -> None:
    shares = divide(total, claims)
    for priority in (50, 100):
        lower = sum(shares[each.name] - each.guaranteed for each in claims if each.priority <= priority)
        higher = [each for each in claims if each.weight and each.priority > priority]
        if any(shares[each.name] < each.wanted for each in higher):
            assert lower < G * len(higher)


@given(TOTALS, CLAIMS)
def test_queues_of_one_priority_share_by_weight_up_to_one_gpu(total: int, claims: list[Claim]) -> None:
    shares = divide(total, claims)
    hungry = [each for each in claims if each.weight and shares[each.name] < each.wanted]
    for one in hungry:
        for other in hungry:
            if one.priority == other.priority:
                extra, others = shares[one.name] - one.guaranteed, shares[other.name] - other.guaranteed
                # Each may have lost or won less than a GPU by rounding.
                assert (extra - G) * Fraction(other.weight) <= (others + G) * Fraction(one.weight)


@given(TOTALS, CLAIMS, st.randoms())
def test_the_order_of_queues_makes_no_difference(total: int, claims: list[Claim], shuffle: random.Random) -> None:
    shuffled = list(claims)
    shuffle.shuffle(shuffled)
    assert divide(total, shuffled) == divide(total, claims)


def gpus(tree: Iterable[Queue], total: float, requested: dict[str, float]) -> dict[str, float]:
    def amount(value: float) -> Amount:
        return Amount(round(value * G))

    shares = fair_shares(
        QueueTree(tree), {"": amount(total)}, {name: amount(value) for name, value in requested.items()}
    )
    return {name: float(share.gpu / G) for name, share in shares.items()}


def test_the_share_of_a_parent_is_divided_over_its_children() -> None:
    tree = [
        Queue.read(manifest)
        for manifest in (
            queue("research", gpu=amounts(6)),
            queue("serving", gpu=amounts(2)),
            queue("training", "research", amounts(2, weight=3)),
            queue("notebooks", "research", amounts(0, limit=2)),
            queue("lost", "gone"),
        )
    ]
    assert gpus(tree, 10, {"training": 20, "notebooks": 20, "serving": 1}) == {
        "research": 9, "serving": 1, "training": 7, "notebooks": 2,
    }  # fmt: skip


def test_each_resource_is_divided_by_itself() -> None:
    tree = QueueTree([Queue.read(queue("a", resources={"gpu": amounts(0), "cpu": amounts(0, 500), "memory": {}}))])
    total, wanted = Amount(4 * G, 8000 * G, 100 * G), Amount(2 * G, 4000 * G, 50 * G)
    assert fair_shares(tree, {"": total}, {"a": wanted})["a"] == Amount(2 * G, 500 * G, 0)


def test_past_usage_shifts_shares_by_the_k_value() -> None:
    tree = QueueTree([Queue.read(queue(name, gpu=amounts(0))) for name in ("a", "b")])
    wanted = {"a": Amount(20 * G), "b": Amount(20 * G)}
    used = {"a": {Resource.GPU: 0.75}, "b": {Resource.GPU: 0.25}}
    for k_value, expected in ((0, (5, 5)), (1, (3, 7)), (4, (0, 10))):
        shares = fair_shares(tree, {"": Amount(10 * G)}, wanted, PastUsage(k_value, used))
        assert (shares["a"].gpu / G, shares["b"].gpu / G) == expected
