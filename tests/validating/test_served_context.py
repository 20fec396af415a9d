"""The served context length and the declared memory of a model are checked by what the server can use."""

from typing import Any

import pytest

from plimsoll.cluster.catalog import Catalog
from plimsoll.estimating import Infeasible, ModelNeed, Settings, estimate
from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Device
from plimsoll.plan import validate
from plimsoll.presets import ModelCatalog
from tests.builders import a_node, a_snapshot, an_environment
from tests.presets import presets_of_each_kind

TYPE = "g5.12xlarge"
"""4 x A10G of 24 GiB, in the built-in catalog."""
CATALOG = {each.name: each.shape for each in ModelCatalog.builtin().presets}
CONFIG = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}


def judged(preset: dict[str, Any], *, nap: bool = False, **inference: Any) -> Verdict:
    """The verdict on existing nodes with 4 GPUs of 23028 MiB, or on an instance type with the same GPUs."""
    resource = {"instanceType": TYPE} if nap else {"labelSelector": {"matchLabels": {"pool": "a"}}}
    spec = {"resource": resource, "inference": {"preset": preset, **inference}}
    workspace = Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec})
    nodes = [] if nap else [a_node(f"n{number}", count=4, memory=23028) for number in range(2)]
    [verdict] = validate(a_snapshot(workspace, *nodes, nap=nap))
    return verdict


def unlisted(**config: Any) -> dict[str, Any]:
    return {"name": "own/model", "parameters": {"sizeGiB": 14, "config": {**CONFIG, **config}}}


@pytest.mark.parametrize("nap", [False, True])
def test_without_a_known_maximum_only_the_counted_context_is_served_and_that_is_reported(nap: bool) -> None:
    verdict = judged(unlisted(), nap=nap)
    assert verdict.serving is not None and verdict.serving.context_length == 2048
    assert any("max_position_embeddings" in warning for warning in verdict.warnings)
    for told in (judged(unlisted(max_seq_len=8192), nap=nap), judged(unlisted(), nap=nap, contextLength=8192)):
        assert told.serving is not None and told.serving.context_length == 8192
        assert not any("max_position_embeddings" in warning for warning in told.warnings)


@pytest.mark.parametrize("nap", [False, True])
def test_declared_memory_counts_on_gpus_that_the_heads_allow(nap: bool) -> None:
    # 40 heads and 10 KV heads: of 4 GPUs, 2 are used.
    assert judged({"name": "phi-4"}, nap=nap, gpuMemoryGiB=44).accepted
    refused = judged({"name": "phi-4"}, nap=nap, gpuMemoryGiB=64)
    assert refused.reason is Reason.INSUFFICIENT_GPU_MEMORY
    spread = judged({"name": "microsoft/phi-4"}, nap=nap, gpuMemoryGiB=64)
    assert (spread.accepted, spread.per_replica_node_count) == (True, 2)


@pytest.mark.parametrize("nap", [False, True])
def test_a_replica_has_no_more_nodes_than_its_model_has_layers(nap: bool) -> None:
    model = unlisted(num_hidden_layers=1)
    assert judged(model, nap=nap, gpuMemoryGiB=89).per_replica_node_count == 1
    refused = judged(model, nap=nap, gpuMemoryGiB=90)
    assert refused.reason is Reason.INSUFFICIENT_GPU_MEMORY and "layer" in refused.message


def test_an_estimate_beyond_the_layers_uses_a_node_for_each() -> None:
    model = unlisted(num_hidden_layers=1)
    model["parameters"]["sizeGiB"] = 87
    verdict = judged(model)
    assert (verdict.accepted, verdict.per_replica_node_count) == (True, 1), verdict.message
    assert any("may run out of GPU memory" in warning for warning in verdict.warnings)


@pytest.mark.parametrize("nap", [False, True])
def test_declared_memory_that_cannot_hold_the_model_is_reported(nap: bool) -> None:
    verdict = judged({"name": "qwen2.5-coder-32b"}, nap=nap, gpuMemoryGiB=24)
    assert verdict.accepted and not any("run out" in warning for warning in verdict.warnings)
    verdict = judged({"name": "deepseek-r1-0528"}, nap=nap, gpuMemoryGiB=24)
    assert any("may run out of GPU memory" in warning for warning in verdict.warnings)


@pytest.mark.parametrize("nap", [False, True])
def test_a_context_is_checked_with_declared_memory_too(nap: bool) -> None:
    assert judged({"name": "phi-4"}, nap=nap, gpuMemoryGiB=40, contextLength=4096).accepted
    refused = judged({"name": "qwen3.6-27b"}, nap=nap, gpuMemoryGiB=60, contextLength=262144)
    assert refused.reason is Reason.INSUFFICIENT_GPU_MEMORY and "contextLength" in refused.message


