"""How many GPUs and nodes one replica of a model needs, by KAITO's formula (v0.12).

    available  = memory of one GPU * utilization
    fixed      = overhead + context length * bytes per token / GPUs of a node
    weights    = (available - fixed) / activation factor      what of one GPU the weights may take
    min GPUs   = int(size * weight factor / weights) + 1
    nodes      = ceil(min GPUs / GPUs of a node)

Where the model's shape is known, its heads bound over how many GPUs of a node it is split (see `layout`), so that it
may take more nodes than the formula says, or fit none.

All memory is GiB here but where a name says MiB: GPU Feature Discovery reports MiB of one GPU.
"""

import math
from dataclasses import dataclass, replace

from plimsoll.estimating.layout import Fit
from plimsoll.estimating.settings import BYTES_PER_GIB, Settings
from plimsoll.model import Serving, Tier
from plimsoll.model.cluster import LARGEST, Device, check_count, check_figure
from plimsoll.presets import ModelShape


@dataclass(frozen=True, slots=True)
class ModelNeed:
    """What one replica of a model needs; input of the formula."""

    size_gib: float
    """Weights as files, GiB."""
    bytes_per_token: float
    """KV cache of one token over all layers, bytes, with values of 16 bits."""
    spans_nodes: bool = True
    """Whether one replica may run on several nodes."""
    shape: ModelShape | None = None
    """Layers and heads; None where only the figures above are known."""

    def __post_init__(self) -> None:
        check_figure("model size (GiB)", self.size_gib)
        check_figure("bytes per token", self.bytes_per_token, zero=True)


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What one replica needs if only its GPU memory is declared. Nothing is added to it."""

    gpu_memory_gib: float
    """GPU memory over all GPUs of the replica, GiB."""
    spans_nodes: bool = True
    model: ModelNeed | None = None
    """The model's own figures where they are known: how it is split and its context depend on them."""

    def __post_init__(self) -> None:
        check_figure("GPU memory need (GiB)", self.gpu_memory_gib)


Need = ModelNeed | MemoryNeed


@dataclass(frozen=True, slots=True)
class Line:
    """One step of the calculation."""

    name: str
    value: float
    unit: str
    """`GiB`, `GPUs`, `nodes` or `tokens`."""
    sum: str
    """The step as an expression, such as `80 GiB x 0.84`."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One replica fits."""

    min_gpus: int
    nodes: int
    lines: tuple[Line, ...]
    serving: Serving
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


def estimate(
    need: Need, gpus: Device, settings: Settings | None = None, context_length: int | None = None
) -> Estimate | Infeasible:
    """GPUs and nodes that one replica needs on nodes with these GPUs.

    `context_length` is the context in tokens that must fit and is served. Without it, that of the settings must fit,
    and the longest that fits is served. Raises InvalidFigureError where the GPUs' number or memory is impossible or not
    known, and no other error for values that their types accept.
    """
    check_count("GPUs of a node", gpus.count)
    check_figure("memory of one GPU (MiB)", gpus.memory_mib or 0)
    settings = (settings or Settings()).for_product(gpus.product)
    if context_length is not None:
        settings = replace(settings, context_length=context_length)
    if isinstance(need, MemoryNeed):
        memory = gpus.memory_gib
        min_gpus = math.ceil(need.gpu_memory_gib / memory)
        first = Line("minimum GPUs", min_gpus, "GPUs", f"{_g(need.gpu_memory_gib)} GiB / {_g(memory)} GiB, rounded up")
        return _by_nodes(need, gpus, (min_gpus, (first,)), settings, context_length)
    return _by_formula(need, gpus, settings, context_length)


def serving_on(need: Need, gpus: Device, nodes: int, settings: Settings, context_length: int | None = None) -> Serving:
    """How the server runs one replica on that many nodes, whether the estimate agrees or not."""
    settings = settings.for_product(gpus.product)
    if context_length is not None:
        settings = replace(settings, context_length=context_length)
    fit = _fit(need, gpus, settings)
    if fit is not None:
        return fit.serving(nodes, context_length)
    return Serving(
        tier=Tier.TENSOR if nodes == 1 else Tier.PIPELINE,
        tensor=gpus.count,
        pipeline=nodes,
        context_length=settings.context_length,
        utilization=settings.utilization,
    )


def unknown_context(need: Need, context_length: int | None) -> str:
    """Why no longer context than the one that was counted is served; empty where the model's own maximum is known, or
    the Workspace sets its context."""
    model = need.model if isinstance(need, MemoryNeed) else need
    if context_length is not None or model is None or (model.shape and model.shape.context_limit is not None):
        return ""
    if model.shape is None:
        return "as counted: the model's layers and heads are not known"
    return "as counted: the model's own maximum is not known, as its config.json has no max_position_embeddings"


def _fit(need: Need, gpus: Device, settings: Settings) -> Fit | None:
    """None where the model's shape is not known."""
    model = need.model if isinstance(need, MemoryNeed) else need
    return None if model is None or model.shape is None else Fit(model.size_gib, model.shape, gpus, settings)


def _by_formula(need: ModelNeed, gpus: Device, settings: Settings, context_length: int | None) -> Estimate | Infeasible:
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
    return _by_nodes(need, gpus, (min_gpus, tuple(lines)), settings, context_length)


def _by_nodes(
    need: Need, gpus: Device, found: tuple[int, tuple[Line, ...]], settings: Settings, context_length: int | None
) -> Estimate | Infeasible:
    """The result, from the minimum of GPUs and the lines that lead to it."""
    min_gpus, lines = found
    fit = _fit(need, gpus, settings)
    # Declared memory is that of the GPUs that the server uses; KAITO's formula counts all GPUs of a node.
    declared = isinstance(need, MemoryNeed)
    usable = fit.largest if declared and fit is not None else gpus.count
    nodes = -(-min_gpus // usable)
    lines = (*lines, Line("nodes", nodes, "nodes", f"{_gpus(min_gpus)} / {usable} of a node, rounded up"))
    if fit is None:
        spread: int | None = nodes
    elif declared:
        spread = nodes if nodes <= fit.most_nodes else None
    else:
        spread = fit.nodes(nodes)
    needs = f"one replica needs {_gpus(min_gpus)} of {_g(gpus.memory_gib)} GiB"
    reason = ""
    if gpus.separate and min_gpus > 1:
        reason = (
            f"one replica needs {min_gpus} MIG slices of {_g(gpus.memory_gib)} GiB, and a model is not split over "
            "slices: use a larger profile, or whole GPUs"
        )
    elif nodes > 1 and not need.spans_nodes:
        reason = (
            f"{needs}, that is {nodes} nodes of {_gpus(usable)}, and this model runs on one node only: use nodes with "
            "more GPU memory"
        )
    elif fit is not None and (spread is None or (spread > 1 and not need.spans_nodes)):
        reason = f"{needs}, and {fit.bound}: use GPUs with more memory"
    if reason:
        return Infeasible(reason, lines, min_gpus, nodes)
    assert spread is not None
    if spread > nodes and fit is not None:
        lines = (*lines, Line("nodes for its heads and layers", spread, "nodes", fit.bound))
    serving = serving_on(need, gpus, spread, settings, context_length)
    unknown = unknown_context(need, context_length)
    why = "as requested" if context_length is not None else unknown or "the longest that fits, at most the model's own"
    lines = (*lines, Line("context served", serving.context_length, "tokens", why))
    return Estimate(min_gpus, spread, lines, serving)


def _gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"


def _g(value: float) -> str:
    """At most four decimals, without trailing zeros."""
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return text if float(text) or not value else f"{value:.3g}"
