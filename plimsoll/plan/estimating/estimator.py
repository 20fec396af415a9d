"""How many GPUs and nodes one replica of a model needs, by KAITO's formula (v0.12).

    available  = memory of one GPU * utilization
    fixed      = overhead + context length * bytes per token / GPUs of a node
    weights    = (available - fixed) / activation factor      what of one GPU the weights may take
    min GPUs   = int(size * weight factor / weights) + 1
    nodes      = ceil(min GPUs / GPUs of a node)

All memory is GiB here but where a name says MiB: GPU Feature Discovery reports MiB of one GPU.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from plimsoll.model.cluster import LARGEST, InvalidFigureError, NodeGpus, check_figure, product_words

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


@dataclass(frozen=True, slots=True)
class ModelNeed:
    """What one replica of a model needs; input of the formula."""

    size_gib: float
    """Weights as files, GiB."""
    bytes_per_token: float
    """KV cache of one token over all layers, bytes, with values of 16 bits."""
    spans_nodes: bool = True
    """Whether one replica may run on several nodes."""
    splits: bool = True
    """Whether one replica may be split over several GPUs (tensor parallelism)."""

    def __post_init__(self) -> None:
        check_figure("model size (GiB)", self.size_gib)
        check_figure("bytes per token", self.bytes_per_token, zero=True)


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What one replica needs if only its GPU memory is declared. Nothing is added to it."""

    gpu_memory_gib: float
    """GPU memory over all GPUs of the replica, GiB."""
    spans_nodes: bool = True

    def __post_init__(self) -> None:
        check_figure("GPU memory need (GiB)", self.gpu_memory_gib)


Need = ModelNeed | MemoryNeed


@dataclass(frozen=True, slots=True)
class Line:
    """One step of the calculation."""

    name: str
    value: float
    unit: str
    """`GiB`, `GPUs` or `nodes`."""
    sum: str
    """The step as an expression, such as `80 GiB x 0.84`."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One replica fits."""

    min_gpus: int
    nodes: int
    lines: tuple[Line, ...]
    feasible: bool = True


@dataclass(frozen=True, slots=True)
class Infeasible:
    """One replica does not fit such nodes, or may not use as many as it needs."""

    reason: str
    """The figures, and what would have to be larger."""
    lines: tuple[Line, ...]
    min_gpus: int | None = None
    nodes: int | None = None
    """The formula's result, where it has one and another rule refuses it."""
    feasible: bool = False


def estimate(need: Need, gpus: NodeGpus, settings: Settings | None = None) -> Estimate | Infeasible:
    """GPUs and nodes that one replica needs on nodes with these GPUs.

    Raises no error for values that their types accept.
    """
    if isinstance(need, MemoryNeed):
        memory = gpus.memory_gib
        min_gpus = math.ceil(need.gpu_memory_gib / memory)
        first = Line("minimum GPUs", min_gpus, "GPUs", f"{_g(need.gpu_memory_gib)} GiB / {_g(memory)} GiB, rounded up")
        return _by_nodes(need, gpus, min_gpus, (first,))
    return _by_formula(need, gpus, (settings or Settings()).for_product(gpus.product))


def _by_formula(need: ModelNeed, gpus: NodeGpus, settings: Settings) -> Estimate | Infeasible:
    available = gpus.memory_gib * settings.utilization
    token_bytes = need.bytes_per_token * settings.kv_value_bytes / 2
    cache = settings.context_length * token_bytes / gpus.count / BYTES_PER_GIB
    fixed = settings.overhead_gib + cache
    weights = need.size_gib * settings.weight_factor
    lines = [
        Line("available on one GPU", available, "GiB", f"{_g(gpus.memory_gib)} GiB x {_g(settings.utilization)}"),
        Line(
            "KV cache on one GPU",
            cache,
            "GiB",
            f"{settings.context_length} tokens x {_g(token_bytes)} bytes / {_gpus(gpus.count)}",
        ),
        Line("fixed on one GPU", fixed, "GiB", f"{_g(settings.overhead_gib)} GiB overhead + {_g(cache)} GiB KV cache"),
    ]
    if available <= fixed:
        return Infeasible(
            f"one GPU offers {_g(available)} GiB ({_g(gpus.memory_gib)} GiB x {_g(settings.utilization)}), and "
            f"overhead ({_g(settings.overhead_gib)} GiB) and KV cache ({_g(cache)} GiB) alone use {_g(fixed)} GiB: "
            "use GPUs with more memory, or a shorter context",
            tuple(lines),
        )
    room = (available - fixed) / settings.activation_factor
    quotient = weights / room
    if quotient > LARGEST:
        return Infeasible(
            f"one GPU has {_g(room)} GiB left for {_g(weights)} GiB of weights: use GPUs with more memory",
            tuple(lines),
        )
    min_gpus = int(quotient) + 1
    lines += [
        Line(
            "left for weights on one GPU",
            room,
            "GiB",
            f"({_g(available)} - {_g(fixed)}) GiB / {_g(settings.activation_factor)}",
        ),
        Line("weights", weights, "GiB", f"{_g(need.size_gib)} GiB of files x {_g(settings.weight_factor)} in memory"),
        Line("minimum GPUs", min_gpus, "GPUs", f"{_g(weights)} / {_g(room)} = {_g(quotient)}, floor + 1"),
    ]
    return _by_nodes(need, gpus, min_gpus, tuple(lines))


def _by_nodes(need: Need, gpus: NodeGpus, min_gpus: int, lines: tuple[Line, ...]) -> Estimate | Infeasible:
    nodes = -(-min_gpus // gpus.count)
    lines = (*lines, Line("nodes", nodes, "nodes", f"{_gpus(min_gpus)} / {gpus.count} of a node, rounded up"))
    needs = f"one replica needs {_gpus(min_gpus)} of {_g(gpus.memory_gib)} GiB"
    reason = ""
    if gpus.slices and min_gpus > 1:
        reason = (
            f"one replica needs {min_gpus} MIG slices of {_g(gpus.memory_gib)} GiB, and a model is not split over "
            "slices: use a larger profile, or whole GPUs"
        )
    elif min_gpus > 1 and isinstance(need, ModelNeed) and not need.splits:
        reason = f"{needs}, and this model is not split over GPUs: use GPUs with more memory"
    elif nodes > 1 and not need.spans_nodes:
        reason = (
            f"{needs}, that is {nodes} nodes of {_gpus(gpus.count)}, and this model runs on one node only: use nodes "
            "with more GPU memory"
        )
    if reason:
        return Infeasible(reason, lines, min_gpus, nodes)
    return Estimate(min_gpus, nodes, lines)


def _gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"


def _g(value: float) -> str:
    """At most four decimals, without trailing zeros."""
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return text if float(text) or not value else f"{value:.3g}"
