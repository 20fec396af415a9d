"""Unsupported fields are refused by name, deprecated fields are warnings, and no field is ignored."""

import re
from typing import Any

import pytest

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.plan import validate
from tests.builders import NC24, a_node, a_snapshot, a_workspace, an_environment

TUNING = {"preset": {"name": "phi-4"}, "method": "qlora", "input": {"image": "a"}, "output": {"image": "b"}}
SELECTED: dict[str, Any] = {"labelSelector": {"matchLabels": {"pool": "a"}}}
SLICE = {"mode": "mig", "profile": "1g.10gb"}


def verdict_on(nap: bool = False, resource: dict[str, Any] | None = None, **spec: Any) -> Verdict:
    of_mode = {"instanceType": NC24} if nap else SELECTED
    given = {"resource": {**of_mode, **(resource or {})}, **spec}
    workspace = Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": given})
    (verdict,) = validate(a_snapshot(workspace, a_node(), nap=nap))
    return verdict


def served(**inference: Any) -> dict[str, Any]:
    return {"preset": {"name": "phi-4-mini-instruct"}, **inference}


@pytest.mark.parametrize("nap", [False, True])
def test_tuning_is_refused_by_name(nap: bool) -> None:
    verdict = verdict_on(nap, tuning=TUNING)
    assert (verdict.accepted, verdict.reason) == (False, Reason.NOT_SUPPORTED)
    assert verdict.message.startswith("tuning is not implemented")


def test_tuning_on_two_nodes_has_its_own_message() -> None:
    verdict = verdict_on(True, {"count": 2}, tuning=TUNING)
    assert verdict.reason is Reason.INVALID_SPEC
    assert "resource.count is 2" in verdict.message


def test_a_partition_is_refused_where_nodes_are_provisioned() -> None:
    verdict = verdict_on(True, {"partition": SLICE}, inference=served())
    assert verdict.reason is Reason.INVALID_SPEC
    assert "resource.partition" in verdict.message


@pytest.mark.parametrize(
    ("adapter", "words"),
    [
        ({"source": {"name": "law", "urls": ["a"]}}, ("'law'", "source.urls")),
        ({"source": {"name": "law", "image": "a"}, "strength": "0.5"}, ("'law'", "strength 0.5")),
    ],
)
def test_adapters_that_cannot_be_served_are_named(adapter: dict[str, Any], words: tuple[str, str]) -> None:
    verdict = verdict_on(inference=served(adapters=[adapter]))
    assert verdict.reason is Reason.NOT_SUPPORTED
    assert all(each in verdict.message for each in words)


@pytest.mark.parametrize("nap", [False, True])
def test_deprecated_fields_are_accepted_with_a_warning(nap: bool) -> None:
    verdict = verdict_on(nap, {"preferredNodes": ["gpu-7"], "count": 3}, inference=served())
    assert verdict.accepted
    assert verdict.target_node_count == 1
    text = "; ".join(verdict.warnings)
    assert "resource.preferredNodes is deprecated" in text
    assert "gpu-7" in text
    assert "resource.count is deprecated" in text


@pytest.mark.parametrize(("limit", "accepted"), [(2, False), (3, True)])
def test_a_workspace_respects_its_own_node_count_limit(limit: int, accepted: bool) -> None:
    verdict = verdict_on(True, {"nodeCountLimit": limit}, inference=served(replicas=3))
    assert verdict.accepted is accepted
    if not accepted:
        assert verdict.reason is Reason.LIMIT_EXCEEDED
        assert "resource.nodeCountLimit is 2" in verdict.message
        assert "3 nodes" in verdict.message


def test_the_nodes_of_a_partition_are_counted_in_the_message() -> None:
    """Nine replicas, of which eight share a node."""
    workspace = a_workspace(replicas=9, partition={"mode": "accelerator", "count": 1})
    nodes = [a_node(f"n-{number}", count=8, allocatable=8) for number in range(2)]
    [verdict] = validate(a_snapshot(workspace, *nodes, environment=an_environment(limits={"workspaceNodes": 1})))
    assert verdict.reason is Reason.LIMIT_EXCEEDED
    assert [int(each) for each in re.findall("[0-9]+", verdict.message)] == [1, 2, 9, 8]


OLD = "vllm/vllm-openai:v0.17.1"


@pytest.mark.parametrize("nap", [False, True])
@pytest.mark.parametrize(
    ("preset", "image", "refused"),
    [
        ("google/gemma-4-E4B-it", OLD, True),
        ("google/gemma-4-E4B-it", "registry.internal:5000/mirror/vllm-openai:v0.9.2-x86_64", True),
        ("google/gemma-4-E4B-it", f"{OLD}-cu129@sha256:0a", True),
        ("Qwen/Qwen3.5-9B", "vllm/vllm-openai:v0.14.1", True),
        # What a release between the two lists has is not known; what other images have is not known either.
        ("google/gemma-4-E4B-it", "vllm/vllm-openai:v0.18.0", False),
        ("google/gemma-4-E4B-it", f"{OLD}-gemma4", False),
        ("google/gemma-4-E4B-it", f"{OLD}.post1", False),
        ("google/gemma-4-E4B-it", "vllm/vllm-openai:latest", False),
        ("google/gemma-4-E4B-it", "registry.internal/vllm:v0.9.2", False),
        ("google/gemma-4-E4B-it", "vllm/vllm-openai:v0.32.0", False),
        ("phi-4-mini-instruct", OLD, False),
    ],
)
def test_an_image_that_cannot_serve_the_model_is_refused(nap: bool, preset: str, image: str, refused: bool) -> None:
    resource = {"instanceType": NC24} if nap else SELECTED
    spec = {"resource": resource, "inference": {"preset": {"name": preset}}}
    workspace = Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec})
    environment = an_environment(nap=nap, inferenceImage=image)
    (verdict,) = validate(a_snapshot(workspace, a_node(), environment=environment))
    assert verdict.accepted is not refused, verdict.message
    if refused:
        assert verdict.reason is Reason.NOT_SUPPORTED
        assert "inferenceImage" in verdict.message and image in verdict.message
