"""A plugin of pytest that runs the tests alone whose ids are in the file that MUTANTS_SELECTION names, in its order.
Whether one fails is all that is asked: a property looks for no smaller example."""

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings


def pytest_configure() -> None:
    name = settings.get_current_profile_name()
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile(name, settings.get_profile(name), phases=phases, report_multiple_bugs=False)
    settings.load_profile(name)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = Path(os.environ["MUTANTS_SELECTION"]).read_text().splitlines()
    rank = {name: position for position, name in enumerate(wanted)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in rank])
    items[:] = sorted((item for item in items if item.nodeid in rank), key=lambda item: rank[item.nodeid])
