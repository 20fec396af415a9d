"""The variables of Pulumi's CLI for the stacks of a user's project."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.apply import ApplySettings, ProjectStack, project_environment


@pytest.mark.parametrize("named", [True, False])
def test_a_named_passphrase_file_counts_beside_the_variable(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CLI would take the variable instead."""
    provider = SimpleNamespace(environment={})
    monkeypatch.setattr("plimsoll.apply.project.find_pulumi", lambda _: (None, None))
    monkeypatch.setattr("plimsoll.apply.project.find_provider", lambda *_: provider)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of the variable")
    file = tmp_path / "passphrase"
    file.write_text("of the file")
    key = {"passphrase_file": file} if named else {"secrets_provider": "awskms://alias/plimsoll"}
    settings = ApplySettings(environment="prod", work_folder=tmp_path, **key)
    connection: Any = None

    with project_environment(settings, connection) as variables:
        assert variables == ({"PULUMI_CONFIG_PASSPHRASE_FILE": str(file)} if named else {})
        assert ("PULUMI_CONFIG_PASSPHRASE" in os.environ) is not named

    assert os.environ["PULUMI_CONFIG_PASSPHRASE"] == "of the variable"


CLI = """#!/bin/sh
echo "$*, $PULUMI_CONFIG_PASSPHRASE" >> {told}
case "$*" in
version) echo v3.300.0 ;;
*export*) echo '{{"version": 3, "deployment": {{}}}}' ;;
*history*)
    echo '[{{"kind": "destroy", "startTime": "2026-01-01T00:00:00.0Z", "message": "",
        "environment": {{}}, "config": {{}}, "result": "succeeded", "endTime": "2026-01-01T00:00:00.0Z",
        "version": 1}}]' ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A CLI whose stacks all exist, as the only one; and the arguments of each call, with the passphrase."""
    told, pulumi = tmp_path / "told", tmp_path / "pulumi"
    pulumi.write_text(CLI.format(told=told))
    pulumi.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of the variable")
    return lambda: told.read_text().splitlines()


def test_the_passphrase_of_the_variable_is_for_the_stacks_of_a_project(
    tmp_path: Path, calls: Callable[[], list[str]]
) -> None:
    """Engines of capacity stacks do not get it."""
    assert ProjectStack(tmp_path, "prod", {}).exists
    assert [each.rpartition(", ")[2] for each in calls() if "export" in each] == ["of the variable"]


def test_a_destroyed_stack_keeps_its_file(tmp_path: Path, calls: Callable[[], list[str]]) -> None:
    ProjectStack(tmp_path, "prod", {}).destroy()
    assert [each for each in calls() if " destroy " in each]
    (removed,) = [each for each in calls() if "stack rm" in each]
    assert "--preserve-config" in removed
