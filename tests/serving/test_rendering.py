"""The complete objects that serve a preset, for each tier and kind, and their arguments checked against vLLM's options.

`vllm_flags.csv` has the arguments of `vllm serve` that are used, with number, type and choice of their values, from
vLLM's source (arg_utils.py and cli_args.py, v0.32).
"""

import argparse
import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

from plimsoll.model import Reason, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import ENFORCE, pod_security
from plimsoll.presets import ModelCatalog
from tests.builders import A100, a_node, a_snapshot, an_environment
from tests.golden import assert_golden
from tests.presets import presets_of_each_kind

HERE = Path(__file__).parent
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FLAGS = {row["flag"]: row for row in csv.DictReader((HERE / "vllm_flags.csv").open())}
IMAGE = {"name": "law", "image": "registry/law:1", "imagePullSecrets": ["pull"]}
CLAIM = {"name": "Qwen_Med.v2", "volumeSource": {"persistentVolumeClaim": {"claimName": "med"}}}
STORAGE = {
    "storageClassName": "fast",
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1.5Ti"}},
}
LWS = {"$(LWS_GROUP_SIZE)": "2", "$(LWS_WORKER_INDEX)": "1", "$(LWS_LEADER_ADDRESS)": "ws-0.ws-0.default"}
SECRET = {"modelAccessSecret": "hugging-face"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # inference, node, Environment
    "data": ({"preset": {"name": "phi-4-mini-instruct"}}, {"count": 4}, {}),
    "one_gpu": ({"preset": {"name": "falcon-7b-instruct"}, "service": {"enabled": False}}, {"memory": 24576}, {}),
    "tensor_with_unused_gpus": ({"preset": {"name": "phi-4"}}, {"count": 3, "memory": 24576}, {}),
    "tensor_and_data": ({"preset": {"name": "phi-4"}}, {"count": 4, "memory": 24576}, {}),
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


def arguments(manifest: dict[str, Any], of: str = "leaderTemplate") -> list[str]:
    """The arguments of vLLM in a workload, or in one of a group's pods, with the variables of LeaderWorkerSet."""
    spec = manifest["spec"]
    template = spec["leaderWorkerTemplate"][of] if "leaderWorkerTemplate" in spec else spec["template"]
    [server] = template["spec"]["containers"]
    assert server["command"] == ["vllm", "serve"]
    return [LWS.get(each, each) for each in server["args"]]


@pytest.mark.parametrize("case", CASES)
def test_the_pods_meet_pod_security_restricted(case: str) -> None:
    for manifest in rendered(case):
        spec = manifest["spec"]
        of_group = spec.get("leaderWorkerTemplate", {})
        templates = [spec.get("template"), of_group.get("leaderTemplate"), of_group.get("workerTemplate")]
        for template in filter(None, templates):
            found = list(pod_security({ENFORCE: "restricted"}, template))
            assert not [each for each in found if "hostPath" not in each], "which the Workspace itself asks for"
            assert template["spec"]["securityContext"]["runAsUser"] == 2000


class Parser(argparse.ArgumentParser):
    """vLLM's argument parser, for the options of the table."""

    def __init__(self) -> None:
        super().__init__(allow_abbrev=False, add_help=False)
        for row in FLAGS.values():
            if row["values"] == "0":
                self.add_argument(row["flag"], action="store_true")
                continue
            nargs = "+" if row["values"] == "+" else None
            kind = {"int": int, "float": float, "text": str}[row["type"]]
            self.add_argument(row["flag"], type=kind, choices=row["choices"].split() or None, nargs=nargs)

    def error(self, message: str) -> NoReturn:
        raise AssertionError(message)


def parsed(given: list[str]) -> dict[str, Any]:
    """The options with their values; fails if vLLM would refuse one."""
    flags = [part for part in given if part.startswith("--")]
    assert len(flags) == len(set(flags)), "vLLM takes the last one, silently"
    return {name: value for name, value in vars(Parser().parse_args(given)).items() if value not in (None, False)}


def arguments_of(case: str) -> list[str]:
    return arguments(next(each for each in rendered(case) if each["kind"] != "Service"))


@pytest.mark.parametrize("case", CASES)
def test_vllm_accepts_the_arguments(case: str) -> None:
    found = parsed(arguments_of(case))
    assert {"model_tag", "served_model_name", "max_model_len", "gpu_memory_utilization", "port"} <= found.keys()
    assert 0 < found["gpu_memory_utilization"] <= 1


def test_every_option_of_the_table_is_rendered_by_a_case_or_a_preset() -> None:
    groups = next(each for each in rendered("pipeline") if each["kind"] != "Service")
    every = [*map(arguments_of, CASES), arguments(groups, "workerTemplate")]
    seen = {"model_tag"} | {part for given in every for part in given if part.startswith("--")}
    seen |= {f"--{option}" for preset in ModelCatalog.builtin().presets for option in preset.options}
    assert seen == FLAGS.keys()


@pytest.mark.parametrize("preset", presets_of_each_kind())
@pytest.mark.parametrize("nodes", [{"count": 8, "memory": 143771}, {"count": 1, "memory": 143771}])
def test_vllm_accepts_the_arguments_of_each_kind_of_preset(preset: str, nodes: dict[str, Any]) -> None:
    adapters = [{"source": IMAGE}, {"source": CLAIM}]
    options = {"adapters": adapters, "config": "options", "contextLength": 2048}
    manifest = {
        "metadata": {"name": "ws", "namespace": "default"},
        "spec": {
            "resource": {"labelSelector": {"matchLabels": {"pool": "a"}}},
            "inference": {"preset": {"name": preset, "presetOptions": SECRET}, **options},
        },
    }
    environment = an_environment(estimator={"kvValueBytes": 1})
    seen = a_snapshot(Workspace.read(manifest), *(a_node(f"n{n}", **nodes) for n in range(8)), environment=environment)
    verdicts = validate(seen)
    if not verdicts[0].accepted:
        assert verdicts[0].reason is Reason.INSUFFICIENT_GPU_MEMORY, verdicts[0].message
        return
    workload = next(each.manifest for each in plan(seen, verdicts, NOW).creations if each.key.kind != "Service")
    found = parsed(arguments(workload))
    assert (found["max_model_len"], found["kv_cache_dtype"]) == (2048, "fp8")
    assert found["lora_modules"] == ["law=/mnt/adapters/law", "Qwen_Med.v2=/mnt/adapters/Qwen_Med.v2"]


def test_the_pods_of_a_group_join_the_leader_and_only_the_leader_serves() -> None:
    groups = next(each for each in rendered("pipeline") if each["kind"] != "Service")
    leader, worker = (arguments(groups, of) for of in ("leaderTemplate", "workerTemplate"))
    assert worker == [*leader, "--headless"]
    joined = parsed(worker)
    assert (joined["nnodes"], joined["node_rank"], joined["master_addr"]) == (2, 1, "ws-0.ws-0.default")
    assert joined["distributed_timeout_seconds"] > 1800, "nodes are launched one after the other"
    assert joined["nnodes"] == joined["pipeline_parallel_size"]


def test_no_service_of_the_namespace_changes_the_servers_variables() -> None:
    """Of a Service named vllm, the kubelet makes VLLM_PORT, which vLLM refuses."""
    workload = next(each for each in rendered("data") if each["kind"] != "Service")
    assert workload["spec"]["template"]["spec"]["enableServiceLinks"] is False


def sizes(case: str) -> dict[str, int]:
    return {name: size for name, size in parsed(arguments_of(case)).items() if name.endswith("_parallel_size")}


def test_each_tier_has_its_parallel_sizes() -> None:
    assert sizes("data") == {"tensor_parallel_size": 1, "data_parallel_size": 4}
    assert sizes("one_gpu") == {}
    assert sizes("tensor_with_unused_gpus") == {"tensor_parallel_size": 2}
    assert sizes("tensor_and_data") == {"tensor_parallel_size": 2, "data_parallel_size": 2}
    assert sizes("pipeline") == {"tensor_parallel_size": 8, "pipeline_parallel_size": 2}


def snapshot_of(preset: str, gpus: int, memory: int, product: str = A100) -> Snapshot:
    workspace = Workspace.read(
        {
            "metadata": {"name": "ws", "namespace": "default"},
            "spec": {
                "resource": {"labelSelector": {"matchLabels": {"pool": "a"}}},
                "inference": {"preset": {"name": preset, "presetOptions": SECRET}},
            },
        }
    )
    return a_snapshot(workspace, a_node(product=product, count=gpus, memory=memory))


def test_unused_gpus_are_reported_and_not_requested() -> None:
    seen = snapshot_of("phi-4", 3, 24576)
    [verdict] = validate(seen)
    assert verdict.serving is not None and (verdict.serving.tensor, verdict.serving.unused) == (2, 1)
    assert any("1 GPU of each node stays unused" in warning for warning in verdict.warnings)
    assert "context of" in verdict.message
    workload = plan(seen, (verdict,), NOW).creations[0].manifest
    [server] = workload["spec"]["template"]["spec"]["containers"]
    assert server["resources"]["limits"] == {"nvidia.com/gpu": "2"}


@pytest.mark.parametrize(("product", "memory"), [(A100, 24576), ("Tesla-V100-SXM2-32GB", 32768)])
def test_gpus_that_heads_leave_run_further_engines(product: str, memory: int) -> None:
    """40 heads and 10 KV heads are split over 2 GPUs, not over 4."""
    seen = snapshot_of("phi-4", 4, memory, product)
    [verdict] = validate(seen)
    assert verdict.serving is not None
    assert (verdict.serving.tensor, verdict.serving.data, verdict.serving.unused) == (2, 2, 0)
    assert not verdict.warnings
    assert "data parallelism over 2 and tensor parallelism over 2" in verdict.message
    workload = plan(seen, (verdict,), NOW).creations[0].manifest
    [server] = workload["spec"]["template"]["spec"]["containers"]
    assert server["resources"]["limits"] == {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize(("gpus", "memory"), [(1, 143771), (2, 81559), (4, 24576), (8, 24576)])
@pytest.mark.parametrize(
    "preset", ["phi-4", "Qwen/Qwen2.5-Coder-7B-Instruct", "falcon-7b", "gpt-oss-20b", "gemma-3-27b-it"]
)
def test_workspaces_accepted_without_a_warning_have_valid_vllm_arguments(preset: str, memory: int, gpus: int) -> None:
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
