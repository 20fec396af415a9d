"""Prices: the Environment's own, else those of the catalog's lists in the same currency, with where they are from."""

from typing import Any

import pytest

from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cost import Prices, cluster_cost
from plimsoll.errors import PlimsollError
from plimsoll.model import Snapshot
from plimsoll.plan.view import ClusterView
from tests.builders import NC24, a_gpu_node, a_snapshot, an_environment

LISTED = 3.673
"""On-demand list price of NC24 in eastus."""


def with_prices(*objects: Any, **catalog: Any) -> Snapshot:
    return a_snapshot(*objects, environment=an_environment(catalog=catalog))


def test_without_own_prices_those_of_the_list_are_used() -> None:
    prices = Prices.of(with_prices())
    assert prices.of_type(NC24.upper()) == LISTED
    basis = prices.basis([NC24, "g6.xlarge", "own.large"])
    assert (basis.currency, basis.own) == ("USD", False)
    assert basis.lists == (("eastus", "2026-06-18"), ("us-east-1", "2026-07-20"))
    assert basis.as_json()["lists"][0] == {"region": "eastus", "date": "2026-06-18"}


@pytest.mark.parametrize(("currency", "listed"), [("USD", 0.8048), ("EUR", None), (None, None)])
def test_list_prices_are_added_to_own_ones_in_one_currency_alone(currency: str | None, listed: float | None) -> None:
    prices = Prices.of(with_prices(prices={NC24: 1.0}, **({"currency": currency} if currency else {})))
    assert (prices.of_type(NC24), prices.of_type("g6.xlarge")) == (1.0, listed)
    basis = prices.basis([NC24, "g6.xlarge"])
    assert (basis.currency, basis.own, bool(basis.lists)) == (currency or "", True, listed is not None)


def test_a_discount_is_on_list_prices_and_is_told() -> None:
    snapshot = with_prices(prices={NC24: 1.0}, currency="USD", discountPercent=25)
    prices = Prices.of(snapshot)
    assert prices.of_type(NC24) == 1.0
    assert prices.of_type("g6.xlarge") == pytest.approx(0.8048 * 0.75)
    assert prices.basis([NC24]).discount == 0
    basis = prices.basis([NC24, "g6.xlarge"])
    assert (basis.discount, basis.as_json()["discountPercent"]) == (25, 25)
    assert "us-east-1 (2026-07-20) less 25 %" in str(basis)
    effective = ClusterView(snapshot).types.catalog.lookup("g6.xlarge")
    assert effective is not None
    assert effective.shown_price == prices.of_type("g6.xlarge"), "it is taken off once"


@pytest.mark.parametrize("percent", [-1, 101, "nan"])
def test_a_discount_is_between_nothing_and_all(percent: Any) -> None:
    with pytest.raises(PlimsollError, match="discountPercent"):
        with_prices(discountPercent=percent)


def test_a_type_without_a_price_has_no_basis() -> None:
    basis = Prices.of(with_prices()).basis(["p5e.48xlarge", "own.large"])
    assert not basis
    assert basis.as_json() == {"currency": None, "own": False, "lists": [], "discountPercent": 0}


def test_the_cost_of_a_cluster_names_its_lists_and_the_nodes_without_a_price() -> None:
    nodes = [a_gpu_node("a", instance_type=NC24), a_gpu_node("b", instance_type="p5e.48xlarge")]
    snapshot = with_prices(*nodes)
    cost = cluster_cost(gpu_ledger(snapshot).accounts(), Prices.of(snapshot))
    assert (cost.hourly, cost.nodes, dict(cost.unpriced)) == (LISTED, 1, {"p5e.48xlarge": 1})
    assert cost.basis.lists == (("eastus", "2026-06-18"),)
