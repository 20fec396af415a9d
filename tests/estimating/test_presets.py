"""The catalog of presets: names, figures, and errors of invalid entries."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.presets import (
    InvalidModelConfigError,
    InvalidPresetsError,
    ModelCatalog,
    ModelPreset,
    as_csv,
    from_kaito,
    read_catalog,
    read_presets,
)
from tests.pages import CHECKOUT

CATALOG = ModelCatalog.builtin()
CATALOG_CSV = CHECKOUT / "plimsoll/presets/catalog.csv"


def preset(name: str) -> ModelPreset | None:
    return CATALOG.find(name)


@pytest.mark.parametrize(
    ("name", "size", "token", "spans"),
    [
        ("phi-4-mini-instruct", 7.15, 131072, False),
        ("phi-4", 27.31, 204800, False),
        ("Qwen2.5-Coder-32B", 61.03, 262144, True),
        ("gpt-oss-120b", 60.77, 73728, True),
        ("gpt-oss-20b", 12.82, 49152, True),
        ("Llama-3.3-70B", 131.42, 327680, True),
        ("DeepSeek-R1-0528", 641.3, 70272, True),
        ("microsoft/phi-4", 27.31, 204800, True),
        ("deepseek-ai/DeepSeek-R1-0528", 641.3, 70272, True),
    ],
)
def test_known_models(name: str, size: float, token: int, spans: bool) -> None:
    found = preset(name)
    assert found is not None
    assert (found.size_gib, found.bytes_per_token, found.spans_nodes) == (size, token, spans)


WEIGHTS_CSV = CHECKOUT / "plimsoll/presets/weights.csv"
BITS_OF_A_PARAMETER = {16: (15.5, 19.0), 8: (7.8, 12.6), 4: (4.2, 7.0)}
"""What files take for a parameter, by the bits of most weights: names round the number of parameters, scales are stored
with quantized weights, and embeddings or vision towers are not quantized."""


def published() -> dict[str, dict[str, str]]:
    with WEIGHTS_CSV.open(encoding="utf-8", newline="") as lines:
        return {row["repository"]: row for row in csv.DictReader(lines)}


def test_the_table_of_weights_has_every_model_with_a_source_or_unknown() -> None:
    repositories = [each.repository for each in read_catalog(CATALOG_CSV.read_text("utf-8"))]
    assert list(published()) == repositories
    for name, row in published().items():
        assert row["source"], name
        assert (row["source"] == "unknown") == (not row["bytes"] and not row["parameters"]), name


@pytest.mark.parametrize("repository", [name for name, row in published().items() if row["source"] != "unknown"])
def test_a_size_is_what_is_published_of_the_weights(repository: str) -> None:
    """KAITO's figure of gpt-oss is twice that: it counts copies in other formats."""
    found, row = preset(repository), published()[repository]
    assert found is not None
    size = found.size_gib * 2**30
    if row["bytes"]:
        assert size == pytest.approx(int(row["bytes"]), rel=0.01)
    else:
        least, most = BITS_OF_A_PARAMETER[int(row["bits"])]
        assert least <= size * 8 / int(row["parameters"]) <= most


def test_models_that_older_releases_do_not_serve_are_of_the_catalog() -> None:
    names = yaml.safe_load((CHECKOUT / "plimsoll/presets/names.yaml").read_text("utf-8"))
    for release, models in names["newer_than"].items():
        for each in models:
            found = preset(each)
            assert found is not None and (found.repository, found.newer_than) == (each, release)


def test_names_are_case_insensitive_and_unknown_ones_are_not_found() -> None:
    assert preset(" PHI-4 ") is preset("phi-4")
    assert preset("phi-5") is None
    assert "phi-4" in CATALOG.near("phi4")
    assert CATALOG.near("nothing like it at all") == ()


def test_the_disk_is_the_size_of_the_model_plus_80_gib() -> None:
    assert [found.disk_gib for name in ("phi-4", "deepseek-r1-0528") if (found := preset(name))] == [107, 721]


def test_every_model_has_a_shape_that_splits_and_a_context() -> None:
    for each in CATALOG.presets:
        assert each.bytes_per_token > 0, each.name
        assert each.shape.tensor_sizes(1) == (1,), each.name
        assert each.context_limit is not None, each.name


def test_models_are_found_by_repository_last_part_and_short_name() -> None:
    for name in ("Qwen/Qwen3.6-27B", "qwen3.6-27b"):
        assert preset(name) is preset("Qwen/Qwen3.6-27B")
    assert preset("gemma-3-4b-it") is preset("gemma-3-4b-instruct") is preset("google/gemma-3-4b-it")


@pytest.mark.parametrize(
    ("name", "gpus", "sizes"),
    [
        ("phi-4", 20, (1, 2)),
        pytest.param("phi-4", 10**12, (1, 2), id="more GPUs than can be counted one by one"),
        ("qwen2.5-coder-7b-instruct", 8, (1, 2, 4)),
        ("falcon-7b", 8, (1,)),
        ("llama-3.3-70b", 8, (1, 2, 4, 8)),
        ("deepseek-r1-0528", 16, (1, 2, 4, 8, 16)),
        ("google/gemma-4-E2B-it", 8, (1, 2, 4, 8)),
    ],
)
def test_tensor_parallel_sizes_are_those_that_the_heads_allow(name: str, gpus: int, sizes: tuple[int, ...]) -> None:
    found = preset(name)
    assert found is not None and found.shape.tensor_sizes(gpus) == sizes


def test_models_behind_a_license_are_gated() -> None:
    gated = {each.name for each in CATALOG.presets if each.gated}
    assert gated == {"llama-3.1-8b-instruct", "llama-3.3-70b-instruct", "gemma-3-4b-instruct", "gemma-3-27b-instruct"}


