"""The shape of a model, from its Hugging Face `config.json`.

Hybrid models and sliding windows count as full layers, so that the bytes of a token are an upper bound.
"""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.errors import PlimsollError
from plimsoll.presets.shape import ModelShape

_LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS: Final = ("num_attention_heads", "n_head", "n_heads")
_KV_HEADS: Final = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
_HEAD_DIM: Final = ("head_dim", "kv_channels", "attention_head_dim")
_HIDDEN: Final = ("hidden_size", "n_embd", "d_model")
_CONTEXT: Final = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
    *("max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"),
)
"""Those of which vLLM reads a model's maximum length."""
_READ: Final = (
    *_LAYERS,
    *_HEADS,
    *_KV_HEADS,
    *_HEAD_DIM,
    *_HIDDEN,
    *_CONTEXT,
    "kv_lora_rank",
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
    layers = _needed(text, _LAYERS)
    context = _number(text, _CONTEXT)
    rank = _number(text, ("kv_lora_rank",))
    if rank is not None:
        latent = rank + _needed(text, ("qk_rope_head_dim",))
        heads = _needed(text, _HEADS)
        return ModelShape(layers, heads, _number(text, _KV_HEADS) or heads, latent, latent, context)
    kv_heads = _kv_heads(text)
    return ModelShape(layers, _number(text, _HEADS) or kv_heads, kv_heads, _head_dimension(text), None, context)


def shape_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a `config.json` that `read_model_config` reads, of which it makes the same shape."""
    text = _text_config(config)
    return {name: text[name] for name in _READ if text.get(name) is not None}


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
