"""Properties of the estimate, for every model on every node."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.estimating import BYTES_PER_GIB, Estimate, Infeasible, MemoryNeed, ModelNeed, Settings, estimate
from plimsoll.model.cluster import Device
from plimsoll.presets import ModelShape

needs = st.builds(ModelNeed, st.floats(0.01, 5000), st.integers(0, 2_000_000))
nodes = st.builds(Device, st.just(""), st.integers(1024, 300_000), st.integers(1, 16))
settings = st.builds(
    Settings,
    utilization=st.floats(0.1, 1),
    overhead_gib=st.floats(0, 10),
    context_length=st.integers(1, 262_144),
)
growth = st.floats(1, 10)


def gpus_of(outcome: Estimate | Infeasible) -> float:
    """The number of GPUs; Infeasible counts as more than any number."""
    return outcome.min_gpus if isinstance(outcome, Estimate) else float("inf")


@given(needs, nodes, settings)
def test_an_estimate_has_room_for_weights_kv_cache_and_overhead(
    need: ModelNeed, on: Device, given_settings: Settings
) -> None:
    found = estimate(need, on, given_settings)
    if isinstance(found, Infeasible):
        return
    weights = need.size_gib * given_settings.weight_factor / found.min_gpus
    cache = given_settings.context_length * need.bytes_per_token / on.count / BYTES_PER_GIB
    taken = weights * given_settings.activation_factor + cache + given_settings.overhead_gib
    assert taken <= on.memory_gib * given_settings.utilization * (1 + 1e-9)


shapes = st.builds(
    ModelShape,
    layers=st.integers(1, 100),
    heads=st.sampled_from([8, 16, 40, 64]),
    kv_heads=st.sampled_from([1, 8, 10]),
    head_dim=st.sampled_from([64, 128]),
)


@given(st.floats(0.01, 5000), shapes, nodes, settings)
@example(805.34, ModelShape(61, 128, 1, 512, 512), Device("", 95830, 2), Settings(context_length=2048))
def test_the_largest_stage_of_a_model_fits_and_on_fewer_nodes_it_does_not(
    size: float, shape: ModelShape, on: Device, given_settings: Settings
) -> None:
    """vLLM splits a model over nodes by whole layers (get_pp_indices): one stage has as many as the others, or more."""
    need = ModelNeed(size, shape.bytes_per_token, shape=shape)
    found = estimate(need, on, given_settings)
    if isinstance(found, Infeasible):
        return
    counted = min(given_settings.context_length, shape.context_limit or given_settings.context_length)

    def fits(stages: int) -> bool:
        most = max(len(range(stage, shape.layers, stages)) for stage in range(stages))
        tensor = found.serving.tensor
        weights = size * given_settings.weight_factor * given_settings.activation_factor * most / shape.layers / tensor
        cache = counted * shape.bytes_per_token * most / shape.layers / shape.cache_parts(tensor) / BYTES_PER_GIB
        available = on.memory_gib * given_settings.utilization - given_settings.overhead_gib
        return weights + cache <= available * (1 + 1e-9)

    assert found.nodes <= shape.layers
    assert fits(found.nodes)
    formula = estimate(replace(need, shape=None), on, given_settings)
    assert isinstance(formula, Estimate)
    assert found.nodes == formula.nodes or not fits(found.nodes - 1)


@given(st.floats(0.01, 100), shapes, nodes, st.booleans())
def test_engines_of_a_node_use_as_many_gpus_as_vllm_can(
    size: float, shape: ModelShape, on: Device, experts: bool
) -> None:
    """vLLM cuts experts over all engines as one tensor-parallel group, and by whole parts of their width."""
    shape = replace(shape, experts=experts)
    found = estimate(ModelNeed(size, shape.bytes_per_token, shape=shape), on)
    if isinstance(found, Infeasible) or found.nodes > 1:
        return
    serving = found.serving
    assert serving.gpus + serving.unused == on.count
    assert serving.longest is not None
    assert serving.longest >= min(2048, serving.context_length), "each engine has room for its own copy"
    if not experts and serving.tensor == 1:
        assert serving.unused == 0
    else:
        assert all(not divisor % serving.gpus for divisor in shape.divisors)
        assert serving.unused < serving.gpus, "no more engines of that size fit"


@given(needs, nodes, settings)
def test_nodes_are_the_fewest_that_hold_the_gpus(need: ModelNeed, on: Device, given_settings: Settings) -> None:
    found = estimate(need, on, given_settings)
    if isinstance(found, Estimate):
        assert (found.nodes - 1) * on.count < found.min_gpus <= found.nodes * on.count


@given(needs, nodes, settings, growth)
def test_a_larger_model_never_needs_fewer_gpus(
    need: ModelNeed, on: Device, given_settings: Settings, factor: float
) -> None:
    larger = replace(need, size_gib=need.size_gib * factor)
    assert gpus_of(estimate(larger, on, given_settings)) >= gpus_of(estimate(need, on, given_settings))


@given(needs, nodes, settings, growth)
def test_a_longer_context_never_needs_fewer_gpus(
    need: ModelNeed, on: Device, given_settings: Settings, factor: float
) -> None:
    longer = replace(given_settings, context_length=int(given_settings.context_length * factor))
    assert gpus_of(estimate(need, on, longer)) >= gpus_of(estimate(need, on, given_settings))


@given(needs, nodes, settings, growth)
def test_more_memory_never_needs_more_gpus(
    need: ModelNeed, on: Device, given_settings: Settings, factor: float
) -> None:
    roomier = replace(on, memory_mib=int((on.memory_mib or 0) * factor))
    assert gpus_of(estimate(need, roomier, given_settings)) <= gpus_of(estimate(need, on, given_settings))


@given(needs, nodes, settings, st.integers(1, 16))
def test_more_gpus_in_a_node_never_need_more_nodes(
    need: ModelNeed, on: Device, given_settings: Settings, more: int
) -> None:
    before = estimate(need, on, given_settings)
    after = estimate(need, replace(on, count=on.count + more), given_settings)
    if isinstance(before, Estimate):
        assert isinstance(after, Estimate)
        assert after.nodes <= before.nodes


@given(st.floats(0.01, 5000), nodes)
def test_a_declared_need_gets_the_fewest_gpus_that_hold_it(gib: float, on: Device) -> None:
    found = estimate(MemoryNeed(gib), on)
    assert isinstance(found, Estimate)
    assert found.min_gpus * on.memory_gib >= gib * (1 - 1e-9)
    assert (found.min_gpus - 1) * on.memory_gib < gib
