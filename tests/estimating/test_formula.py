"""GPUs and nodes by the formula: known models on known nodes, and refusals."""

import math
from dataclasses import replace

import pytest

from plimsoll.cluster.profiles import mig_slice
from plimsoll.estimating import Estimate, Infeasible, MemoryNeed, ModelNeed, Need, Settings, estimate, unknown_context
from plimsoll.model.cluster import MIB_PER_GIB, Device, InvalidFigureError
from plimsoll.presets import ModelShape


def gpus(count: int, gib: float, product: str = "") -> Device:
    return Device(product, int(gib * MIB_PER_GIB), count)


A100 = gpus(1, 80)
H100 = gpus(2, 94)
A10 = gpus(1, 24)
H200 = gpus(8, 141)


@pytest.mark.parametrize(
    ("size", "token", "nodes"),
    [
        pytest.param(7.15, 131072, (1, 1, 1, 1), id="phi-4-mini-instruct"),
        pytest.param(27.31, 204800, (1, 1, 2, 1), id="phi-4"),
        pytest.param(61.03, 262144, (2, 1, 4, 1), id="qwen2.5-coder-32b"),
        pytest.param(121.54, 73728, (3, 1, 8, 1), id="gpt-oss-120b"),
        pytest.param(131.42, 327680, (3, 1, 9, 1), id="llama-3.3-70b"),
        pytest.param(641.3, 70272, (11, 5, 39, 1), id="deepseek-r1-0528"),
    ],
)
def test_nodes_of_known_models(size: float, token: int, nodes: tuple[int, ...]) -> None:
    found = [estimate(ModelNeed(size, token), on) for on in (A100, H100, A10, H200)]
    assert tuple(each.nodes for each in found) == nodes


@pytest.mark.parametrize(
    ("need", "on", "min_gpus", "nodes"),
    [
        (ModelNeed(8, 8192), gpus(4, 80), 1, 1),
        (ModelNeed(13.44, 8192), A10, 1, 1),
        (ModelNeed(62.5, 163840), A100, 2, 2),
        (ModelNeed(62.5, 163840), gpus(2, 80), 2, 1),
        (MemoryNeed(16), A100, 1, 1),
        (MemoryNeed(32), gpus(1, 16), 2, 2),
        (MemoryNeed(80), A100, 1, 1),
        (MemoryNeed(80.001), A100, 2, 2),
    ],
)
def test_gpus_and_nodes(need: ModelNeed | MemoryNeed, on: Device, min_gpus: int, nodes: int) -> None:
    found = estimate(need, on)
    assert isinstance(found, Estimate)
    assert (found.min_gpus, found.nodes) == (min_gpus, nodes)


def test_the_calculation_is_reported_line_by_line() -> None:
    lines = {line.name: line for line in estimate(ModelNeed(27.31, 204800), A100).lines}
    assert lines["available on one GPU"].value == pytest.approx(67.2)
    assert lines["KV cache on one GPU"].value == pytest.approx(0.390625)
    assert lines["fixed on one GPU"].value == pytest.approx(2.690625)
    assert lines["left for weights on one GPU"].value == pytest.approx(61.4375)
    assert lines["weights"].value == pytest.approx(27.8562)
    assert lines["available on one GPU"].sum == "80 GiB x 0.84"


def test_gpus_without_room_for_weights_are_refused_with_the_figures() -> None:
    found = estimate(ModelNeed(1, 1_000_000), gpus(1, 8), Settings(context_length=8192))
    assert isinstance(found, Infeasible)
    assert found.min_gpus is None
    assert "6.72 GiB" in found.reason
    assert "2.3 GiB" in found.reason


def test_exactly_zero_room_is_refused() -> None:
    settings = Settings(utilization=0.5, overhead_gib=4, context_length=1)
    assert isinstance(estimate(ModelNeed(1, 0), gpus(1, 8), settings), Infeasible)
    assert isinstance(estimate(ModelNeed(1, 0), gpus(1, 8.001), settings), Estimate)


def test_a_one_node_model_that_needs_two_nodes_is_refused_with_the_figures() -> None:
    found = estimate(ModelNeed(27.31, 204800, spans_nodes=False), A10)
    assert isinstance(found, Infeasible)
    assert (found.min_gpus, found.nodes) == (2, 2)
    assert isinstance(estimate(ModelNeed(27.31, 204800, spans_nodes=False), gpus(2, 24)), Estimate)


def test_a_model_that_cannot_be_split_must_fit_one_gpu() -> None:
    whole = ModelNeed(27.31, 204800, spans_nodes=False, shape=ModelShape(32, 71, 1, 64))
    refused = estimate(whole, gpus(2, 24))
    assert isinstance(refused, Infeasible)
    assert isinstance(estimate(whole, gpus(2, 80)), Estimate)


def test_a_replica_must_fit_one_mig_slice() -> None:
    fits = estimate(ModelNeed(8, 8192), mig_slice("2g.24gb"))
    assert (fits.min_gpus, fits.nodes) == (1, 1)
    refused = estimate(ModelNeed(8, 8192), mig_slice("1g.10gb"))
    assert isinstance(refused, Infeasible)


