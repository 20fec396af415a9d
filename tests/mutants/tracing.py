"""A plugin of pytest that records which functions of Plimsoll each test runs, and how long the test takes.

Each process of a test run writes a file of its own to the folder that MUTANTS_RECORD names.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import coverage
import pytest

from tests.mutants.changes import functions_at_lines

_ROOT: Final = Path(__file__).resolve().parents[2]


class _Recorder:
    def __init__(self) -> None:
        self._coverage = coverage.Coverage(data_file=None, source=[str(_ROOT / "plimsoll")], config_file=False)
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
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
        tests = {
            test: {"seconds": seconds, "passed": test not in self._failed, "functions": []}
            for test, seconds in self._seconds.items()
        }
        data = self._coverage.get_data()
        for file in sorted(data.measured_files()):
            functions = functions_at_lines(Path(file).read_text())
            ran = {
                (functions[line], test)
                for line, contexts in data.contexts_by_lineno(file).items()
                if line in functions
                for test in contexts
                if test in tests
            }
            for function, test in sorted(ran):
                tests[test]["functions"].append(f"{Path(file).relative_to(_ROOT)}:{function}")  # type: ignore[attr-defined]
        folder = Path(os.environ["MUTANTS_RECORD"])
        (folder / f"{os.getpid()}.json").write_text(json.dumps(tests))


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Recorder())
