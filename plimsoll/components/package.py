"""The component package `plimsoll`: its provider, for programs in any language, and its schema."""

import inspect
import json
import os
import re
import sys
import threading
import time
from typing import Any, Final

import pulumi
from pulumi.provider import main
from pulumi.provider.experimental.analyzer import PropertyDefinition
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.provider import ConstructResult
from pulumi.provider.server import ComponentInitError

from plimsoll.components.declaring import is_later
from plimsoll.distribution import version
from plimsoll.errors import PlimsollError

NAME: Final = "plimsoll"
_POLL_SECONDS: Final = 1.0

_SPELLED: Final = {"gpuMemoryGib": "gpuMemoryGiB", "sizeGib": "sizeGiB"}
"""Names of properties that the SDK derives from Python's, with those of the custom resources."""
_ANALYZED: Final = {spelled: analyzed for analyzed, spelled in _SPELLED.items()}

Components = list[type[pulumi.ComponentResource]]


def serve(components: Components) -> None:
    """Serves the components to an engine, which has started this process as a plugin, until the engine ends."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    main(_Provider(components), sys.argv[1:])


def schema(components: Components) -> str:
    """The schema of the package, as Pulumi's code generators read it."""
    return str(_Provider(components).schema)


def _end_with(parent: int) -> None:
    """Ends this process when its parent has ended: a language host that is killed does not end its plugins."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(0)


class _Provider(ComponentProvider):
    def __init__(self, components: Components) -> None:
        super().__init__(components, NAME, version=version())
        self.schema = json.dumps(_canonical(json.loads(_named(str(self.schema)))))

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Reports invalid arguments by their message, without the SDK's traceback."""
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if isinstance(error.inner, PlimsollError):
                raise pulumi.InputPropertyError("args", str(error.inner)) from None
            raise

    def map_input_properties(
        self,
        inputs: Any,
        properties: dict[str, PropertyDefinition],
        mapping: dict[str, str],
        component_name: str,
        property_path: str,
    ) -> Any:
        """As the SDK's method, but keeps Outputs: the SDK reads an Output as a value of the declared type and loses
        it."""
        given: dict[str, Any] = inputs if isinstance(inputs, dict) else {}
        given = {_ANALYZED.get(name, name): value for name, value in given.items()}
        later = {name: value for name, value in given.items() if is_later(value) and name in mapping}
        if is_later(inputs):
            return inputs
        known = {name: value for name, value in given.items() if name not in later}
        declared = {name: each for name, each in properties.items() if name not in later}
        mapped = super().map_input_properties(known, declared, mapping, component_name, property_path)
        return {**mapped, **{mapping[name]: value for name, value in later.items()}}


def _named(schema: str) -> str:
    """The schema without the suffix `Args` in the names of types, because the generators of SDKs add it, and with the
    properties as they are spelled in the custom resources."""
    for analyzed, spelled in _SPELLED.items():
        schema = schema.replace(f'"{analyzed}"', f'"{spelled}"')
    return re.sub(rf"({NAME}:index:\w+)Args\b", r"\1", schema)


def _canonical(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as `pulumi package get-schema` prints it: without empty lists, and without descriptions of the items
    of lists and maps. The same with every Python: before 3.13, docstrings keep the indentation of their code."""
    return {"config": {}, **_shortened(schema)}


def _shortened(value: Any) -> Any:
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _shortened(item) for key, item in value.items() if item != []}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key].pop("description", None)
    if isinstance(kept.get("description"), str):
        kept["description"] = inspect.cleandoc(kept["description"])
    return kept
