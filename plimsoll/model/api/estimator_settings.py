"""EstimatorSettings: what the estimate of a replica's nodes takes for granted, where an environment knows better."""

from typing import Annotated

from pydantic import Field

from plimsoll.model.meta import Declared

Share = Annotated[float, Field(gt=0, le=1)]


class EstimatorSettings(Declared):
    """Each absent field has the estimator's own default, which is KAITO's."""

    utilization: Share | None = None
    """Share of a GPU's memory that the inference server may take; absent: 0.84."""
    utilization_by_product: dict[str, Share] = Field(default_factory=dict)
    """Utilization for GPU products with all words of the key in their name, such as H100: 0.92."""
    overhead_gib: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    """GiB of each GPU that CUDA, NCCL and graphs take; absent: 2.3."""
    activation_factor: Annotated[float, Field(ge=1, le=1000)] | None = None
    """What activations add to a GPU's share of the weights; absent: 1.05."""
    weight_factor: Annotated[float, Field(ge=1, le=1000)] | None = None
    """Weights in memory, as a multiple of their files; absent: 1.02."""
    context_length: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Tokens whose KV cache must fit, where a Workspace does not say them; absent: 2048."""
    kv_value_bytes: Annotated[float, Field(gt=0, le=16)] | None = None
    """Bytes of one cached value: 1 where the server keeps its KV cache as fp8; absent: 2."""
