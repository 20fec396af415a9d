"""InstanceType: what one instance of a cloud's instance type offers."""

import math
from dataclasses import dataclass

from plimsoll.model.cluster.node_gpus import MIB_PER_GIB, InvalidFigureError, NodeGpus

TABLE = "table"
"""Source name of the built-in types."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """What one instance of the type offers. Raises InvalidFigureError on impossible figures."""

    name: str
    cloud: str
    """`azure`, `aws` or `arc`; empty if a live source does not report it."""
    gpus: int
    gpu_memory_mib: int
    """Memory of ONE GPU, MiB."""
    product: str
    vcpus: int | None = None
    memory_mib: int | None = None
    """Nominal memory of the host, MiB; None if it is not known."""
    max_pods: int | None = None
    """Pods that an instance on AWS has IP addresses for; None on other clouds, and if it is not known."""
    price_per_hour: float | None = None
    """Price of one instance per hour, in any one currency; None if it is not known."""
    source: str = TABLE
    """Source of the figures: the table, the nodes, a NodePool, the EC2 API."""

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidFigureError("an instance type needs a name")
        if self.price_per_hour is not None and not 0 <= self.price_per_hour < math.inf:
            raise InvalidFigureError(
                f"price of {self.name} must be a number of at least 0, not {self.price_per_hour!r}"
            )
        _ = self.node_gpus

    @property
    def node_gpus(self) -> NodeGpus:
        return NodeGpus(self.gpus, self.gpu_memory_mib, self.product)

    @property
    def nvidia(self) -> bool:
        """Whether its accelerators are NVIDIA's, which `nvidia.com/gpu` and the presets need."""
        return self.product.casefold().startswith(("nvidia", "tesla", "geforce", "quadro"))

    def describe_gpus(self) -> str:
        """Such as `2 x NVIDIA H100 of 94 GiB`."""
        return f"{self.gpus} x {self.product} of {self.gpu_memory_mib / MIB_PER_GIB:.4g} GiB"