@pytest.mark.parametrize("nap", [False, True])
def test_each_node_of_a_replica_needs_a_layer(nap: bool) -> None:
    refused = judged({"name": "microsoft/phi-4"}, nap=nap, perReplicaNodeCount=41)
    assert refused.reason is Reason.INVALID_SPEC and "layers" in refused.message


@pytest.mark.parametrize("nap", [False, True])
def test_a_model_without_figures_is_split_with_a_warning(nap: bool) -> None:
    verdict = judged({"name": "own/model"}, nap=nap, gpuMemoryGiB=48)
    assert verdict.accepted
    assert any("layers and heads" in warning and "parameters" in warning for warning in verdict.warnings)


def test_an_invalid_declared_preset_is_refused_and_hides_the_built_in_one() -> None:
    entry = {"name": "phi-4", "repository": "o/phi", "sizeGiB": 3, "config": {"num_attention_heads": 4}}
    workspace = Workspace.read(
        {
            "metadata": {"name": "ws", "namespace": "default"},
            "spec": {
                "resource": {"labelSelector": {"matchLabels": {"pool": "a"}}},
                "inference": {"preset": {"name": "Phi-4"}},
            },
        }
    )
    [verdict] = validate(a_snapshot(workspace, a_node(), environment=an_environment(presets=[entry])))
    assert verdict.reason is Reason.UNKNOWN_PRESET
    assert "num_hidden_layers is missing" in verdict.message


def test_a_partition_is_reported_with_what_it_serves() -> None:
    spec = {
        "resource": {
            "labelSelector": {"matchLabels": {"pool": "a"}},
            "partition": {"mode": "accelerator", "count": 3},
        },
        "inference": {"preset": {"name": "phi-4"}},
    }
    workspace = Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec})
    [verdict] = validate(a_snapshot(workspace, a_node(count=8, memory=24576)))
    assert verdict.serving is not None and str(verdict.serving) in verdict.message
    [warning] = verdict.warnings
    assert "resource.partition.count to 2" in warning


def test_a_workspace_without_inference_has_no_replicas() -> None:
    spec = {"resource": {"labelSelector": {"matchLabels": {"pool": "a"}}, "count": 3}}
    workspace = Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec})
    [verdict] = validate(a_snapshot(workspace, a_node("m"), a_node("n")))
    assert verdict.accepted and not any(
        "replica" in warning.replace("inference.replicas", "") for warning in verdict.warnings
    )


def test_a_name_that_the_server_would_take_for_an_option_is_refused() -> None:
    assert judged(unlisted() | {"name": "--model"}).reason is Reason.INVALID_SPEC


def test_on_nodes_with_one_gpu_the_layers_limit_a_replica() -> None:
    outcome = estimate(ModelNeed(641.3, 70272, shape=CATALOG["deepseek-r1-0528"]), Device("", 8192, 1))
    assert isinstance(outcome, Infeasible) and "61 layers" in outcome.reason


def test_gpus_that_the_heads_exclude_are_a_warning() -> None:
    spec = {
        "resource": {"labelSelector": {"matchLabels": {"pool": "a"}}},
        "inference": {"preset": {"name": "falcon-7b"}},
    }
    workspace = Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec})
    [verdict] = validate(a_snapshot(workspace, a_node(count=2, memory=16384)))
    assert verdict.accepted and any("71 attention heads" in warning for warning in verdict.warnings)


@pytest.mark.parametrize("asked", [None, 32768])
@pytest.mark.parametrize("preset", presets_of_each_kind())
def test_estimated_types_are_accepted_and_served_as_estimated(preset: str, asked: int | None) -> None:
    known = ModelCatalog.builtin().find(preset)
    assert known is not None
    if asked is not None and (known.context_limit or asked) < asked:
        return
    need = ModelNeed(known.size_gib, known.bytes_per_token, known.spans_nodes, known.shape)
    fitting = Catalog.builtin().feasible(need, Settings(), context_length=asked, clouds={"aws", "azure"})
    found = [each for each in fitting if each.type.cloud != "aws" or each.type.karpenter_gpus]
    for candidate in (found[0], found[len(found) // 2], found[-1]):
        inference: dict[str, Any] = {"preset": {"name": preset, "presetOptions": {"modelAccessSecret": "token"}}}
        inference |= {"contextLength": asked} if asked is not None else {}
        spec = {"resource": {"instanceType": candidate.type.name}, "inference": inference}
        workspace = Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec})
        [verdict] = validate(a_snapshot(workspace, nap=True))
        assert (verdict.accepted, verdict.serving) == (True, candidate.estimate.serving), verdict.message
        assert verdict.target_node_count == candidate.estimate.nodes
        assert not any("run out" in warning for warning in verdict.warnings)
