"""The capacity stacks of one environment: those that its settings name, and those that are there."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final

from semver import VersionInfo

from plimsoll.apply.engine.environment import engine_environment
from plimsoll.apply.engine.process import Engine, find_pulumi
from plimsoll.apply.engine.stack import CapacityStack
from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.state.backend import Backend, open_backend
from plimsoll.apply.state.state import State

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class CapacityStacks:
    """Of one writer, `holder` in the Lease. The CLI is looked for when it is first needed, and is not where the
    backend is a folder or S3 and nothing is run."""

    def __init__(self, settings: ApplySettings, holder: str) -> None:
        self._settings = settings
        self._holder = holder

    @cached_property
    def pulumi(self) -> tuple[Path, VersionInfo]:
        """The CLI and its version. Raises EngineMissingError."""
        return find_pulumi(self._settings.pulumi)

    @cached_property
    def backend(self) -> Backend:
        return open_backend(
            self._settings.backend_url,
            export=lambda name: self.stack(name).export(),
            names=lambda: self.stack(self._settings.stack_name(0)).list_names(),
        )

    def stack(self, name: str, variables: Mapping[str, str] = _NONE) -> CapacityStack:
        """`variables` are further ones of its engine's environment."""
        settings = self._settings
        environment = self._environment | dict(variables)
        work_dir = settings.work_folder / name
        return CapacityStack(name, work_dir, Engine(*self.pulumi), environment, settings.secrets_provider)

    @cached_property
    def _environment(self) -> dict[str, str]:
        return engine_environment(self._settings, self._holder)

    def names(self) -> list[str]:
        """Those that take new objects, by number, then further ones that are there."""
        taking = map(self._settings.stack_name, range(self._settings.shards))
        return list(dict.fromkeys([*taking, *self._there()]))

    def states(self) -> list[State]:
        """As the backend has them."""
        return [state for name in self._there() if (state := self.backend.read(name)) is not None]

    def _there(self) -> list[str]:
        return [name for name in self.backend.stacks() if self._settings.shard_number(name) is not None]
