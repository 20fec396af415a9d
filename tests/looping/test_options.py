"""Invalid combinations of options of `plimsoll run` are refused by name before it connects to anything."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError

CASES = {
    "--timeout": ["--once", "--timeout", "-1"],
    "lease": ["--lease-duration", "1"],
    "lease.duration": ["--lease-duration", "inf"],
    "shards": ["--shards", "0"],
    "pre_started": ["--pre-started", "-1"],
    "environment": ["--environment", "A_B"],
    "secrets_provider": ["--secrets-provider", "aws"],
    "backend": ["--backend", "s3://"],
    "policy pack": ["--policy-pack", "/nowhere"],
    "work folder": ["--work-folder", "/proc/nowhere"],
    "metrics": ["--metrics-port", "-1"],
}


@pytest.mark.parametrize("message", CASES)
def test_an_invalid_combination_of_options_is_refused(
    message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("secret")
    with pytest.raises((PlimsollError, typer.BadParameter)) as refused:
        CliRunner().invoke(
            app,
            ["run", "--passphrase-file", str(passphrase), *CASES[message]],
            catch_exceptions=False,
            standalone_mode=False,
        )
    error = refused.value
    assert message in (error.format_message() if isinstance(error, typer.BadParameter) else str(error))


def test_a_missing_passphrase_is_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)
    with pytest.raises(PlimsollError, match="passphrase") as refused:
        CliRunner().invoke(app, ["run"], catch_exceptions=False, standalone_mode=False)
    assert "--passphrase-file" in str(refused.value.hint)
