"""Manifests in the encoding of the engine's interface."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2


def encode(fields: Mapping[str, Any]) -> struct_pb2.Struct:
    """The fields without nulls. Raises TypeError for a value that JSON does not have."""
    struct = struct_pb2.Struct()
    _encode_into(struct, fields)
    return struct


def _encode_into(struct: struct_pb2.Struct, fields: Mapping[str, Any]) -> None:
    for key, value in fields.items():
        if value is not None:
            _encode(struct.fields[key], value)


def _encode(slot: struct_pb2.Value, value: Any) -> None:
    if isinstance(value, str):
        slot.string_value = value
    elif isinstance(value, bool):
        slot.bool_value = value
    elif isinstance(value, int | float):
        slot.number_value = value
    elif isinstance(value, Mapping):
        slot.struct_value.SetInParent()
        _encode_into(slot.struct_value, value)
    elif isinstance(value, list | tuple):
        slot.list_value.SetInParent()
        for item in value:
            _encode(slot.list_value.values.add(), item)
    elif value is None:
        slot.null_value = struct_pb2.NULL_VALUE
    else:
        raise TypeError(f"no property value: {type(value).__name__}")
