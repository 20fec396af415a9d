"""InstanceType: what one instance of a cloud's instance type offers."""

import math
from dataclasses import dataclass

from plimsoll.model.cluster.device import AMD_GPU, VENDOR_RESOURCES, Device
from plimsoll.model.cluster.evidence import Evidence
from plimsoll.model.cluster.figures import InvalidFigureError, check_count, check_figure
from plimsoll.model.cluster.list_price import ListPrice

TABLE = "table"
"""Source name of the built-in types."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """What one instance of the type offers. Raises InvalidFigureError on impossible figures."""

    name: str
    cloud: str
    """`aws`, `azure`, `gcp` or `arc`; empty if a live source does not report it."""
    gpus: int
    """GPUs that the driver lists, so `nvidia.com/gpu.count`; a part of a GPU counts as one."""
    gpu_memory_mib: int | None
    """Memory of ONE GPU, MiB; what the driver reports unless `memory_source` is nominal. None if it is not known."""
    product: str
    """The exact label `nvidia.com/gpu.product`, without suffixes for sharing and MIG, where `product_source` is one of
    labels; else a name of the accelerators."""
    product_source: Evidence = Evidence.NOMINAL
    memory_source: Evidence = Evidence.NOMINAL
    compute_capability: str = ""
    """Such as 9.0; empty if it is not known."""
    family: str = ""
    """The label `nvidia.com/gpu.family`, such as hopper; empty if it is not known."""
    vcpus: int | None = None
    memory_mib: int | None = None
    """Nominal memory of the host, MiB; None if it is not known."""
    arch: str = ""
    """The label `kubernetes.io/arch`; empty if it is not known."""
    disk_gib: float | None = None
    """NVMe disks that come with the type, GiB; 0: none or only optional ones. None if it is not known."""
    max_pods: int | None = None
    """Pods that an instance on AWS has IP addresses for; None on other clouds, and if it is not known."""
    api_gpu_name: str = ""
    """The accelerators as the cloud's API names them, such as `A10G` or `nvidia-l4`; empty if it is not known."""
    api_gpu_memory_mib: int | None = None
    """Memory of ONE GPU by the EC2 API, MiB, which is not what the driver reports; None on other clouds."""
    karpenter_gpus: int | None = None
    """GPUs that the cloud's Karpenter provider counts on the type; with 0 it launches none for pods that ask for GPUs.
    None if it is not known."""
    retired: bool = False
    """Whether the cloud launches no more of them."""
    price_per_hour: float | None = None
    """Own price of one instance per hour, by which types are chosen; None if there is none."""
    list_price: ListPrice | None = None
    """Shown where there is no own price; no type is chosen by it."""
    note: str = ""
    announced: str = ""
    """The extended resource of its GPUs, where nodes or NodeProfiles say that these are AMD's or Intel's."""
    source: str = TABLE
    """Source of the GPU figures: the table, the nodes, a NodePool, the EC2 API."""

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidFigureError("an instance type needs a name")
        if self.price_per_hour is not None and not 0 <= self.price_per_hour < math.inf:
            raise InvalidFigureError(
                f"price of {self.name} must be a number of at least 0, not {self.price_per_hour!r}"
            )
        check_count("GPUs of a node", self.gpus)
        if self.gpu_memory_mib is not None:
            check_figure("memory of one GPU (MiB)", self.gpu_memory_mib)

    @property
    def gpu_product(self) -> str | None:
        """The exact label `nvidia.com/gpu.product` of its nodes; None if no source knows it."""
        return self.product if self.product_source.of_labels else None

    @property
    def known_memory_mib(self) -> int | None:
        """Memory of ONE GPU that a plan may rely on, MiB; None if it is a guess or not known."""
        return self.gpu_memory_mib if self.memory_source.known else None

    @property
    def node_gpus(self) -> Device | None:
        """None where the memory of a GPU is a guess or not known."""
        memory = self.known_memory_mib
        return None if memory is None else Device(self.product, memory, self.gpus)

    @property
    def nvidia(self) -> bool:
        """Whether its accelerators are NVIDIA's, which `nvidia.com/gpu` and the presets need."""
        return not self.announced and self.product.casefold().startswith(("nvidia", "tesla", "geforce", "quadro"))

    @property
    def resource(self) -> str:
        """The extended resource of its whole GPUs, where AMD or Intel makes them; empty for all others."""
        return self.announced or (AMD_GPU if self.gpus and self.product.casefold().startswith("amd ") else "")

    @property
    def of_vendor(self) -> Device | None:
        """Its whole GPUs, as pods request them, where AMD or Intel makes them; None for all others. The label of their
        product is in no catalog."""
        resource = self.resource
        if not resource:
            return None
        return Device("", self.known_memory_mib, self.gpus, resource=resource, vendor=VENDOR_RESOURCES[resource])

    @property
    def machine_type(self) -> str:
        """The label `node.kubernetes.io/instance-type` of its nodes."""
        return self.name.partition("+")[0]

    @property
    def attached(self) -> bool:
        """Whether its GPUs are attached to a machine type that has none, so that the machine type tells nothing of
        them (`n1-standard-8+1xnvidia-tesla-t4`)."""
        return self.machine_type != self.name

    @property
    def shown_price(self) -> float | None:
        """The own price of one instance per hour, else the list's; None if neither is known."""
        if self.price_per_hour is not None:
            return self.price_per_hour
        return None if self.list_price is None else self.list_price.amount

    def describe_gpus(self) -> str:
        """Such as `2 x NVIDIA-H100-NVL of 95830 MiB`, with what is a guess and what is not known."""
        product = self.product if self.product_source.known else f"{self.product} ({self.product_source})"
        if self.gpu_memory_mib is None:
            return f"{self.gpus} x {product}, memory not known"
        memory = f"{self.gpu_memory_mib} MiB"
        return (
            f"{self.gpus} x {product} of {memory if self.memory_source.known else f'{memory} ({self.memory_source})'}"
        )
