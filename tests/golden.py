"""Golden files: expected values in files of the repository, which one setting rewrites."""

import os
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
UPDATE = "PLIMSOLL_UPDATE_GOLDEN"
"""Environment variable: `PLIMSOLL_UPDATE_GOLDEN=1 pytest tests/messages` writes the golden files of these tests."""


def assert_golden(path: Path, documents: list[Any]) -> None:
    """Compares with the YAML documents of the file, or writes them. Reviewers read the diff of the file."""
    if os.environ.get(UPDATE):
        path.write_text(yaml.safe_dump_all(documents, width=120, allow_unicode=True, sort_keys=True))
    tests = "/".join(path.relative_to(ROOT).parts[:2])
    update = f"{UPDATE}=1 pytest {tests} writes it anew"
    assert path.exists(), f"{path.name} is missing: {update}"
    assert documents == list(yaml.load_all(path.read_text(), yaml.CSafeLoader)), (
        f"{path.name} differs: {update}; review its diff"
    )
