"""RequestPolicy: how much of a capacity a claim takes of a device that several claims share."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from plimsoll.model.dra.attribute import qualified
from plimsoll.model.meta import Described
from plimsoll.quantity import parse_quantity


def _quantity(text: str) -> str:
    parse_quantity(text)
    return text


Quantity = Annotated[str, Field(max_length=64), AfterValidator(_quantity)]


class ValidRange(Described):
    """Amounts between two; others are rounded up to the next."""

    min: Quantity
    max: Quantity | None = None
    step: Quantity | None = None
    """Between two amounts, from `min` on."""


class RequestPolicy(Described):
    """As `requestPolicy` of Kubernetes."""

    default: Quantity | None = None
    """What a claim takes that does not ask for an amount. Absent: all."""
    valid_values: tuple[Quantity, ...] = Field(default=(), max_length=10)
    """The amounts that a claim may take, ascending. Others are rounded up to the next."""
    valid_range: ValidRange | None = None


def read_policies(given: Any, driver: str) -> tuple[tuple[str, RequestPolicy], ...]:
    """(name of the capacity with its domain, policy) of those that have one, sorted. Raises ValueError."""
    policies = ((name, each.get("requestPolicy")) for name, each in given.items() if isinstance(each, Mapping))
    found = (
        (qualified(name, driver), RequestPolicy.model_validate(_texts(policy))) for name, policy in policies if policy
    )
    return tuple(sorted(found, key=lambda each: each[0]))


def _texts(given: Any) -> Any:
    """Amounts are texts, and in files also numbers."""
    if isinstance(given, Mapping):
        return {key: _texts(value) for key, value in given.items()}
    return [_texts(each) for each in given] if isinstance(given, list) else str(given)
