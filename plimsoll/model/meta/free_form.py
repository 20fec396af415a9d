"""FreeForm: an object whose fields the schema of a CustomResourceDefinition does not describe."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator

_DEEPEST: Final = 64
"""No field of a PodSpec or of a model's configuration is nested half as deeply. An apiserver takes 10,000 levels, but
what copies and writes the value has limits of some hundreds."""


def _shallow(value: dict[str, Any]) -> dict[str, Any]:
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inner = (item for each in level for item in (each.values() if isinstance(each, Mapping) else each))
        level = [item for item in inner if isinstance(item, Mapping | list)]
        if not level:
            return value
    raise ValueError(f"is nested deeper than {_DEEPEST} levels: remove the field that is")


FreeForm = Annotated[dict[str, Any], AfterValidator(_shallow)]
