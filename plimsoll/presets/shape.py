"""The shape of a model: its layers and heads, as far as the memory of its KV cache and its splitting depend on them."""

import math
from dataclasses import dataclass
from typing import Final

VOCABULARY_PADDING: Final = 64
"""vLLM pads a vocabulary to a multiple of this, and cuts it into equal parts."""
VALUE_BYTES: Final = 2
"""Bytes of one cached value, as 16-bit floats."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Figures of a `config.json`."""

    layers: int
    heads: int
    """Attention heads of a layer."""
    kv_heads: int
    head_dim: int
    latent_dim: int | None = None
    """Values that one token of one layer caches with latent attention (MLA): rank and RoPE dimension."""
    context_limit: int | None = None
    """Maximum context length of the model, tokens."""
    divisors: tuple[int, ...] = (VOCABULARY_PADDING,)
    """Numbers that a tensor-parallel size must divide, besides the heads: the padded vocabulary, or its padding where
    it is not known, and the widths of the layers, in blocks where the weights are quantized in blocks."""
    experts: bool = False
    """Whether it is known that layers have experts, which are cut over the GPUs of all engines of a server."""

    @property
    def bytes_per_token(self) -> int:
        """KV cache of one token over all layers, bytes. An upper bound: layers without attention count as full ones."""
        cached = 2 * self.kv_heads * self.head_dim if self.latent_dim is None else self.latent_dim
        return VALUE_BYTES * self.layers * cached

    def tensor_sizes(self, gpus: int) -> tuple[int, ...]:
        """Tensor-parallel sizes that vLLM accepts on at most `gpus` GPUs, ascending.

        A size must divide the attention heads and `divisors`, and divide the KV heads or be a multiple of them (vLLM:
        ModelConfig's verify_with_parallel_config, and the layers of the models).
        """
        largest = math.gcd(self.heads, *self.divisors)
        sizes = (size for size in range(1, min(gpus, largest) + 1) if not largest % size)
        if self.latent_dim is not None:
            return tuple(sizes)
        return tuple(size for size in sizes if not self.kv_heads % size or not size % self.kv_heads)

    def engines(self, gpus: int, tensor: int) -> int:
        """Data-parallel size: engines of `tensor` GPUs each that one server runs on a node with `gpus` GPUs.

        Each engine has a whole copy of the model, but of experts, whose layers form one tensor-parallel group over the
        GPUs of all engines (https://docs.vllm.ai/en/latest/serving/data_parallel_deployment/). Which models have
        experts is not known of all: engines of several GPUs must be as many as experts would allow.
        """
        most = gpus // tensor
        if tensor == 1 and not self.experts:
            return most
        cut = math.gcd(*self.divisors)
        return max((size for size in range(1, most + 1) if not cut % (size * tensor)), default=1)

    def cache_parts(self, tensor: int) -> int:
        """In how many parts tensor parallelism cuts the KV cache: latents, and KV heads beyond their number, are copied
        to every GPU."""
        return 1 if self.latent_dim is not None else min(tensor, self.kv_heads)

    def __str__(self) -> str:
        if self.latent_dim is not None:
            return f"{self.layers} layers, {self.heads} heads, latents of {self.latent_dim}"
        return f"{self.layers} layers, {self.heads} heads, {self.kv_heads} KV heads of {self.head_dim}"
