"""What is read from a Hugging Face config.json and the files beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.observe.files import ModelFilesError, read_model_files
from plimsoll.presets import InvalidModelConfigError, read_model_config, shape_fields

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
        pytest.param(
            a_config(kv_lora_rank=256, qk_rope_head_dim=32, qk_nope_head_dim=64, model_type="minicpm3"),
            2 * 2 * 40 * 40 * 96,
            id="ranks of latents, and a model that vLLM runs without latents",
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


def test_a_model_with_latents_has_as_many_kv_heads_as_heads_unless_it_says_otherwise() -> None:
    latents = a_config(kv_lora_rank=512, qk_rope_head_dim=64)
    heads = latents["num_attention_heads"]
    assert read_model_config(latents | {"num_key_value_heads": None}).kv_heads == heads
    assert read_model_config(latents | {"num_key_value_heads": 1}).kv_heads == 1


SPELLINGS = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_dim": ("kv_channels", "attention_head_dim"),
    "hidden_size": ("n_embd", "d_model"),
    "max_position_embeddings": (
        *("n_positions", "max_seq_len", "seq_length", "model_max_length", "max_target_positions"),
        *("max_sequence_length", "max_seq_length", "seq_len"),
    ),
}


@pytest.mark.parametrize(("usual", "other"), [(usual, one) for usual, every in SPELLINGS.items() for one in every])
def test_a_field_counts_by_each_of_its_names(usual: str, other: str) -> None:
    config = a_config(head_dim=None if usual == "hidden_size" else 64)
    renamed = {other if name == usual else name: value for name, value in config.items()}
    assert read_model_config(renamed) == read_model_config(config)
    assert read_model_config(shape_fields(renamed)) == read_model_config(config)


@pytest.mark.parametrize("field", ["text_config", "llm_config", "language_config"])
def test_the_language_model_of_a_multimodal_one_counts(field: str) -> None:
    assert read_model_config({field: a_config(), "hidden_size": 7}) == read_model_config(a_config())


@pytest.mark.parametrize("width", ["intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size"])
def test_tensor_parallelism_cuts_each_width(width: str) -> None:
    assert read_model_config(a_config(**{width: 30})).tensor_sizes(8) == (1, 2)


@pytest.mark.parametrize("field", ["num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts"])
def test_experts_are_cut_over_the_gpus_of_all_engines(field: str) -> None:
    """4 blocks of an expert's weights are no 8 parts; without experts, each engine has its own copy."""
    blocks = {"moe_intermediate_size": 512, "quantization_config": {"weight_block_size": [128, 128]}}
    config = a_config(**blocks, **{field: 8})
    assert read_model_config(config).engines(8, 1) == 4
    assert read_model_config(shape_fields(config)) == read_model_config(config)
    assert read_model_config(a_config(**blocks, **{field: 0})).engines(8, 1) == 8


def rope(kind: str | None = "linear", factor: Any = 4.0) -> dict[str, Any]:
    return {"factor": factor} | ({} if kind is None else {"rope_type": kind})


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, 16384),
        ({"max_position_embeddings": None}, None),
        # Qwen-14B-Chat, and Command-R
        ({"max_position_embeddings": 8192, "seq_length": 2048}, 2048),
        ({"max_position_embeddings": 8192, "model_max_length": 131072}, 131072),
        ({"rope_scaling": rope()}, 65536),
        ({"rope_scaling": {"type": "dynamic", "factor": 2}}, 32768),
        ({"rope_parameters": rope(), "rope_scaling": rope("dynamic", 2)}, 65536),
        ({"rope_parameters": {"full_attention": rope(), "sliding_attention": {"rope_type": "default"}}}, 65536),
        *(({"rope_scaling": rope(kind)}, 16384) for kind in ("default", "llama3", "longrope", "mrope", "su", "yarn")),
        *(({"rope_scaling": rope(kind)}, 16384) for kind in ("deepseek_llama_scaling", "deepseek_yarn")),
        ({"rope_scaling": rope("longrope", None)}, 16384),
        ({"rope_scaling": rope("linear", "4")}, 16384),
        ({"rope_scaling": rope(None)}, 16384),
        ({"rope_scaling": {"rope_type": ["linear"], "factor": 1e300}}, 16384),
        ({"rope_scaling": rope(), "model_type": "gemma3_text"}, 16384),
    ],
)
def test_the_context_limit_is_that_of_vllm(fields: dict[str, Any], limit: int | None) -> None:
    """`_get_and_verify_max_len` of vLLM 0.32."""
    config = a_config(**fields)
    assert read_model_config(config).context_limit == limit
    assert read_model_config(shape_fields(config)).context_limit == limit


@pytest.mark.parametrize(
    ("fields", "sizes"),
    [
        ({}, (1, 2)),
        # 100352 is a multiple of 64, and not of 5.
        ({"vocab_size": 100352}, (1, 2)),
        ({"vocab_size": 151936}, (1, 2)),
        ({"vocab_size": 100000}, (1, 2)),
        ({"vocab_size": 64 * 5 * 3}, (1, 2, 5, 10, 20)),
        ({"num_key_value_heads": 8}, (1, 2, 4, 8)),
        ({"num_key_value_heads": 8, "moe_intermediate_size": 1536}, (1, 2, 4, 8)),
        ({"num_key_value_heads": 8, "moe_intermediate_size": 1532}, (1, 2, 4)),
        (
            {
                "num_key_value_heads": 8,
                "moe_intermediate_size": 1536,
                "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
            },
            (1, 2, 4),
        ),
    ],
)
def test_tensor_parallelism_cuts_vocabulary_widths_and_blocks_evenly(
    fields: dict[str, Any], sizes: tuple[int, ...]
) -> None:
    config = a_config(**fields)
    assert read_model_config(config).tensor_sizes(20) == sizes
    assert read_model_config({"text_config": config}) == read_model_config(config)
    assert read_model_config(shape_fields(config)) == read_model_config(config)


def test_a_stored_config_has_only_what_is_read_and_small_values() -> None:
    kept = shape_fields(
        a_config(
            multi_query="x" * 2_000_000,
            n_layer=["x"] * 100_000,
            model_type="x" * 100_000,
            rope_scaling={"factor": 2, "rope_type": "linear", "more": "x" * 100_000},
            quantization_config={"weight_block_size": [128, 128], "modules": ["x"] * 100_000},
        )
    )
    assert len(json.dumps(kept)) < 1000


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
        (a_config(num_hidden_layers=10**9, num_key_value_heads=10**9, head_dim=10**9), "bytes of KV cache"),
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
