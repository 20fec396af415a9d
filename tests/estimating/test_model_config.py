"""What is read from a Hugging Face config.json and the files beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.observe.files import ModelFilesError, read_model_files
from plimsoll.presets import InvalidModelConfigError, read_model_config

GIB = 1024**3


def a_config(**changes: Any) -> dict[str, Any]:
    """The config of a model with 40 layers and 10 KV heads of 128; a change to None removes the field."""
    config = {
        "hidden_size": 5120,
        "num_attention_heads": 40,
        "num_hidden_layers": 40,
        "num_key_value_heads": 10,
        "max_position_embeddings": 16384,
    } | changes
    return {name: value for name, value in config.items() if value is not None}


@pytest.mark.parametrize(
    ("config", "token"),
    [
        pytest.param(a_config(), 204800, id="grouped heads"),
        pytest.param(a_config(num_key_value_heads=None), 4 * 204800, id="a KV head for each head"),
        pytest.param(a_config(head_dim=64), 102400, id="head_dim wins over hidden_size / heads"),
        pytest.param(a_config(num_local_experts=128, num_experts_per_tok=4), 204800, id="experts change nothing"),
        pytest.param(
            a_config(kv_lora_rank=512, qk_rope_head_dim=64, num_hidden_layers=61), 70272, id="latent attention"
        ),
        pytest.param({"text_config": a_config(), "vision_config": {"num_hidden_layers": 7}}, 204800, id="multimodal"),
        pytest.param(
            {"n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024}, 2 * 12 * 2 * 768, id="names of GPT-2"
        ),
        pytest.param(
            a_config(
                multi_query=True,
                num_kv_heads=71,
                num_key_value_heads=None,
                num_attention_heads=71,
                hidden_size=4544,
                num_hidden_layers=32,
            ),
            8192,
            id="one KV head for all (falcon-7b)",
        ),
        pytest.param(
            a_config(
                multi_query=True,
                new_decoder_architecture=True,
                num_kv_heads=8,
                num_key_value_heads=None,
                num_attention_heads=128,
                hidden_size=8192,
                num_hidden_layers=60,
            ),
            122880,
            id="named KV heads in the newer architecture (falcon-40b)",
        ),
    ],
)
def test_bytes_per_token(config: dict[str, Any], token: int) -> None:
    assert read_model_config(config).bytes_per_token == token


def test_the_context_limit_is_read_from_each_known_field() -> None:
    assert read_model_config(a_config()).context_limit == 16384
    assert read_model_config(a_config(max_position_embeddings=None)).context_limit is None


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "num_hidden_layers is missing"),
        (a_config(num_hidden_layers=None), "num_hidden_layers is missing"),
        (a_config(num_attention_heads=None), "num_attention_heads is missing"),
        (a_config(hidden_size=None), "hidden_size is missing"),
        (a_config(kv_lora_rank=512), "qk_rope_head_dim is missing"),
        (a_config(num_hidden_layers=0), "num_hidden_layers must be"),
        (a_config(num_hidden_layers="40"), "num_hidden_layers must be"),
        (a_config(num_hidden_layers=True), "num_hidden_layers must be"),
        (a_config(num_key_value_heads=[8, 4]), "num_key_value_heads must be"),
        (a_config(hidden_size=5121), "head_dim is missing"),
    ],
)
def test_a_missing_or_wrong_field_is_named(config: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidModelConfigError, match=field):
        read_model_config(config)


def a_folder(at: Path, **files: Any) -> Path:
    folder = at / "some-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(a_config()))
    for name, content in files.items():
        (folder / f"model.safetensors.{name}.json").write_text(json.dumps(content))
    return folder


def test_size_from_the_index_beside_the_config(tmp_path: Path) -> None:
    folder = a_folder(tmp_path, index={"metadata": {"total_size": 27 * GIB}, "weight_map": {}})
    for path in (folder, folder / "config.json"):
        files = read_model_files(path)
        assert (files.name, files.size_gib, files.shape.bytes_per_token) == ("some-model", 27, 204800)


def test_without_an_index_the_size_is_that_of_the_files(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    assert read_model_files(folder).size_gib is None
    for name in ("a", "b"):
        (folder / f"{name}.safetensors").write_bytes(bytes(1024))
    assert read_model_files(folder).size_gib == 2048 / GIB


@pytest.mark.parametrize("total", [None, 0, -1, "27", True, [1]])
def test_an_index_without_a_size_is_refused(tmp_path: Path, total: Any) -> None:
    folder = a_folder(tmp_path, index={"metadata": {"total_size": total}})
    with pytest.raises(ModelFilesError, match=r"index\.json: metadata\.total_size"):
        read_model_files(folder)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    with pytest.raises(ModelFilesError, match=r"config\.json: No such file"):
        read_model_files(tmp_path)
    for content, message in ((b"{", "not JSON"), (b"[]", "one JSON object"), (b"\xff\xfe", "not JSON")):
        file.write_bytes(content)
        with pytest.raises(ModelFilesError, match=message):
            read_model_files(file)
    file.write_text("{}")
    with pytest.raises(InvalidModelConfigError, match=r"config\.json: num_hidden_layers is missing"):
        read_model_files(file)
