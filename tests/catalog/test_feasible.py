"""The instance types that a replica fits, and their order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.catalog import Catalog
from plimsoll.estimating import Estimate, MemoryNeed, ModelNeed, Settings, estimate
from plimsoll.model.cluster import InstanceType

PHI_4 = ModelNeed(27.31, 204800, spans_nodes=False)


def names(catalog: Catalog, need: ModelNeed | MemoryNeed, **limits: Any) -> list[str]:
    return [each.type.name for each in catalog.feasible(need, **limits)]


def test_without_prices_the_order_is_fewest_gpus_then_least_memory() -> None:
    found = Catalog.builtin().feasible(PHI_4, clouds={"azure"})
    order = [(each.type.gpus * each.estimate.nodes, each.type.gpus * (each.type.gpu_memory_mib or 0)) for each in found]
    assert found[0].type.name == "Standard_NC24ads_A100_v4"
    assert order == sorted(order)


def test_the_smaller_machine_comes_first_among_equal_gpus() -> None:
    sizes = [name for name in names(Catalog.builtin(), MemoryNeed(20), clouds={"aws"}) if name.startswith("g6.")]
    assert sizes[:5] == ["g6.xlarge", "g6.2xlarge", "g6.4xlarge", "g6.8xlarge", "g6.16xlarge"]


def test_one_node_comes_before_two_with_the_same_gpus() -> None:
    found = names(Catalog.builtin(), ModelNeed(61.03, 262144), clouds={"azure"})
    assert found.index("Standard_NC48ads_A100_v4") < found.index("Standard_NC24ads_A100_v4")


def test_a_known_price_counts_for_all_nodes_of_a_replica() -> None:
    catalog = Catalog.builtin().with_own_prices({"standard_nc24ads_a100_v4": 3, "Standard_NC48ads_A100_v4": 5})
    found = catalog.feasible(ModelNeed(61.03, 262144))
    assert [each.price_per_hour for each in found[:3]] == [5, 6, None]
    assert found[0].type.name == "Standard_NC48ads_A100_v4"
    assert "5 an hour for 1 node" in found[0].reasons
    assert "price not known" in found[2].reasons[-1]


def test_only_nvidia_types_that_match_the_restrictions() -> None:
    assert all(each.type.nvidia for each in Catalog.builtin().feasible(MemoryNeed(1)))
    assert names(Catalog.builtin(), PHI_4, names=["P5.48XLARGE", "g6.xlarge", "nothing"]) == ["p5.48xlarge"]
    assert names(Catalog.builtin(), PHI_4, names=[]) == []
    assert names(Catalog.builtin(), PHI_4, clouds={"arc"}) == []


def test_the_reasons_name_gpus_nodes_and_source() -> None:
    [candidate] = Catalog.builtin().feasible(ModelNeed(61.03, 262144), names=["Standard_NC24ads_A100_v4"])
    assert candidate.reasons[0] == (
        "one replica needs 2 of its GPUs (1 x NVIDIA-A100-80GB-PCIe of 81920 MiB): 2 nodes, 2 GPUs in total"
    )
    assert candidate.reasons[1] == "figures from table, azure"


def test_settings_of_a_product_count() -> None:
    need = ModelNeed(76, 0, spans_nodes=False)
    assert names(Catalog.builtin(), need, names=["Standard_NC40ads_H100_v5"]) == []
    settings = Settings(utilization_by_product={"H100": 0.92})
    assert names(Catalog.builtin(), need, names=["Standard_NC40ads_H100_v5"], settings=settings) != []


types = st.builds(
    InstanceType,
    name=st.text("abcdef", min_size=1, max_size=3),
    cloud=st.just(""),
    gpus=st.integers(1, 8),
    gpu_memory_mib=st.integers(4096, 200_000),
    product=st.just("NVIDIA X"),
    price_per_hour=st.none() | st.floats(0, 100),
)


@given(st.lists(types, max_size=8, unique_by=lambda each: each.name), st.floats(1, 500), st.booleans(), st.randoms())
def test_exactly_the_types_that_fit_for_any_order_of_the_input(
    given_types: list[InstanceType], gib: float, spans: bool, random: object
) -> None:
    need = ModelNeed(gib, 100_000, spans)
    found = Catalog(given_types).feasible(need)
    fitting = {
        each.name for each in given_types if each.node_gpus and isinstance(estimate(need, each.node_gpus), Estimate)
    }
    assert {each.type.name for each in found} == fitting
    assert found == Catalog(reversed(given_types)).feasible(need)
    prices = [each.price_per_hour for each in found if each.price_per_hour is not None]
    assert prices == sorted(prices)
    assert all(each.price_per_hour is not None for each in found[: len(prices)])
