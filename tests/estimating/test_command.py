"""`plimsoll estimate`: what it prints, and its exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from plimsoll.cli import app
from plimsoll.errors import PlimsollError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["estimate", *arguments])


def reported(*arguments: str, exit_code: int = 0) -> dict[str, Any]:
    result = run(*arguments, "--output", "json")
    assert result.exit_code == exit_code, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def refused(*arguments: str) -> PlimsollError:
    """The error that the command line prints before it exits with 1."""
    error = run(*arguments).exception
    assert isinstance(error, PlimsollError), error
    return error


def figures(size: float, token: float, memory: float, gpus: int) -> list[str]:
    return [
        f"--size-gib={size}",
        f"--bytes-per-token={token}",
        f"--gpu-memory-gib={memory}",
        f"--gpus-per-node={gpus}",
    ]


@pytest.mark.parametrize(
    ("given", "min_gpus", "nodes"),
    [
        (figures(8, 8192, 80, 4), 1, 1),
        (figures(13.44, 8192, 24, 1), 1, 1),
        (figures(62.5, 163840, 80, 1), 2, 2),
        (figures(641.3, 70272, 141, 8), 6, 1),
        ([*figures(27.31, 204800, 80, 1), "--context-length", "131072"], 1, 1),
        ([*figures(27.31, 204800, 80, 1), "--context-length", "200000"], 2, 2),
    ],
)
def test_a_model_given_by_numbers(given: list[str], min_gpus: int, nodes: int) -> None:
    answer = reported(*given)
    assert (answer["feasible"], answer["min_gpus"], answer["nodes"]) == (True, min_gpus, nodes)


def test_the_estimate_of_a_preset_line_by_line() -> None:
    result = run("phi-4", "--instance-type", "standard_nc24ads_a100_v4")
    assert result.exit_code == 0
    for text in (
        "Standard_NC24ads_A100_v4 (1 x NVIDIA-A100-80GB-PCIe of 81920 MiB)",
        "80 GiB x 0.84",
        "61.44 GiB",
        "107 GiB",
    ):
        assert text in result.output


def test_the_estimate_of_a_type_has_the_price_of_all_nodes_of_a_replica(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("name,price_per_hour\nStandard_NV36ads_A10_v5,3.5\n")
    asked = ("phi-4", "-t", "Standard_NV36ads_A10_v5", "--spans-nodes", "--prices", str(prices))
    answer = reported(*asked)
    assert (answer["nodes"], answer["price_per_hour"], answer["prices"]["own"]) == (2, 7.0, True)
    assert "7 an hour for 2 nodes" in run(*asked).output
    listed = reported("phi-4", "-t", "g6.12xlarge")
    assert listed["prices"]["currency"] == "USD"
    assert f"{listed['price_per_hour']:.4g} USD an hour for 1 node" in run("phi-4", "-t", "g6.12xlarge").output


def test_without_a_price_the_estimate_of_a_type_says_so() -> None:
    asked = ("phi-4", "-t", "a4-highgpu-8g")
    assert reported(*asked)["price_per_hour"] is None
    assert "No price is known" in run(*asked).output
    assert reported(*figures(8, 8192, 80, 4))["price_per_hour"] is None


def test_what_does_not_fit_exits_with_2_and_says_why() -> None:
    answer = reported("phi-4", "-t", "Standard_NV36ads_A10_v5", exit_code=2)
    assert answer["feasible"] is False
    assert (answer["min_gpus"], answer["nodes"]) == (2, 2)
    result = run("phi-4", "-t", "Standard_NV36ads_A10_v5")
    assert result.exit_code == 2
    assert "does not fit" in result.stderr
    assert reported("phi-4", "-t", "Standard_NV36ads_A10_v5", "--spans-nodes")["nodes"] == 2


def test_too_little_memory_has_no_number_of_gpus() -> None:
    answer = reported(*figures(1, 8192, 2, 1), exit_code=2)
    assert answer["min_gpus"] is None
    assert answer["nodes"] is None
    assert "2.3 GiB" in answer["reason"]


def test_without_a_type_all_types_that_fit_are_listed_cheapest_first(tmp_path: Path) -> None:
    names = [each["instance_type"] for each in reported("phi-4", "--cloud", "azure")["candidates"]]
    assert names[0] == "Standard_NC24ads_A100_v4"
    assert "Standard_NV36ads_A10_v5" not in names
    prices = tmp_path / "prices.csv"
    prices.write_text("name,price_per_hour\nstandard_nd96isr_h200_v5,0.5\n")
    answer = reported("phi-4", "--cloud", "azure", "--prices", str(prices))
    assert answer["candidates"][0]["instance_type"] == "Standard_ND96isr_H200_v5"
    assert answer["candidates"][0]["price_per_hour"] == 0.5
    assert "Standard_NC24ads_A100_v4" in run("phi-4").output


def test_no_type_fits() -> None:
    answer = reported("--size-gib", "100000", "--bytes-per-token", "1", "--one-node", exit_code=2)
    assert answer["candidates"] == []
    assert answer["reason"]


def test_a_config_with_its_index(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"num_hidden_layers": 40, "num_key_value_heads": 10, "head_dim": 128})
    )
    gpus = ("--gpu-memory-gib", "24", "--gpus-per-node", "1")
    assert "--size-gib" in str(refused(str(tmp_path), *gpus))
    assert reported(str(tmp_path), "--size-gib", "27.31", *gpus)["nodes"] == 2
    index = {"metadata": {"total_size": int(27.31 * 1024**3)}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    answer = reported(str(tmp_path / "config.json"), *gpus)
    assert (answer["nodes"], answer["bytes_per_token"]) == (2, 204800)


def test_utilization_in_general_and_by_product() -> None:
    tight = [*figures(80, 0, 94, 1), "--utilization", "0.96"]
    assert reported(*tight)["nodes"] == 1
    assert reported("--size-gib=76", "--bytes-per-token=0", "-t", "Standard_NC40ads_H100_v5")["nodes"] == 2
    by_product = ("--utilization", "H100=0.92", "-t", "Standard_NC40ads_H100_v5")
    assert reported("--size-gib=76", "--bytes-per-token=0", *by_product)["nodes"] == 1


@pytest.mark.parametrize("nodes", [["-t", "Standard_NC24ads_A100_v4"], []])
def test_no_type_serves_a_context_beyond_the_model(nodes: list[str]) -> None:
    answer = reported("phi-4", *nodes, "--context-length", "20000", exit_code=2)
    assert answer["reason"] == "phi-4 supports at most 16384 tokens, and the context length is 20000"
    assert not answer["feasible"] and not answer.get("candidates")
    assert reported("phi-4", *nodes, "--context-length", "16384")["feasible"]


def test_mig_slices() -> None:
    model = ("--size-gib=8", "--bytes-per-token=8192")
    assert reported(*model, "--mig-profile", "2g.24gb")["min_gpus"] == 1
    assert "MIG" in reported(*model, "--mig-profile", "1g.10gb", exit_code=2)["reason"]


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize("option", ["--size-gib", "--gpu-memory-gib"])
def test_invalid_numbers_are_named(option: str, bad: str) -> None:
    given = [each for each in figures(8, 8192, 80, 1) if not each.startswith(option)]
    assert "above 0" in str(refused(*given, f"{option}={bad}"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no model is given"),
        (("--size-gib", "8"), "--bytes-per-token"),
        ((*figures(8, 8192, 80, 1)[:3], "--gpus-per-node=0"), "GPUs of a node"),
        ((*figures(8, 8192, 80, 1), "--context-length=0"), "context length"),
        ((*figures(8, 8192, 80, 1), "--utilization=1.5"), "utilization"),
        ((*figures(8, 8192, 80, 1), "--utilization=H100"), "not a number"),
        ((*figures(8, 8192, 80, 1), "--instance-type=g6.xlarge"), "exclude each other"),
        (("phi-4", "--gpus-per-node=2"), "--gpu-memory-gib"),
        (("phi-4", "--mig-profile=big"), "not a MIG profile"),
        (("phi-4", "--cloud=moon"), "azure"),
        (("phi-4", "--prices=nowhere.csv"), "nowhere.csv"),
        (("phi4", "-t", "g6.xlarge"), "did you mean phi-4"),
        (("phi-4", "-t", "Standard_NC24ads_A100"), "did you mean Standard_NC24ads_A100_v4"),
    ],
)
def test_errors_say_what_to_change(arguments: tuple[str, ...], message: str) -> None:
    assert message in str(refused(*arguments))


def test_the_parallelism_and_the_context_of_a_type_are_reported() -> None:
    answer = reported("phi-4", "-t", "Standard_NC96ads_A100_v4")
    assert answer["serving"]["tier"] == "data" and answer["serving"]["data"] == 4
    assert answer["serving"]["context_length"] == 16384
    serving = reported("phi-4", "-t", "g5.12xlarge")["serving"]
    assert (serving["tier"], serving["tensor"], serving["data"], serving["unused"]) == ("tensor", 2, 2, 0)
    serving = reported("phi-4", "--gpu-memory-gib=24", "--gpus-per-node=3")["serving"]
    assert (serving["tensor"], serving["data"], serving["unused"]) == (2, 1, 1)


def test_types_are_ordered_by_the_price_of_their_kv_cache(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("name,price_per_hour\nStandard_NC24ads_A100_v4,3\nStandard_NC96ads_A100_v4,8\n")
    given = ("phi-4", "--cloud", "azure", "--prices", str(prices))
    assert reported(*given)["candidates"][0]["instance_type"] == "Standard_NC24ads_A100_v4"
    by_cache = reported(*given, "--by", "kv-cache")["candidates"]
    assert by_cache[0]["instance_type"] == "Standard_NC96ads_A100_v4"
    found = [each["price_per_hour_of_a_million_cached_tokens"] for each in by_cache[:2]]
    assert found == sorted(found)


@pytest.mark.parametrize(("price", "shown"), [("14752.5", "14,752.5"), ("1179.84", "1,179.84"), ("0.526", "0.526")])
def test_prices_in_any_currency_are_shown_in_full(
    price: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    prices = tmp_path / "prices.csv"
    prices.write_text(f"name,price_per_hour\nStandard_NC24ads_A100_v4,{price}\n")
    lines = run("phi-4", "--cloud", "azure", "--prices", str(prices)).stdout.splitlines()
    [priced] = [line for line in lines if shown in line]
    assert "1 x" in priced, "no column is left out"


def test_an_order_without_prices_is_reported() -> None:
    [warning] = reported("phi-4-mini-instruct", "--cloud", "arc", "--by", "kv-cache")["warnings"]
    assert "--by kv-cache" in warning and "--prices" in warning
    listed = reported("phi-4", "--cloud", "azure", "--by", "kv-cache")
    assert not listed["warnings"] and listed["prices"]["currency"] == "USD"
    by_tokens = [each["price_per_hour_of_a_million_cached_tokens"] for each in listed["candidates"]]
    known = [price for price in by_tokens if price is not None]
    assert known == sorted(known) and by_tokens[: len(known)] == known
    assert not reported("phi-4", "--cloud", "azure")["warnings"]
    assert "--by" in str(refused("phi-4", "-t", "g5.xlarge", "--by", "kv-cache"))


def test_the_first_types_of_one_cloud_are_written_as_fields_of_a_workspace() -> None:
    listed = reported("phi-4")["candidates"]
    cloud = listed[0]["cloud"]
    wanted = [each["instance_type"] for each in listed if each["cloud"] == cloud][:3]
    assert reported("phi-4", "--recommend", "3") == {"resource": {"instanceTypes": wanted}}
    assert yaml.safe_load(run("phi-4", "--recommend", "3").stdout) == {"resource": {"instanceTypes": wanted}}
    assert "--recommend" in str(refused("phi-4", "-t", "g5.xlarge", "--recommend", "3"))


def test_without_layers_there_is_no_price_per_token(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("name,price_per_hour\ng5.xlarge,1\n")
    figures = ("--size-gib", "14", "--bytes-per-token", "131072", "--prices", str(prices))
    [warning] = reported(*figures, "--by", "kv-cache")["warnings"]
    assert "config.json" in warning


def test_a_config_without_a_maximum_context_serves_the_counted_context(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        '{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}'
    )
    given = (str(config), "--size-gib", "14")
    assert reported(*given, "-t", "g5.xlarge")["serving"]["context_length"] == 2048
    assert reported(*given, "-t", "g5.xlarge", "--context-length", "8192")["serving"]["context_length"] == 8192
    [warning] = reported(*given)["warnings"]
    assert "max_position_embeddings" in warning and "--context-length" in warning


def test_other_vendors_are_refused_by_name() -> None:
    assert "Trainium" in str(refused("phi-4", "-t", "trn1.32xlarge"))


def test_presets_of_a_file_are_estimated(tmp_path: Path) -> None:
    file = tmp_path / "presets.yaml"
    config = "{num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: 8, hidden_size: 4096}"
    file.write_text(f"presets: [{{name: own, repository: o/own, sizeGiB: 14, config: {config}}}]")
    answer = reported("own", "-t", "Standard_NC24ads_A100_v4", "--presets", str(file))
    assert (answer["bytes_per_token"], answer["nodes"]) == (131072, 1)
    assert "no list `presets`" in str(refused("own", "--presets", str(_written(tmp_path, "a: 1"))))


def _written(folder: Path, text: str) -> Path:
    file = folder / "other.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("phi-4", "--utilization", "XYZ=0.9"), "--utilization XYZ=0.9"),
        ((*figures(8, 8192, 80, 1), "--utilization", "H100=0.9"), "--utilization H100=0.9"),
    ],
)
def test_the_utilization_of_a_product_that_no_gpu_is_is_refused(arguments: tuple[str, ...], field: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, PlimsollError)
    assert error.message.startswith(field)


def test_a_file_without_an_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: node-1}}")
    error = run("phi-4", "-f", str(tmp_path / "node.yaml")).exception
    assert isinstance(error, PlimsollError)
    assert "node.yaml: no Environment" in error.message
