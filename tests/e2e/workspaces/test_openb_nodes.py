"""The 1,213 nodes of a production cluster become Ready, and Workspaces with uniform and with mixed selectors get the
correct verdicts."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from demo.stage import Stage, declare
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.nodes import read_node_list
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import condition, is_ready
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox
from tests.shared import shared

API = "plimsoll.dev/v1alpha1"
TRACE = shared("data/openb/openb_node_list_gpu_node.csv")

pytestmark = pytest.mark.e2e

T4 = {"matchLabels": {"nvidia.com/gpu.product": "Tesla-T4"}}
TWO_T4 = {"matchLabels": {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "2"}}
EIGHT_V100 = {
    "matchExpressions": [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["Tesla-V100-SXM2-32GB"]},
        {"key": "nvidia.com/gpu.count", "operator": "In", "values": ["8"]},
    ]
}
EVERY = {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "Exists"}]}
NONE = {"matchLabels": {"nvidia.com/gpu.product": "NVIDIA-B200"}}
A40 = {"matchLabels": {"nvidia.com/gpu.product": "NVIDIA-A40"}}
ONE_V100 = {"matchLabels": {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB", "nvidia.com/gpu.count": "1"}}


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("openb", karpenter=False)


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    folder = tmp_path_factory.mktemp("openb")
    stage = Stage.on(sandbox, folder)
    stage.run("plimsoll", "sandbox", "nodes", "--name", sandbox.name, "--from", str(TRACE))
    declare(stage, "sandbox")
    return stage


TOKEN = {"presetOptions": {"modelAccessSecret": "token"}}
"""Llama is gated."""


def workspace(name: str, selector: dict[str, Any], preset: str) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": "inference"},
        "spec": {
            "resource": {"labelSelector": selector},
            "inference": {"preset": {"name": preset, "presetOptions": {"modelAccessSecret": "token"}}},
        },
    }


def test_verdicts_on_1213_nodes(stage: Stage, sandbox: Sandbox, kube: Callable[..., Kube], tmp_path: Path) -> None:
    cluster = kube(sandbox)
    assert len(cluster.list("v1", "Node")) == 1213
    discovered = cluster.list("v1", "Node", selector="nvidia.com/gpu.present=true")
    ready = {node["metadata"]["name"] for node in discovered if is_ready(node)}
    assert ready == {listed.name for listed in read_node_list(TRACE)}
    expected: dict[str, tuple[dict[str, Any], str, str]] = {
        "uniform": (TWO_T4, "phi-4-mini-instruct", "Accepted"),
        "expressions": (EIGHT_V100, "phi-4-mini-instruct", "Accepted"),
        "mixed-products": (EVERY, "phi-4-mini-instruct", "NonUniformNodes"),
        "nowhere": (NONE, "phi-4-mini-instruct", "NoMatchingNodes"),
        "mixed-counts": (T4, "phi-4-mini-instruct", "NonUniformNodes"),
        "five-hundred-alike": (A40, "llama-3.3-70b-instruct", "Accepted"),
        "too-small": (ONE_V100, "phi-4", "InsufficientGPUMemory"),
    }
    with controller(sandbox, tmp_path):
        for name, (selector, preset, _) in expected.items():
            cluster.apply(workspace(name, selector, preset))

        def verdict(name: str) -> dict[str, Any]:
            return condition(cluster.get(API, "Workspace", name, "inference"), "ResourceReady")

        for name, (_, _, reason) in expected.items():
            found = await_condition(partial(verdict, name), 120, f"a verdict on {name}")
            assert found["reason"] == reason, (name, found)
        message = verdict("mixed-products")["message"]
        assert "Tesla-T4" in message and "openb-node-" in message
