"""EstimatorSettings: overrides of the estimator's assumptions."""

from typing import Annotated

from pydantic import Field

from plimsoll.model.meta import Described

Share = Annotated[float, Field(gt=0, le=1)]


class EstimatorSettings(Described):
    """Each absent field has the estimator's default, which is KAITO's."""

    utilization: Share | None = None
    """Fraction of a GPU's memory that the inference server may use; absent: 0.84."""
    utilization_by_product: dict[str, Share] = Field(default_factory=dict)
    """Utilization by GPU product, such as H100: 0.92; a key matches products that contain all of its words."""
    overhead_gib: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    """GiB of each GPU that CUDA, NCCL and graphs use; absent: 2.3."""
    activation_factor: Annotated[float, Field(ge=1, le=1000)] | None = None
    """Factor for activations on a GPU's part of the weights; absent: 1.05."""
    weight_factor: Annotated[float, Field(ge=1, le=1000)] | None = None
    """Size of the weights in memory, as a multiple of their files; absent: 1.02."""
    context_length: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Tokens whose KV cache must fit, if a Workspace does not set them; absent: 2048."""
    kv_value_bytes: Annotated[float, Field(ge=0.25, le=16)] | None = None
    """Bytes of one cached value: 1 if the server keeps its KV cache as fp8; absent: 2."""
