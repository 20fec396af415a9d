"""How the server splits a replica over the GPUs of its nodes, and the longest context whose KV cache fits there.

Three tiers, as in KAITO: a model whose files are below half of one GPU's memory runs once on each GPU of the node
(data parallelism); else it is split over the GPUs of one node (tensor parallelism), limited to sizes that its heads
and widths allow; else its layers are split over nodes too (pipeline parallelism), of which the one with most layers
must have room for them. Unlike in KAITO, GPUs that tensor parallelism leaves run further engines of the same size.
"""

from bisect import bisect_left

from plimsoll.estimating.settings import BYTES_PER_GIB, Settings
from plimsoll.model import Serving, Tier
from plimsoll.model.cluster import Device
from plimsoll.presets import ModelShape
from plimsoll.text import counted

DATA_SHARE = 0.5
"""Below this share of one GPU's memory, the model's files leave room for a KV cache on each GPU."""
ALIGNMENT = 256
"""A context that the memory limits is a multiple of this, as in KAITO."""


class Fit:
    """One model on nodes with the same GPUs; `settings` are those of the GPUs' product."""

    def __init__(self, size_gib: float, shape: ModelShape, gpus: Device, settings: Settings) -> None:
        self._size = size_gib
        self._shape = shape
        self._gpus = gpus
        self._settings = settings
        self._sizes = shape.tensor_sizes(gpus.count)
        limit = shape.context_limit
        self.counted = settings.context_length if limit is None else min(settings.context_length, limit)
        """Tokens whose KV cache must fit."""

    @property
    def largest(self) -> int:
        """GPUs of one node over which the model can be split."""
        return self._sizes[-1]

    @property
    def most_nodes(self) -> int:
        """Nodes over which the model can be split: each needs a layer."""
        return self._shape.layers

    @property
    def bound(self) -> str:
        """What bounds the splitting, for messages."""
        shape = self._shape
        if self._gpus.count == 1:
            return f"this model of {shape.layers} layers is split over at most as many nodes"
        if self.largest == 1:
            return (
                f"this model is not split over GPUs of a node ({shape.heads} attention heads, {shape.kv_heads} KV "
                f"heads), and over at most {counted(shape.layers, 'node')}"
            )
        sizes = ", ".join(map(str, self._sizes))
        return (
            f"with {shape.heads} attention heads, {shape.kv_heads} KV heads and {counted(shape.layers, 'layer')}, this "
            f"model is split over {sizes} GPUs of a node and at most {counted(shape.layers, 'node')}"
        )

    def tokens(self, tensor: int, pipeline: int = 1) -> int:
        """Tokens whose KV cache fits in addition to the weights; 0 or less if not even the weights fit."""
        settings = self._settings
        layers = self._shape.layers
        stage = -(-layers // pipeline) / layers  # the largest: vLLM splits the model by whole layers
        weights = self._size * settings.weight_factor * settings.activation_factor * stage / tensor
        left = self._gpus.memory_gib * settings.utilization - settings.overhead_gib - weights
        of_token = self._shape.bytes_per_token * settings.kv_value_bytes / 2 * stage / self._shape.cache_parts(tensor)
        return int(left * BYTES_PER_GIB / of_token)

    def nodes(self, least: int) -> int | None:
        """The fewest nodes, at least `least`, over which the model fits; None if no number does."""
        candidates = range(least, self.most_nodes + 1)
        fits = bisect_left(candidates, True, key=lambda n: self.tokens(self.largest, n) >= self.counted)
        return candidates[fits] if fits < len(candidates) else None

    def serving(self, nodes: int, context_length: int | None = None) -> Serving:
        """How the server runs on that many nodes. `context_length` is the context that the Workspace sets.

        Without it, the context is the longest that fits, at least the one that was counted; and no longer than that
        where the model's own maximum is not known.
        """
        if nodes > 1:
            return self._serving(Tier.PIPELINE, self.largest, 1, nodes, context_length)
        small = self._size < DATA_SHARE * self._gpus.memory_gib and self.tokens(1) >= self.counted
        tensor = 1 if small else self.largest
        data = self._shape.engines(self._gpus.count, tensor)
        return self._serving(Tier.DATA if tensor == 1 < data else Tier.TENSOR, tensor, data, 1, context_length)

    def _serving(self, tier: Tier, tensor: int, data: int, pipeline: int, context_length: int | None) -> Serving:
        tokens = max(self.tokens(tensor, pipeline), 0)
        limit = self._shape.context_limit
        longest = 0 if limit is None else limit if tokens >= limit else tokens // ALIGNMENT * ALIGNMENT
        return Serving(
            tier=tier,
            data=data,
            tensor=tensor,
            pipeline=pipeline,
            context_length=context_length if context_length is not None else max(longest, self.counted),
            utilization=self._settings.utilization,
            cache_tokens=tokens * data,
            unused=self._gpus.count - tensor * data,
        )