A_ROW = "repository,size_gib,layers,heads,kv_heads,head_dim\n"


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("o/m,0,1,1,1,1", "size_gib"),
        ("o/m,nan,1,1,1,1", "size_gib"),
        ("o/m,1,,1,1,1", "layers"),
        (",1,1,1,1,1", "repository"),
    ],
)
def test_a_bad_line_of_the_catalog_is_named_with_its_field(row: str, field: str) -> None:
    with pytest.raises(InvalidPresetsError, match=f"line 2.*{field}"):
        read_catalog(A_ROW + row)


KAITO = """
models:
- name: org/mla
  license: mit
  modelFileSize: 641.30Gi
  architectures: [DeepseekV3ForCausalLM]
  modelTokenLimit: 163840
  hiddenSize: 7168
  numHiddenLayers: 61
  numAttentionHeads: 128
  numKeyValueHeads: 128
  kvLoraRank: 512
  qkRopeHeadDim: 64
  quantMethod: fp8
"""


def test_kaitos_file_becomes_the_catalog() -> None:
    models = from_kaito(KAITO)
    assert read_catalog(as_csv(models)) == models
    [model] = models
    assert (model.size_gib, model.shape.bytes_per_token, model.shape.context_limit) == (641.3, 70272, 163840)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: []", "no list `models`"),
        ("a: [", "not YAML"),
        (KAITO.replace("641.30Gi", "much"), "model org/mla: modelFileSize"),
        (KAITO.replace("numHiddenLayers: 61", "numHiddenLayers: 0"), "model org/mla: layers"),
        ("models: [1]", "model number 1"),
    ],
)
def test_a_bad_file_of_kaito_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidPresetsError, match=message):
        from_kaito(text)


CONFIG = "{num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, hidden_size: 64}"
OWN = f"presets: [{{name: own, repository: o/own, sizeGiB: 3, config: {CONFIG}, gated: true}}]"


def test_declared_presets_take_precedence() -> None:
    models = CATALOG.with_presets(read_presets(OWN.replace("name: own", "name: phi-4")))
    found = models.find("PHI-4")
    assert found is not None and (found.repository, found.gated, found.bytes_per_token) == ("o/own", True, 256)
    assert models.find("phi-4-mini-instruct") is not None


@pytest.mark.parametrize("repository", ["microsoft/phi-4", "Qwen/Qwen2.5-Coder-32B-Instruct"])
def test_declared_presets_take_precedence_by_repository(repository: str) -> None:
    """Also where a built-in preset has the repository as its name, beside another one of the same repository."""
    models = CATALOG.with_presets(read_presets(OWN.replace("o/own", repository)))
    found = models.find(repository)
    assert found is not None and found.name == "own"
    assert models.find("phi-4") is preset("phi-4")


def test_a_name_comes_before_the_repository_of_another_preset() -> None:
    both = OWN.replace("]", f", {{name: o/own, repository: o/own, sizeGiB: 4, config: {CONFIG}}}]")
    for models in (CATALOG.with_presets(read_presets(both)), CATALOG.with_presets(reversed(read_presets(both)))):
        assert [found.size_gib for name in ("own", "o/own") if (found := models.find(name))] == [3, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("presets: 1", "no list `presets`"),
        (OWN.replace("sizeGiB: 3", "sizeGiB: 0"), "preset own: sizeGiB"),
        (OWN.replace("gated", "colour"), "preset own: colour"),
    ],
)
def test_an_invalid_declared_preset_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidPresetsError, match=message):
        read_presets(text)


def test_a_config_without_layers_is_refused() -> None:
    with pytest.raises(InvalidModelConfigError, match="preset own: config: num_hidden_layers is missing"):
        read_presets(OWN.replace("num_hidden_layers: 2, ", ""))


COMPUTED = (
    *("config", "data-parallel-size", "distributed-executor-backend", "distributed-timeout-seconds", "enable-lora"),
    *("gpu-memory-utilization", "headless", "lora-modules", "master-addr", "max-loras", "max-model-len", "model"),
    *("nnodes", "node-rank", "pipeline-parallel-size", "port", "served-model-name", "tensor-parallel-size"),
)


@pytest.mark.parametrize("option", [*COMPUTED, "max_model_len", "--dtype", "a b"])
def test_an_option_that_follows_from_the_estimate_is_refused(option: str) -> None:
    with pytest.raises(InvalidModelConfigError, match="preset own: options: "):
        read_presets(OWN.replace("gated: true", f"options: {{'{option}': '1'}}"))
    assert read_presets(OWN.replace("gated: true", "options: {dtype: half, enforce-eager: ''}"))


def test_a_file_that_is_no_catalog_is_named(tmp_path: Path) -> None:
    (tmp_path / "cm.yaml").write_text("kind: ConfigMap")
    error = CliRunner().invoke(app, ["presets", "--from", str(tmp_path / "cm.yaml")]).exception
    assert isinstance(error, PlimsollError)
    assert error.message.startswith(f"{tmp_path / 'cm.yaml'}: ")


@pytest.mark.parametrize("name", ["base", "falcon-40b", "falcon-40b-instruct", "phi-2"])
def test_names_of_kaito_that_are_no_model_here_are_refused_with_the_reason(name: str) -> None:
    assert preset(name) is None
    assert CATALOG.why_not(name)


def test_a_declared_preset_may_have_such_a_name() -> None:
    declared = preset("falcon-7b")
    assert declared is not None
    catalog = CATALOG.with_presets([replace(declared, name="falcon-40b")])
    assert catalog.find("falcon-40b") is not None
    assert catalog.why_not("phi-2")
