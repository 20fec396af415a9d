"""What a sandbox was asked for, and what its supervisor runs: two small files in its folder."""

from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T", bound=BaseModel)

ProviderKind = Literal["attached", "plugin"]


class Settings(BaseModel):
    """What `up` was asked for. `port` is the apiserver's; None takes a free one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    karpenter: bool = True
    trainer: bool = False
    """Kubeflow Trainer and JobSet's controller."""
    lws: bool = True
    """LeaderWorkerSet's controller, for Workspaces whose replicas span nodes."""
    provider: ProviderKind = "attached"
    audit: bool = False
    """Whether the apiserver notes every request, with who made it and what came of it, in `Folder.audit_log`."""
    port: int | None = None


class ProcessState(BaseModel):
    """One process. `created` is its start in seconds since the epoch, so that a reused pid is not taken for it."""

    model_config = ConfigDict(extra="forbid")

    name: str
    pid: int
    created: float
    port: int | None = None
    exit_code: int | None = None
    """None while it runs; negative for the signal that ended it."""


class State(BaseModel):
    """The supervisor and its processes. `ready` once `up` has ended well."""

    model_config = ConfigDict(extra="forbid")

    supervisor: int
    ready: bool = False
    server: str
    startup_seconds: float | None = None
    processes: list[ProcessState] = []

    def port_of(self, name: str) -> int | None:
        return next((p.port for p in self.processes if p.name == name), None)


def write(path: Path, model: BaseModel) -> None:
    """Writes it whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(model.model_dump_json(indent=2))
    new.replace(path)


def read(path: Path, model: type[T]) -> T | None:
    """What the file holds, or None where there is none: no sandbox, or one whose folder was never finished."""
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
