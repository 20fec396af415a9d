"""Instance types by name, and the effect of live sources."""

from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.catalog import Catalog, UnknownInstanceTypeError
from plimsoll.model.cluster import Evidence, InstanceType, InvalidFigureError


def a_type(name: str = "own.large", gpus: int = 1, mib: int = 24576, product: str = "NVIDIA L4") -> InstanceType:
    return InstanceType(name, "", gpus, mib, product, Evidence.OBSERVED, Evidence.OBSERVED, source="a node")


@pytest.mark.parametrize(
    ("name", "cloud", "gpus", "mib"),
    [
        ("Standard_NC24ads_A100_v4", "azure", 1, 81920),
        ("standard_nc80adis_h100_v5", "azure", 2, 95830),
        (" Standard_NV36ads_A10_v5 ", "azure", 1, 24512),
        ("Standard_ND96isr_H200_v5", "azure", 8, 143771),
        ("Standard_ND96asr_A100_v4", "azure", 8, 40960),
        ("Standard_NC16_A2", "arc", 2, 16384),
        ("P5.48XLARGE", "aws", 8, 81559),
        ("g6.12xlarge", "aws", 4, 23034),
        ("a3-highgpu-8g", "gcp", 8, 81559),
    ],
)
def test_a_type_is_found_ignoring_case_with_the_memory_of_one_gpu(name: str, cloud: str, gpus: int, mib: int) -> None:
    found = Catalog.builtin().lookup(name)
    assert found is not None
    assert (found.cloud, found.gpus, found.gpu_memory_mib) == (cloud, gpus, mib)


def test_the_table_has_each_type_once() -> None:
    text = resources.files("plimsoll.cluster.catalog").joinpath("instance_types.csv").read_text("utf-8")
    assert len(Catalog.builtin().types) == len(text.splitlines()) - 1 == 191
    assert {each.cloud for each in Catalog.builtin().types} == {"azure", "arc", "aws", "gcp"}


def test_types_of_other_vendors_are_detected() -> None:
    found = {name: Catalog.builtin().lookup(name) for name in ("trn1.2xlarge", "g4ad.xlarge", "g6.xlarge")}
    assert [each.nvidia for each in found.values() if each] == [False, False, True]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Standard_NC24ads_A100", "Standard_NC24ads_A100_v4"),
        ("standard_nc24ads_a100_v5", "Standard_NC24ads_A100_v4"),
        ("NC24ads_A100_v4", "Standard_NC24ads_A100_v4"),
        ("p5.48large", "p5.48xlarge"),
        ("H200", "Standard_ND96isr_H200_v5"),
    ],
)
def test_similar_names_are_suggested(name: str, meant: str) -> None:
    assert Catalog.builtin().lookup(name) is None
    assert meant in Catalog.builtin().near(name)
    assert len(Catalog.builtin().near(name)) <= 3


@pytest.mark.parametrize("name", ["", "x", "zzzzzzzzzz"])
def test_nothing_is_suggested_without_a_similar_name(name: str) -> None:
    assert Catalog.builtin().near(name) == ()


@given(st.text(max_size=300))
def test_any_text_can_be_looked_up(name: str) -> None:
    assert all(Catalog.builtin().lookup(near) for near in Catalog.builtin().near(name))


def test_live_figures_take_precedence_and_missing_ones_stay() -> None:
    live = a_type("STANDARD_NC24ADS_A100_V4", mib=81559, product="NVIDIA-A100-SXM4-80GB")
    merged = Catalog.builtin().with_types([live])
    found = merged.lookup("standard_nc24ads_a100_v4")
    assert found is not None
    assert (found.gpu_memory_mib, found.product, found.source) == (81559, "NVIDIA-A100-SXM4-80GB", "a node")
    assert (found.name, found.cloud, found.vcpus, found.memory_mib) == (
        "Standard_NC24ads_A100_v4",
        "azure",
        24,
        220 * 1024,
    )
    assert Catalog.builtin().lookup("Standard_NC24ads_A100_v4") != found


def test_slightly_less_than_nominal_memory_is_no_contradiction() -> None:
    for name, mib, product in (
        ("Standard_NV36ads_A10_v5", 23028, "NVIDIA-A10-24Q"),
        ("Standard_ND96isr_H200_v5", 143771, "NVIDIA-H200"),
        ("g6.xlarge", 22888, "NVIDIA L4"),
    ):
        known = Catalog.builtin().lookup(name)
        assert known is not None
        assert Catalog.builtin().with_types([a_type(name, known.gpus, mib, product)]).differences == ()


@pytest.mark.parametrize(
    "live",
    [
        a_type("Standard_NV36ads_A10_v5", gpus=2, product="NVIDIA A10"),
        a_type("Standard_NV36ads_A10_v5", mib=12288, product="NVIDIA A10"),
        a_type("Standard_NV36ads_A10_v5", mib=81920, product="NVIDIA A10"),
        a_type("Standard_NV36ads_A10_v5", product="NVIDIA A100"),
    ],
)
def test_a_contradiction_is_reported_with_both_sides(live: InstanceType) -> None:
    merged = Catalog.builtin().with_types([live])
    [difference] = map(str, merged.differences)
    assert live.describe_gpus() + " by a node" in difference
    assert "1 x NVIDIA-A10-24Q of 24512 MiB by table" in difference
    assert merged.lookup(live.name) == merged.differences[0].live or merged.differences


def test_a_type_that_is_known_from_the_cluster_only() -> None:
    merged = Catalog.builtin().with_types([a_type()])
    assert merged.lookup("OWN.LARGE") == a_type()
    assert merged.differences == ()
    assert "own.large" in merged.near("own.larg")


def test_prices_for_an_unknown_type_are_refused_with_a_similar_name() -> None:
    with pytest.raises(UnknownInstanceTypeError) as error:
        Catalog.builtin().with_own_prices({"g6.xlarg": 1})
    assert "g6.xlarge" in str(error.value)


@pytest.mark.parametrize(
    "bad",
    [
        {"gpus": 0},
        {"gpus": -1},
        {"gpu_memory_mib": 0},
        {"gpu_memory_mib": float("nan")},
        {"name": ""},
        {"price_per_hour": -1.0},
        {"price_per_hour": float("nan")},
    ],
)
def test_impossible_figures_are_refused(bad: dict[str, float | str]) -> None:
    fields: dict[str, Any] = {"name": "t", "cloud": "", "gpus": 1, "gpu_memory_mib": 1024, "product": "NVIDIA L4"} | bad
    with pytest.raises(InvalidFigureError):
        InstanceType(**fields)


def test_live_types_may_be_an_iterator() -> None:
    def source() -> Iterator[InstanceType]:
        yield a_type()

    assert Catalog([]).with_types(source()).types == (a_type(),)
