"""The state of a resource in the plugin's shape: the live object, and beside it what was declared."""

from dataclasses import dataclass, field
from typing import Final

from plimsoll.errors import PlimsollError
from plimsoll.provider.values import Properties, mark_secrets

INPUTS: Final = "__inputs"
API_VERSION: Final = "__initialApiVersion"
FIELD_MANAGER: Final = "__fieldManager"


@dataclass(frozen=True)
class State:
    """A resource as the engine keeps it. No id: the object does not exist."""

    id: str
    properties: Properties
    inputs: Properties = field(default_factory=dict)


class InitializationFailedError(PlimsollError):
    """The object exists, but is not ready: its state is kept, and the next update tries again."""

    def __init__(self, reason: str, state: State) -> None:
        super().__init__(reason)
        self.state = state


def state_of(live: Properties, inputs: Properties, manager: str, api_version: str) -> Properties:
    """`manager` is the field manager, `api_version` the one the object was first declared with."""
    return mark_secrets(live, inputs) | {
        INPUTS: mark_secrets(inputs, inputs),
        API_VERSION: api_version,
        FIELD_MANAGER: manager,
    }
