"""Settings of the estimator's formula."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from plimsoll.model.cluster import LARGEST, InvalidFigureError, check_figure, product_words

BYTES_PER_GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the formula; the defaults are KAITO's."""

    utilization: float = 0.84
    """Fraction of a GPU's memory that the inference server may use: above 0, at most 1."""
    overhead_gib: float = 2.3
    """GiB of each GPU that CUDA, NCCL, graphs and a small model's activations use."""
    activation_factor: float = 1.05
    """Factor for activations and graphs on a GPU's part of the weights."""
    weight_factor: float = 1.02
    """Size of the weights in memory, as a multiple of their files."""
    context_length: int = 2048
    """Tokens whose KV cache must fit (vLLM's max-model-len)."""
    kv_value_bytes: float = 2
    """Bytes of one cached value: 2 as 16-bit floats, 1 where the server keeps its KV cache as fp8."""
    utilization_by_product: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Utilization by GPU product, such as `{"H100": 0.92}`; a key matches products that contain all of its words."""

    def __post_init__(self) -> None:
        named = {f"utilization of {product}": value for product, value in self.utilization_by_product.items()}
        for name, value in {"utilization": self.utilization, **named}.items():
            if not 0 < value <= 1:
                raise InvalidFigureError(f"{name} must be above 0 and at most 1, not {value!r}")
        check_figure("overhead (GiB)", self.overhead_gib, zero=True)
        for name, value in (("activation factor", self.activation_factor), ("weight factor", self.weight_factor)):
            if not 1 <= value <= LARGEST:
                raise InvalidFigureError(f"{name} must be a number of at least 1, not {value!r}")
        check_figure("context length (tokens)", self.context_length)
        check_figure("bytes of one cached value", self.kv_value_bytes)

    def for_product(self, product: str) -> "Settings":
        """These settings with the utilization of a GPU product; of several keys that match, the longest."""
        words = product_words(product)
        keys = [key for key in self.utilization_by_product if product_words(key) <= words]
        if not keys:
            return self
        closest = max(keys, key=lambda key: (len(product_words(key)), key))
        return replace(self, utilization=self.utilization_by_product[closest])