@pytest.mark.parametrize("profile", ["", "2g", "0g.10gb", "8g.80gb", "1g.0gb", "1g.10mb", "mig-1g.10gb", "1g.-5gb"])
def test_an_invalid_mig_profile_is_refused(profile: str) -> None:
    with pytest.raises(InvalidFigureError, match="not a MIG profile"):
        mig_slice(profile)


def test_mig_profiles_with_media_extensions() -> None:
    assert mig_slice("1g.18gb+me").memory_mib == mig_slice("1G.18GB").memory_mib == 16 * MIB_PER_GIB


def test_utilization_of_a_product_takes_precedence_and_is_matched_by_words() -> None:
    settings = Settings(utilization_by_product={"A10": 0.5, "NVIDIA H100": 0.92, "h100 nvl": 0.9})
    assert settings.for_product("NVIDIA-A100-SXM4-80GB").utilization == 0.84
    assert settings.for_product("NVIDIA A10").utilization == 0.5
    assert settings.for_product("NVIDIA-H100-80GB-HBM3").utilization == 0.92
    assert settings.for_product("").utilization == 0.84
    assert estimate(ModelNeed(76, 0), gpus(1, 94, "NVIDIA H100"), settings).min_gpus == 1
    assert estimate(ModelNeed(76, 0), gpus(1, 94, "NVIDIA B200"), settings).min_gpus == 2


def test_a_kv_cache_in_fp8_needs_half_the_memory() -> None:
    need = ModelNeed(10, 1_000_000)
    half = estimate(need, A100, Settings(context_length=20_000, kv_value_bytes=1))
    full = estimate(need, A100, Settings(context_length=10_000))
    assert [line.value for line in half.lines[:-1]] == pytest.approx([line.value for line in full.lines[:-1]])


BAD = [0, -1, math.nan, math.inf, -math.inf, 1e300]


@pytest.mark.parametrize("value", BAD)
def test_impossible_figures_are_refused(value: float) -> None:
    with pytest.raises(InvalidFigureError, match="model size"):
        ModelNeed(value, 8192)
    with pytest.raises(InvalidFigureError, match="GPU memory need"):
        MemoryNeed(value)
    with pytest.raises(InvalidFigureError, match="memory of one GPU"):
        estimate(MemoryNeed(1), Device("", value, 1))  # type: ignore[arg-type]
    with pytest.raises(InvalidFigureError, match="context length"):
        Settings(context_length=value)  # type: ignore[arg-type]
    with pytest.raises(InvalidFigureError, match="utilization"):
        Settings(utilization=value)
    with pytest.raises(InvalidFigureError, match="utilization of H100"):
        Settings(utilization_by_product={"H100": value})


@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
def test_bytes_per_token_and_overhead_may_be_zero_but_not_negative(value: float) -> None:
    with pytest.raises(InvalidFigureError, match="bytes per token"):
        ModelNeed(8, value)
    with pytest.raises(InvalidFigureError, match="overhead"):
        Settings(overhead_gib=value)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, 10**16])
def test_the_number_of_gpus_of_a_node_is_an_integer(count: float) -> None:
    with pytest.raises(InvalidFigureError, match="GPUs of a node"):
        estimate(MemoryNeed(1), Device("", 1024, count))  # type: ignore[arg-type]


def test_factors_below_one_are_refused() -> None:
    with pytest.raises(InvalidFigureError, match="activation factor"):
        Settings(activation_factor=0.9)
    with pytest.raises(InvalidFigureError, match="weight factor"):
        Settings(weight_factor=math.nan)


SHAPE = ModelShape(layers=2, heads=4, kv_heads=4, head_dim=8)
OF_UNKNOWN_SHAPE, WITHOUT_LIMIT = ModelNeed(1, 1), ModelNeed(1, 1, shape=SHAPE)
WITH_LIMIT = ModelNeed(1, 1, shape=replace(SHAPE, context_limit=4096))


@pytest.mark.parametrize(
    ("need", "context", "why"),
    [
        (OF_UNKNOWN_SHAPE, None, "layers and heads"),
        (WITHOUT_LIMIT, None, "max_position_embeddings"),
        (WITH_LIMIT, None, ""),
        (OF_UNKNOWN_SHAPE, 2048, ""),
        (WITHOUT_LIMIT, 2048, ""),
        (MemoryNeed(16), None, ""),
        (MemoryNeed(16, model=OF_UNKNOWN_SHAPE), None, "layers and heads"),
        (MemoryNeed(16, model=WITHOUT_LIMIT), None, "max_position_embeddings"),
        (MemoryNeed(16, model=WITH_LIMIT), None, ""),
    ],
)
def test_a_context_that_is_not_known_is_explained(need: Need, context: int | None, why: str) -> None:
    found = unknown_context(need, context)
    assert bool(found) == bool(why)
    assert why in found
