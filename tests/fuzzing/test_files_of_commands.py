"""Each command reads its files or refuses them by name; none ends with an internal error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from plimsoll.bind import read_settings
from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.sandbox.nodes import read_node_list
from tests.fuzzing.damage import OBJECTS, damaged, damaged_text

RUNNER = CliRunner()

KAITO = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "Workspace",
    "metadata": {"name": "phi", "annotations": {"kaito.sh/enablelb": "true"}},
    "resource": {
        "count": 1,
        "instanceType": "Standard_NC24ads_A100_v4",
        "labelSelector": {"matchLabels": {"apps": "phi"}},
    },
    "inference": {
        "preset": {"name": "phi-4", "presetOptions": {"modelAccessSecret": "s"}},
        "config": "c",
        "adapters": [],
    },
}
SET = {
    "apiVersion": "kaito.sh/v1alpha1",
    "kind": "InferenceSet",
    "metadata": {"name": "set"},
    "spec": {"replicas": 2, "template": {"resource": KAITO["resource"], "inference": KAITO["inference"]}},
}
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16", "vocab_size": 128256, "intermediate_size": 14336, "sliding_window": None,
    "rope_scaling": {"factor": 8.0}, "quantization_config": {"quant_method": "fp8"}, "text_config": {"hidden_size": 1},
}  # fmt: skip
INDEX = {"metadata": {"total_size": 16060522496}, "weight_map": {}}
POLICY = {
    "admission": "warn",
    "environment": {"nodeAutoProvisioning": "enabled"},
    "rules": {"workspace-access": {"level": "warn"}},
    "exemptions": [{"rule": "workspace-access", "namespaces": ["a"], "reason": "r", "until": "2030-01-01"}],
}
PRESETS = {
    "presets": [{"name": "own", "repository": "example/own", "sizeGiB": 10, "aliases": ["mine"], "config": MODEL}]
}
USAGE = {"research": {"gpu": 0.4, "cpu": 0.1, "memory": 1}}
BINDER = {"reservation": {"image": "i", "namespace": "n", "resources": {"cpu": "1m"}}, "schedulerName": "s"}
OBJECTS_TEXT = yaml.safe_dump_all(OBJECTS)
PRICES = "name,price_per_hour\np5.48xlarge,98.32\nStandard_NC24ads_A100_v4,3.67\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\na-0,96000,786432,8,V100M32\na-1,48000,196608,2,T4\n"


def run(*arguments: str) -> None:
    """Runs the command and asserts a known exit code, or an error that says what is wrong and where."""
    done = RUNNER.invoke(app, arguments, env={"COLUMNS": "120"})
    error = done.exception
    if error is None or isinstance(error, SystemExit):
        assert done.exit_code in (0, 1, 2), done.output
        return
    assert isinstance(error, PlimsollError), repr(error)
    assert error.message


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def dumped(path: Path, content: Any) -> str:
    path.write_text(yaml.safe_dump(content), encoding="utf-8", errors="surrogatepass")
    return str(path)


@given(damaged(OBJECTS), st.sampled_from([("plan", "-f"), ("demand", "-f"), ("gpus", "-f"), ("queues", "-f")]))
def test_manifests(folder: Path, obj: dict[str, Any], command: tuple[str, ...]) -> None:
    run(*command, dumped(folder / "manifest.yaml", obj))


@given(damaged(OBJECTS))
def test_manifests_beside_good_ones(folder: Path, obj: dict[str, Any]) -> None:
    path = folder / "all.yaml"
    path.write_text(f"{OBJECTS_TEXT}---\n{yaml.safe_dump(obj)}", encoding="utf-8", errors="surrogatepass")
    run("savings", "-f", str(path))


@given(damaged(OBJECTS))
def test_manifests_under_policies(folder: Path, obj: dict[str, Any]) -> None:
    run("policy", "check", dumped(folder / "checked.yaml", obj))


@given(damaged([POLICY]))
def test_settings_of_policies(folder: Path, content: dict[str, Any]) -> None:
    good = dumped(folder / "good.yaml", OBJECTS[0])
    run("policy", "check", good, "--config", dumped(folder / "policies.yaml", content))


@given(damaged([KAITO, SET]))
def test_manifests_of_kaito(folder: Path, obj: dict[str, Any]) -> None:
    run("import", "kaito", dumped(folder / "kaito.yaml", obj))


@given(damaged(OBJECTS), st.sampled_from(["memory", "4"]))
def test_pods_with_shares(folder: Path, obj: dict[str, Any], mode: str) -> None:
    file = dumped(folder / "shares.yaml", obj)
    run("import", "kai", "--to-claims", "--gpu-memory", "80Gi", "--consumable-shares", mode, file)


@given(damaged([USAGE]))
def test_past_usage(folder: Path, content: dict[str, Any]) -> None:
    good = folder / "queues.yaml"
    good.write_text(OBJECTS_TEXT)
    run("queues", "-f", str(good), "--usage", dumped(folder / "usage.yaml", content))


@given(damaged([MODEL]), damaged([INDEX]))
def test_files_of_a_model(folder: Path, config: dict[str, Any], index: dict[str, Any]) -> None:
    for name, content in (("config.json", config), ("model.safetensors.index.json", index)):
        (folder / name).write_bytes(
            orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS) if _fits(content) else b"{"
        )
    run("estimate", str(folder / "config.json"), "--instance-type", "p5.48xlarge")


@given(damaged([PRESETS]))
def test_declared_presets(folder: Path, content: dict[str, Any]) -> None:
    run("estimate", "own", "--presets", dumped(folder / "presets.yaml", content))


@given(damaged_text(PRICES))
def test_prices(folder: Path, text: str) -> None:
    path = folder / "prices.csv"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    run("estimate", "phi-4", "--prices", str(path))


def refused_by_name(path: Path, read: Callable[[], object]) -> None:
    try:
        read()
    except PlimsollError as error:
        assert error.message


@given(damaged_text(NODES))
def test_a_list_of_nodes(folder: Path, text: str) -> None:
    path = folder / "nodes.csv"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    refused_by_name(path, lambda: read_node_list(path))


@given(damaged([BINDER]))
def test_settings_of_the_binder(folder: Path, content: dict[str, Any]) -> None:
    path = folder / "binder.yaml"
    dumped(path, content)
    refused_by_name(path, lambda: read_settings(path, {}, None))


@given(
    damaged_text(yaml.safe_dump_all([POLICY, USAGE, BINDER, PRESETS, KAITO])),
    st.sampled_from(["--config", "--usage", "--presets", "kaito", "binder"]),
)
def test_texts(folder: Path, text: str, of: str) -> None:
    """Files that are damaged below the level of YAML."""
    path, good = folder / "text.yaml", dumped(folder / "good.yaml", OBJECTS[0])
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    arguments = {
        "--config": ("policy", "check", good, of, str(path)),
        "--usage": ("queues", "-f", good, of, str(path)),
        "--presets": ("estimate", "own", of, str(path)),
        "kaito": ("import", "kaito", str(path)),
    }
    if of == "binder":
        refused_by_name(path, lambda: read_settings(path, {}, None))
    else:
        run(*arguments[of])


@given(st.binary(max_size=60), st.sampled_from([("plan", "-f"), ("policy", "check"), ("import", "kaito")]))
def test_files_that_are_not_text(folder: Path, content: bytes, command: tuple[str, ...]) -> None:
    path = folder / "any.yaml"
    path.write_bytes(content)
    run(*command, str(path))


def _fits(content: Any) -> bool:
    try:
        orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        return False
    return True
