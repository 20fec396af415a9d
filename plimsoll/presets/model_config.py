"""The shape of a model, from its Hugging Face `config.json`.

Hybrid models and sliding windows count as full layers, so that the bytes of a token are an upper bound. The rules of
contexts, latents and splitting are those of vLLM 0.32 (model_arch_config_convertor, ModelConfig, and its layers).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll.errors import PlimsollError
from plimsoll.model.cluster import LARGEST
from plimsoll.presets.shape import VOCABULARY_PADDING, ModelShape

_LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS: Final = ("num_attention_heads", "n_head", "n_heads")
_KV_HEADS: Final = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
_HEAD_DIM: Final = ("head_dim", "kv_channels", "attention_head_dim")
_HIDDEN: Final = ("hidden_size", "n_embd", "d_model")
_CONTEXT: Final = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
    *("max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"),
)
"""Those of which vLLM reads a model's maximum length: the least, or `model_max_length`."""
_WIDTHS: Final = ("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size")
"""Widths that tensor parallelism cuts, by whole blocks where the weights are quantized in blocks."""
_EXPERTS: Final = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
"""Numbers of experts, as vLLM reads them."""
_QUANTIZATION: Final = "quantization_config"
_BLOCKS: Final = "weight_block_size"
_ROPE: Final = ("rope_parameters", "rope_scaling")
_ROPE_TYPE: Final = ("rope_type", "type")
_NOT_LONGER: Final = frozenset(
    {"default", "deepseek_llama_scaling", "deepseek_yarn", "llama3", "longrope", "mrope", "su", "yarn"}
)
"""Types of RoPE scaling whose factor the maximum length has already, or does not get."""
_WITHOUT_LATENTS: Final = ("minicpm3",)
"""Model types with ranks of latents whose full keys and values vLLM caches."""
_READ: Final = (
    *_LAYERS,
    *_HEADS,
    *_KV_HEADS,
    *_HEAD_DIM,
    *_HIDDEN,
    *_CONTEXT,
    *_WIDTHS,
    "vocab_size",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "multi_query",
    "new_decoder_architecture",
)
_TEXT: Final = ("text_config", "llm_config", "language_config")
"""Fields of multimodal models that hold their language model."""


class InvalidModelConfigError(PlimsollError):
    """A `config.json` that lacks a needed field; the message names it."""


def read_model_config(config: Mapping[str, Any]) -> ModelShape:
    """Reads a parsed `config.json`. Raises InvalidModelConfigError, which names the missing or wrong field."""
    text = _text_config(config)
    layers, context = _needed(text, _LAYERS), _context_limit(text)
    divisors, experts = tuple(_divisors(config, text)), _has_experts(text)
    rank = _number(text, ("kv_lora_rank",))
    if rank is None:
        kv_heads = _kv_heads(text)
        heads = _number(text, _HEADS) or kv_heads
        shape = ModelShape(layers, heads, kv_heads, _head_dimension(text), None, context, divisors, experts)
    else:
        heads, rope = _needed(text, _HEADS), _needed(text, ("qk_rope_head_dim",))
        if text.get("model_type") in _WITHOUT_LATENTS:
            dimension = _needed(text, ("qk_nope_head_dim",)) + rope
            shape = ModelShape(layers, heads, heads, dimension, None, context, divisors, experts)
        else:
            latent = rank + rope
            shape = ModelShape(
                layers, heads, _number(text, _KV_HEADS) or heads, latent, latent, context, divisors, experts
            )
    if shape.bytes_per_token > LARGEST:
        raise InvalidModelConfigError(
            f"its layers, heads and dimensions make {shape.bytes_per_token:.3g} bytes of KV cache for one token",
            "correct the file, or set --bytes-per-token",
        )
    return shape


