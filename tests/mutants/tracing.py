"""A plugin of pytest that records which lines of Plimsoll each test runs, and how long the test takes.

Of a property, a few examples are run: nearly all lines that more would run, too. Each process of a test run writes a
file of its own to the folder that MUTANTS_RECORD names.
"""

import gc
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any, Final

import coverage
import pytest
from hypothesis import is_hypothesis_test, settings

from tests.mutants.changes import lines_of

_ROOT: Final = Path(__file__).resolve().parents[2]
_EXAMPLES: Final = 5


class _Recorder:
    def __init__(self) -> None:
        self._coverage = coverage.Coverage(data_file=None, source=[str(_ROOT / "plimsoll")], config_file=False)
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._kept: list[Any] = []
        """Functions that keep their results: these count for each test that asks for them."""
        self._coverage.start()

    @pytest.hookimpl(tryfirst=True)  # before all that there is then is hidden from searches for garbage
    def pytest_collection_finish(self) -> None:
        kept = (each for each in gc.get_objects() if isinstance(each, _lru_cache_wrapper))
        self._kept = [each for each in kept if each.__module__.startswith("plimsoll.")]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for kept in self._kept:
            kept.cache_clear()
        self._coverage.switch_context(item.nodeid)
        result = yield
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)  # before a worker tells that it is done, and is ended
    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        tests = {test: (seconds, test not in self._failed) for test, seconds in self._seconds.items()}
        lines: dict[str, dict[str, list[str]]] = {}
        data = self._coverage.get_data()
        for file in sorted(data.measured_files()):
            texts = lines_of(Path(file).read_text())
            ran = lines.setdefault(str(Path(file).relative_to(_ROOT)), {})
            for line, contexts in data.contexts_by_lineno(file).items():
                if line in texts:
                    ran.setdefault(texts[line], []).extend(test for test in contexts if test in tests)
        folder = Path(os.environ["MUTANTS_RECORD"])
        (folder / f"{os.getpid()}.json").write_text(json.dumps({"tests": tests, "lines": lines}))


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Recorder())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = "_hypothesis_internal_use_settings"
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj) and hasattr(item.obj, name):
            setattr(item.obj, name, settings(getattr(item.obj, name), max_examples=_EXAMPLES))
