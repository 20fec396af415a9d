"""The framework of a training, its nodes and processes: `mlPolicy` of Kubeflow Trainer's runtimes."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from plimsoll.model.meta import Declared


class TorchPolicy(Declared):
    """PyTorch's `torchrun`."""

    num_proc_per_node: Annotated[int, Field(ge=1)] | Literal["auto", "cpu", "gpu"] | None = None
    """Processes of each node: `auto`, `cpu`, `gpu`, or a number; Trainer's default is `auto`."""
    elastic_policy: dict[str, Any] | None = None


class MpiPolicy(Declared):
    """A training by MPI."""

    num_proc_per_node: Annotated[int, Field(ge=1)] | None = None
    """Slots of each node; Trainer's default is 1."""
    mpi_implementation: str | None = None
    ssh_auth_mount_path: str | None = None
    run_launcher_as_node: bool | None = None


class MLPolicy(Declared):
    """The framework of a training and its nodes."""

    num_nodes: Annotated[int, Field(ge=1)] | None = None
    """Nodes of a training; Trainer's default is 1, and a TrainJob may set another number."""
    torch: TorchPolicy | None = None
    mpi: MpiPolicy | None = None
    flux: dict[str, Any] | None = None
    jax: dict[str, Any] | None = None
    xgboost: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_framework(self) -> "MLPolicy":
        given = [name for name in ("torch", "mpi", "flux", "jax", "xgboost") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other: keep one")
        if self.torch is not None and self.torch.elastic_policy is not None and self.num_nodes is not None:
            raise ValueError("numNodes and torch.elasticPolicy exclude each other: keep one")
        return self
