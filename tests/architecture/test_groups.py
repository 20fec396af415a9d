"""Tests that share a sandbox run in one process, one after the other, however many processes there are."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

GROUPS = ("one", "two", "three")
TESTS = """
import os
from pathlib import Path

import pytest


@pytest.mark.xdist_group({group!r})
@pytest.mark.parametrize("number", range(6))
def test_of_a_group(number):
    with Path({log!r}).open("a") as log:
        log.write(f"{group} {{os.environ['PYTEST_XDIST_WORKER']}}\\n")
"""


def test_a_group_of_tests_runs_in_one_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for group in GROUPS:
        (tmp_path / f"test_{group}.py").write_text(TESTS.format(group=group, log=str(log)))
    command = (sys.executable, "-m", "pytest", "-p", "xdist", "--numprocesses", "2", "--dist", "loadgroup")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)

    processes = defaultdict(set)
    for line in log.read_text().splitlines():
        group, process = line.split()
        processes[group].add(process)
    assert {group: len(found) for group, found in processes.items()} == dict.fromkeys(GROUPS, 1)
