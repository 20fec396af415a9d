"""Properties of the estimate, for every model on every node."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.estimating import BYTES_PER_GIB, Estimate, Infeasible, MemoryNeed, ModelNeed, Settings, estimate
from plimsoll.model.cluster import NodeGpus

needs = st.builds(ModelNeed, st.floats(0.01, 5000), st.integers(0, 2_000_000))
nodes = st.builds(NodeGpus, st.integers(1, 16), st.floats(1024, 300_000))
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
    need: ModelNeed, on: NodeGpus, given_settings: Settings
) -> None:
    found = estimate(need, on, given_settings)
    if isinstance(found, Infeasible):
        return
    weights = need.size_gib * given_settings.weight_factor / found.min_gpus
    cache = given_settings.context_length * need.bytes_per_token / on.count / BYTES_PER_GIB
    taken = weights * given_settings.activation_factor + cache + given_settings.overhead_gib
    assert taken <= on.memory_gib * given_settings.utilization * (1 + 1e-9)


@given(needs, nodes, settings)
def test_nodes_are_the_fewest_that_hold_the_gpus(need: ModelNeed, on: NodeGpus, given_settings: Settings) -> None:
    found = estimate(need, on, given_settings)
    if isinstance(found, Estimate):
        assert (found.nodes - 1) * on.count < found.min_gpus <= found.nodes * on.count


@given(needs, nodes, settings, growth)
def test_a_larger_model_never_needs_fewer_gpus(
    need: ModelNeed, on: NodeGpus, given_settings: Settings, factor: float
) -> None:
    larger = replace(need, size_gib=need.size_gib * factor)
    assert gpus_of(estimate(larger, on, given_settings)) >= gpus_of(estimate(need, on, given_settings))


@given(needs, nodes, settings, growth)
def test_a_longer_context_never_needs_fewer_gpus(
    need: ModelNeed, on: NodeGpus, given_settings: Settings, factor: float
) -> None:
    longer = replace(given_settings, context_length=int(given_settings.context_length * factor))
    assert gpus_of(estimate(need, on, longer)) >= gpus_of(estimate(need, on, given_settings))


@given(needs, nodes, settings, growth)
def test_more_memory_never_needs_more_gpus(
    need: ModelNeed, on: NodeGpus, given_settings: Settings, factor: float
) -> None:
    roomier = replace(on, memory_mib=on.memory_mib * factor)
    assert gpus_of(estimate(need, roomier, given_settings)) <= gpus_of(estimate(need, on, given_settings))


@given(needs, nodes, settings, st.integers(1, 16))
def test_more_gpus_in_a_node_never_need_more_nodes(
    need: ModelNeed, on: NodeGpus, given_settings: Settings, more: int
) -> None:
    before = estimate(need, on, given_settings)
    after = estimate(need, replace(on, count=on.count + more), given_settings)
    if isinstance(before, Estimate):
        assert isinstance(after, Estimate)
        assert after.nodes <= before.nodes


@given(st.floats(0.01, 5000), nodes)
def test_a_declared_need_gets_the_fewest_gpus_that_hold_it(gib: float, on: NodeGpus) -> None:
    found = estimate(MemoryNeed(gib), on)
    assert isinstance(found, Estimate)
    assert found.min_gpus * on.memory_gib >= gib * (1 - 1e-9)
    assert (found.min_gpus - 1) * on.memory_gib < gib
