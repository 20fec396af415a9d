"""A plugin of pytest that runs the tests alone whose ids are in the file that MUTANTS_SELECTION names."""

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = set(Path(os.environ["MUTANTS_SELECTION"]).read_text().splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
    items[:] = [item for item in items if item.nodeid in wanted]
