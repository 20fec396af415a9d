"""The objects that serve a preset, whole, for each tier and kind; and their arguments against vLLM's options.

`vllm_flags.csv` has the options of `vllm serve` that are used and how many values each takes, from vLLM's documentation
(Engine Arguments and OpenAI-Compatible Server, v0.11).
"""

import csv
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from plimsoll.model import Snapshot
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import a_node, a_snapshot, an_environment
from tests.golden import assert_golden

HERE = Path(__file__).parent
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FLAGS = {row["flag"]: row["values"] for row in csv.DictReader((HERE / "vllm_flags.csv").open())}
IMAGE = {"name": "law", "image": "registry/law:1", "imagePullSecrets": ["pull"]}
CLAIM = {"name": "Qwen_Med.v2", "volumeSource": {"persistentVolumeClaim": {"claimName": "med"}}}
STORAGE = {
    "storageClassName": "fast",
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1.5Ti"}},
}
SECRET = {"modelAccessSecret": "hugging-face"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # inference, node, Environment
    "data": ({"preset": {"name": "phi-4-mini-instruct"}}, {"count": 4}, {}),
    "one_gpu": ({"preset": {"name": "falcon-7b-instruct"}, "service": {"enabled": False}}, {"memory": 24576}, {}),
    "tensor_with_unused_gpus": ({"preset": {"name": "phi-4"}}, {"count": 4, "memory": 24576}, {}),
    "stable_identity": (
        {
            "preset": {"name": "meta-llama/Llama-3.1-8B-Instruct", "presetOptions": SECRET},
            "stableIdentity": True,
            "replicas": 2,
            "contextLength": 32768,
            "config": "options",
            "adapters": [{"source": IMAGE}, {"source": CLAIM}],
            "weights": {"volumeSource": {"hostPath": {"path": "/mnt/models"}}, "readOnly": True},
            "service": {"name": "chat", "port": 8000},
        },
        {},
        {"estimator": {"kvValueBytes": 1, "utilizationByProduct": {"A100": 0.92}}},
    ),
    "pipeline": (
        {"preset": {"name": "mistral-large-3-675b-instruct"}, "replicas": 2},
        {"count": 8, "memory": 81559, "product": "NVIDIA-H100-80GB-HBM3"},
        {"weights": {"volumeSource": {"ephemeral": {"volumeClaimTemplate": {"spec": STORAGE}}}}},
    ),
}


def rendered(case: str) -> list[dict[str, Any]]:
    inference, node, environment = CASES[case]
    manifest = {
        "metadata": {"name": "ws", "namespace": "default", "uid": "u"},
        "spec": {"resource": {"labelSelector": {"matchLabels": {"pool": "a"}}}, "inference": inference},
    }
    nodes = [a_node(f"n-{number}", **node) for number in range(6)]
    seen = a_snapshot(Workspace.read(manifest), *nodes, environment=an_environment(**environment))
    verdicts = validate(seen)
    assert verdicts[0].accepted, verdicts[0].message
    return [creation.manifest for creation in plan(seen, verdicts, NOW).creations]


@pytest.mark.parametrize("case", CASES)
def test_rendered_objects_are_those_of_the_golden_files(case: str) -> None:
    assert_golden(HERE / "golden" / f"{case}.yaml", rendered(case))


def arguments(manifest: dict[str, Any]) -> list[str]:
    """The arguments of vLLM in a workload: of its container, or in the shell of a group's leader."""
    spec = manifest["spec"]
    template = spec["leaderWorkerTemplate"]["leaderTemplate"] if "leaderWorkerTemplate" in spec else spec["template"]
    [server] = template["spec"]["containers"]
    if "command" not in server:
        return list(server["args"])
    line = next(line for line in server["args"][0].splitlines() if line.startswith("exec "))
    return shlex.split(line)[4:]


def options(given: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each option with its values."""
    starts = [position for position, part in enumerate(given) if part.startswith("--")]
    assert starts[0] == 0
    for start, end in zip(starts, [*starts[1:], len(given)], strict=True):
        yield given[start], given[start + 1 : end]


@pytest.mark.parametrize("case", CASES)
def test_arguments_are_options_of_vllm_with_their_values(case: str) -> None:
    workload = next(each for each in rendered(case) if each["kind"] != "Service")
    found = dict(options(arguments(workload)))
    for option, values in found.items():
        takes = FLAGS[option]
        assert len(values) >= 1 if takes == "+" else len(values) == int(takes), (option, values)
    assert {"--model", "--served-model-name", "--max-model-len", "--gpu-memory-utilization"} <= found.keys()


def sizes(case: str) -> dict[str, str]:
    workload = next(each for each in rendered(case) if each["kind"] != "Service")
    return {name: values[0] for name, values in options(arguments(workload)) if name.endswith("-parallel-size")}


def test_each_tier_has_its_parallel_sizes() -> None:
    assert sizes("data") == {"--tensor-parallel-size": "1", "--data-parallel-size": "4"}
    assert sizes("one_gpu") == {}
    assert sizes("tensor_with_unused_gpus") == {"--tensor-parallel-size": "2"}
    assert sizes("pipeline") == {"--tensor-parallel-size": "8", "--pipeline-parallel-size": "2"}


def snapshot_of(preset: str, gpus: int, memory: int) -> Snapshot:
    workspace = Workspace.read(
        {
            "metadata": {"name": "ws", "namespace": "default"},
            "spec": {
                "resource": {"labelSelector": {"matchLabels": {"pool": "a"}}},
                "inference": {"preset": {"name": preset, "presetOptions": SECRET}},
            },
        }
    )
    return a_snapshot(workspace, a_node(count=gpus, memory=memory))


def test_gpus_that_stay_unused_are_told_and_not_requested() -> None:
    seen = snapshot_of("phi-4", 4, 24576)
    [verdict] = validate(seen)
    assert verdict.serving is not None and (verdict.serving.tensor, verdict.serving.unused) == (2, 2)
    assert any("2 GPUs of each node stay unused" in warning for warning in verdict.warnings)
    assert "context of" in verdict.message
    workload = plan(seen, (verdict,), NOW).creations[0].manifest
    [server] = workload["spec"]["template"]["spec"]["containers"]
    assert server["resources"]["limits"] == {"nvidia.com/gpu": "2"}


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
@pytest.mark.parametrize("memory", [24576, 49152, 81559, 143771])
@pytest.mark.parametrize(
    "preset", ["phi-4", "Qwen/Qwen2.5-Coder-7B-Instruct", "falcon-7b", "gpt-oss-20b", "gemma-3-27b-it"]
)
def test_what_is_accepted_without_a_warning_is_what_vllm_accepts(preset: str, memory: int, gpus: int) -> None:
    [verdict] = validate(snapshot_of(preset, gpus, memory))
    if not verdict.accepted or any("may run out" in warning for warning in verdict.warnings):
        return
    serving = verdict.serving
    assert serving is not None and serving.gpus <= gpus
    heads = {"phi-4": (40, 10), "falcon-7b": (71, 1), "gpt-oss-20b": (64, 8), "gemma-3-27b-it": (32, 16)}
    attention, kv = heads.get(preset, (28, 4))
    assert attention % serving.tensor == 0
    assert kv % serving.tensor == 0 or serving.tensor % kv == 0
    assert serving.context_length >= 2048