def shape_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a `config.json` that `read_model_config` reads, of which it makes the same shape."""
    text = _text_config(config)
    found: dict[str, Any] = {name: text[name] for name in _READ if isinstance(text.get(name), int)}
    if isinstance(kind := text.get("model_type"), str):
        found["model_type"] = kind[:64]
    if _has_experts(text):
        found[_EXPERTS[0]] = 1
    if blocks := _blocks(config, text):
        found[_QUANTIZATION] = {_BLOCKS: blocks}
    if (factor := _rope_factor(text)) is not None:
        found[_ROPE[0]] = {_ROPE_TYPE[0]: "linear", "factor": factor}
    return found


def _has_experts(text: Mapping[str, Any]) -> bool:
    return any(text.get(name) for name in _EXPERTS)


def _context_limit(text: Mapping[str, Any]) -> int | None:
    limits = [limit for name in _CONTEXT if (limit := _number(text, (name,))) is not None]
    limit = _number(text, ("model_max_length",)) or min(limits, default=None)
    factor = _rope_factor(text)
    return limit if limit is None or factor is None else max(1, int(limit * factor))


def _rope_factor(text: Mapping[str, Any]) -> float | None:
    """By what RoPE scaling multiplies the maximum length; None if it does not."""
    if "gemma3" in str(text.get("model_type")):
        return None
    given: Mapping[str, Any] = next((text[name] for name in _ROPE if isinstance(text.get(name), Mapping)), {})
    # One entry, or one for each type of layers.
    nested = [each for each in given.values() if isinstance(each, Mapping)]
    found = None
    for entry in nested or [given]:
        kind, factor = next((entry[name] for name in _ROPE_TYPE if name in entry), "default"), entry.get("factor")
        if str(kind) in _NOT_LONGER or isinstance(factor, bool) or not isinstance(factor, int | float):
            continue
        if 1 <= factor <= 10**6:
            found = float(factor)
    return found


def _divisors(config: Mapping[str, Any], text: Mapping[str, Any]) -> Iterator[int]:
    """Numbers that a tensor-parallel size must divide, besides those of heads."""
    vocabulary = _number(text, ("vocab_size",)) or VOCABULARY_PADDING
    yield -(-vocabulary // VOCABULARY_PADDING) * VOCABULARY_PADDING
    block = max(_blocks(config, text), default=1)
    for name in _WIDTHS:
        if (width := _number(text, (name,))) is not None:
            yield max(width // block, 1)


def _blocks(config: Mapping[str, Any], text: Mapping[str, Any]) -> list[int]:
    """Rows and columns of a block of quantized weights; empty where they are not quantized in blocks."""
    for each in (config, text):
        quantization = each.get(_QUANTIZATION)
        blocks = quantization.get(_BLOCKS) if isinstance(quantization, Mapping) else None
        if isinstance(blocks, list) and len(blocks) == 2 and all(type(n) is int and 1 <= n <= 10**6 for n in blocks):
            return list(blocks)
    return []


def _text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    if any(config.get(key) is not None for key in _LAYERS):
        return config
    for key in _TEXT:
        nested = config.get(key)
        if isinstance(nested, Mapping):
            return nested
    return config


def _kv_heads(config: Mapping[str, Any]) -> int:
    # Falcon shares one KV head among all heads; its newer architecture has a field with their number.
    if config.get("multi_query") is True and not config.get("new_decoder_architecture"):
        return _number(config, _KV_HEADS[2:]) or 1
    named = _number(config, _KV_HEADS)
    return _needed(config, _HEADS) if named is None else named


def _head_dimension(config: Mapping[str, Any]) -> int:
    named = _number(config, _HEAD_DIM)
    if named is not None:
        return named
    hidden, heads = _needed(config, _HIDDEN), _needed(config, _HEADS)
    if hidden % heads:
        raise InvalidModelConfigError(
            f"head_dim is missing, and hidden_size {hidden} is not a multiple of num_attention_heads {heads}",
            "add head_dim to the file, or set --bytes-per-token",
        )
    return hidden // heads


def _needed(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    found = _number(config, names)
    if found is None:
        also = f" (nor {', '.join(names[1:])})" if len(names) > 1 else ""
        raise InvalidModelConfigError(
            f"{names[0]} is missing{also}", "use the config.json of the model itself, or set --bytes-per-token"
        )
    return found


def _number(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """The value of the first of these fields that is set; `null` counts as missing."""
    for name in names:
        value = config.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
            raise InvalidModelConfigError(
                f"{name} must be a whole number of at least 1, not {value!r:.60}",
                "correct the file, or set --bytes-per-token",
            )
        return value
    return None
