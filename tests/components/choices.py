"""The words that arguments of components may be, from the models: the text of `plimsoll/components/choices.py`."""

import types
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.alias_generators import to_pascal

HEAD = '''"""Arguments that are one word of several: the words of the models, for type checkers and editors.

Generated: `PLIMSOLL_UPDATE_GOLDEN=1 pytest tests/components/test_choices.py` writes it anew. An Output may be any text,
which is validated when it is known. The schema of the package has strings, which other languages know.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Literal

import pulumi

if TYPE_CHECKING:
    Later = Awaitable[str] | pulumi.Output[str]
'''


def choices(*models: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """The words of each field that has a choice, of the models and those in them, by `ModelField`."""
    found: dict[str, tuple[str, ...]] = {}
    waiting, seen = list(models), set[type[BaseModel]]()
    while waiting:
        model = waiting.pop(0)
        if model in seen:
            continue
        seen.add(model)
        for name, field in model.model_fields.items():
            for leaf in _leaves(field.annotation):
                if get_origin(leaf) is Literal:
                    found[model.__name__ + to_pascal(name)] = get_args(leaf)
                elif isinstance(leaf, type) and issubclass(leaf, StrEnum):
                    found[model.__name__ + to_pascal(name)] = tuple(each.value for each in leaf)
                elif isinstance(leaf, type) and issubclass(leaf, BaseModel):
                    waiting.append(leaf)
    return dict(sorted(found.items()))


def text(found: dict[str, tuple[str, ...]]) -> str:
    words = {name: ", ".join(f'"{each}"' for each in several) for name, several in found.items()}
    typed = [f"    {name} = Literal[{several}] | Later\n" for name, several in words.items()]
    return "".join([HEAD, *typed, "else:\n", *(f"    {name} = pulumi.Input[str]\n" for name in found)])


def _leaves(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Literal or origin is None:
        yield annotation
    elif origin is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif origin in (Union, types.UnionType) or get_args(annotation):
        for each in get_args(annotation):
            yield from _leaves(each)
