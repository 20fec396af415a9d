"""The state of a resource in the plugin's format: the live object and the declared inputs."""

from dataclasses import dataclass, field
from typing import Final

from plimsoll.errors import PlimsollError
from plimsoll.provider.values import Properties, mark_secrets

INPUTS: Final = "__inputs"
API_VERSION: Final = "__initialApiVersion"
FIELD_MANAGER: Final = "__fieldManager"


@dataclass(frozen=True)
class State:
    """A resource in the engine's state. An empty id means that the object does not exist."""

    id: str
    properties: Properties
    inputs: Properties = field(default_factory=dict)


class InitializationFailedError(PlimsollError):
    """The object exists, but is not ready. Its state is stored, and the next update tries again."""

    def __init__(self, reason: str, state: State) -> None:
        super().__init__(reason)
        self.state = state


def state_of(live: Properties, inputs: Properties, manager: str, api_version: str) -> Properties:
    """The state of a live object. `manager` is the field manager, `api_version` the one with which the object was
    declared first."""
    return mark_secrets(live, inputs) | {
        INPUTS: mark_secrets(inputs, inputs),
        API_VERSION: api_version,
        FIELD_MANAGER: manager,
    }
