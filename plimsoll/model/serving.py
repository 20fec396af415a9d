"""How the inference server runs one replica: over which GPUs it splits the model, and the context that it serves."""

from enum import StrEnum

from plimsoll.model.meta import Observed


class Tier(StrEnum):
    """Which kind of parallelism a replica uses."""

    DATA = "data"
    """An engine with the whole model on each GPU of the node."""
    TENSOR = "tensor"
    """The model split over GPUs of one node."""
    PIPELINE = "pipeline"
    """The layers split over nodes, and each part over GPUs of its node."""


class Serving(Observed):
    tier: Tier
    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    """Parallel sizes: vLLM's `--data-parallel-size`, `--tensor-parallel-size`, `--pipeline-parallel-size`."""
    context_length: int
    """Tokens of the longest sequence (vLLM's `--max-model-len`), whose KV cache fits."""
    utilization: float
    """Fraction of a GPU's memory that the server uses."""
    cache_tokens: int | None = None
    """Tokens whose KV cache fits one replica at a time; None where the model's shape is not known."""
    unused: int = 0
    """GPUs of each node that the server cannot use."""

    @property
    def gpus(self) -> int:
        """GPUs of one node that the server uses."""
        return self.data * self.tensor

    @property
    def longest(self) -> int | None:
        """Tokens of the longest sequence whose KV cache fits; None where the model's shape is not known."""
        return None if self.cache_tokens is None else self.cache_tokens // self.data

    def __str__(self) -> str:
        sizes = {"data": self.data, "tensor": self.tensor, "pipeline": self.pipeline}
        shown = {name: size for name, size in sizes.items() if size > 1 or name == self.tier}
        how = " and ".join(f"{name} parallelism over {size}" for name, size in shown.items())
        return f"{how}, context of {self.context_length} tokens"
