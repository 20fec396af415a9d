"""How components are declared: arguments that may be Outputs, names of children, aliases, what is recorded."""

from plimsoll.components.declaring.component import (
    ENGINE,
    Component,
    EngineVersionError,
    ObjectType,
    name_of,
    namespace_of,
    uid_of,
)
from plimsoll.components.declaring.declaration import (
    InvalidArgumentError,
    checked,
    fields_of,
    known,
    metadata,
    valid,
)
from plimsoll.components.declaring.inputs import is_later, object_of, with_later

__all__ = [
    "ENGINE",
    "Component",
    "EngineVersionError",
    "InvalidArgumentError",
    "ObjectType",
    "checked",
    "fields_of",
    "is_later",
    "known",
    "metadata",
    "name_of",
    "namespace_of",
    "object_of",
    "uid_of",
    "valid",
    "with_later",
]
