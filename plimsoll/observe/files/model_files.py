"""Reads a model's files on this machine: Hugging Face's `config.json` and the files beside it. Nothing is
downloaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from plimsoll.errors import PlimsollError
from plimsoll.estimating import BYTES_PER_GIB
from plimsoll.presets import (
    InvalidModelConfigError,
    InvalidPresetsError,
    ModelPreset,
    ModelShape,
    read_model_config,
    read_presets,
)

CONFIG: Final = "config.json"
LARGEST_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of a file that is read; the index of a model is much smaller."""


class ModelFilesError(PlimsollError):
    """The files of a model cannot be read; the message names the file."""


class ModelFiles(NamedTuple):
    name: str
    """Name of the folder."""
    shape: ModelShape
    size_gib: float | None
    """Size of the weights in GiB; None if no file contains it."""
    size_source: str


def read_model_files(path: Path) -> ModelFiles:
    """Reads a `config.json`, or the one in a folder, and the size of the weights beside it.

    The size is `metadata.total_size` of the safetensors index, else that of the safetensors files themselves.
    Raises ModelFilesError and InvalidModelConfigError, both naming the file.
    """
    file = path / CONFIG if path.is_dir() else path
    content = _read(file)
    try:
        shape = read_model_config(content)
    except InvalidModelConfigError as error:
        raise InvalidModelConfigError(f"{file}: {error.message}", error.hint) from None
    folder = file.resolve().parent
    size, source = _size(folder)
    return ModelFiles(folder.name, shape, size, source)


def read_preset_file(file: Path) -> tuple[ModelPreset, ...]:
    """The presets of a YAML file. Raises ModelFilesError, InvalidPresetsError and InvalidModelConfigError, which name
    the file."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelFilesError(f"{file}: {error}", "use a YAML file with the list `presets`") from None
    try:
        return read_presets(text)
    except (InvalidPresetsError, InvalidModelConfigError) as error:
        raise type(error)(f"{file}: {error.message}", error.hint) from None


def _size(folder: Path) -> tuple[float | None, str]:
    for index in sorted(folder.glob("*.safetensors.index.json")):
        metadata = _read(index).get("metadata")
        total = metadata.get("total_size") if isinstance(metadata, Mapping) else None
        if isinstance(total, bool) or not isinstance(total, int | float) or not total > 0:
            raise ModelFilesError(
                f"{index}: metadata.total_size must be the bytes of all weights, not {total!r:.60}",
                "download the index again, or set --size-gib",
            )
        return total / BYTES_PER_GIB, f"metadata.total_size of {index.name}"
    weights = sorted(folder.glob("*.safetensors"))
    if weights:
        return sum(file.stat().st_size for file in weights) / BYTES_PER_GIB, f"size of {len(weights)} safetensors files"
    return None, ""


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > LARGEST_BYTES:
            raise ModelFilesError(f"{file}: larger than {LARGEST_BYTES} bytes, so it is not a model description")
        content = orjson.loads(file.read_bytes())
    except OSError as error:
        raise ModelFilesError(
            f"{file}: {error.strerror or error}", f"use a {CONFIG}, or a folder that contains one"
        ) from None
    except orjson.JSONDecodeError as error:
        raise ModelFilesError(f"{file}: not JSON: {error}", f"use a model's {CONFIG}") from None
    if not isinstance(content, dict):
        raise ModelFilesError(f"{file}: must contain one JSON object", f"use a model's {CONFIG}")
    return content
