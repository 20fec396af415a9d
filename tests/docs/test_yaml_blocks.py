"""YAML in the documentation is accepted: objects as from files, and settings of the Environment."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.model.api import EnvironmentSpec
from plimsoll.observe.files import snapshot_from_files
from tests.pages import CHECKOUT

_BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_FIELDS = {field.alias or name for name, field in EnvironmentSpec.model_fields.items()}


def blocks() -> Iterator[tuple[str, str, list[Any]]]:
    """Page and line, text, documents."""
    for page in sorted((CHECKOUT / "docs").rglob("*.md")):
        text = page.read_text()
        for block in _BLOCK.finditer(text):
            body = re.sub(f"^{block[1]}", "", block[2], flags=re.MULTILINE)
            line = text[: block.start()].count("\n") + 1
            yield f"{page.relative_to(CHECKOUT)}:{line}", body, list(yaml.safe_load_all(body))


BLOCKS = list(blocks())
OBJECTS = {at: text for at, text, docs in BLOCKS if all(isinstance(doc, dict) and "apiVersion" in doc for doc in docs)}
SETTINGS = {
    at: spec
    for at, _, docs in BLOCKS
    for doc in docs
    if isinstance(doc, dict) and (spec := doc["spec"] if doc.keys() == {"spec"} else doc) and spec.keys() <= _FIELDS
}


@pytest.mark.parametrize("at", OBJECTS)
def test_objects_are_read(at: str, tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(OBJECTS[at])
    snapshot_from_files([str(file)])


@pytest.mark.parametrize("at", SETTINGS)
def test_settings_are_those_of_an_environment(at: str) -> None:
    EnvironmentSpec.model_validate(SETTINGS[at])


def test_the_guides_have_both() -> None:
    assert any(at.startswith("docs/guides/dra.md") for at in OBJECTS)
    assert any(at.startswith("docs/guides/demand.md") for at in SETTINGS)
