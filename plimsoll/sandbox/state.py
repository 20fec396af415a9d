"""Settings and State of a sandbox, in two small files in its folder.

A field that another release has written is ignored.
"""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from plimsoll.errors import PlimsollError

T = TypeVar("T", bound=BaseModel)


class Settings(BaseModel):
    """The arguments of `up`. `port` is that of the apiserver; None selects a free one."""

    model_config = ConfigDict(frozen=True)

    karpenter: bool = True
    trainer: bool = False
    """Kubeflow Trainer and JobSet's controller."""
    kai: bool = False
    """The KAI Scheduler, which places pods that name it."""
    lws: bool = True
    """LeaderWorkerSet's controller, for Workspaces whose replicas span nodes."""
    audit: bool = False
    """Whether the apiserver writes every request with its user and result to `Folder.audit_log`."""
    port: int | None = None


class ProcessState(BaseModel):
    """A process. `created` is its start in seconds since the epoch, to recognize a reused pid."""

    name: str
    pid: int
    created: float
    port: int | None = None
    exit_code: int | None = None
    """None while it runs; negative for the signal that ended it."""


class State(BaseModel):
    """The supervisor and its processes. `ready` is True when `up` has succeeded."""

    supervisor: int
    ready: bool = False
    server: str
    startup_seconds: float | None = None
    processes: list[ProcessState] = []

    def port_of(self, name: str) -> int | None:
        return next((p.port for p in self.processes if p.name == name), None)


def write(path: Path, model: BaseModel) -> None:
    """Writes a file atomically."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(model.model_dump_json(indent=2))
    new.replace(path)


def read(path: Path, model: type[T]) -> T | None:
    """Reads a file. None if it does not exist: there is no sandbox, or its folder was never finished.

    Raises PlimsollError for a damaged file, such as an empty one after a power failure.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise PlimsollError(
            f"{path} is damaged: {error.errors()[0]['msg']}.",
            f"Remove the sandbox with `plimsoll sandbox down --name {path.parent.name}`, and start it again.",
        ) from None
