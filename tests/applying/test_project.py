"""The variables of Pulumi's CLI for the stacks of a user's project."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.apply import ApplySettings, project_environment


@pytest.mark.parametrize("named", [True, False])
def test_a_named_passphrase_file_counts_beside_the_variable(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CLI would take the variable instead."""
    provider = SimpleNamespace(environment={}, close=lambda: None)
    monkeypatch.setattr("plimsoll.apply.project.find_pulumi", lambda _: (None, None))
    monkeypatch.setattr("plimsoll.apply.project.open_provider", lambda *_: provider)
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
