"""The log: written to what standard error is at that moment, with tracebacks that show no values."""

from collections.abc import Iterator

import pytest
import structlog
import typer
from typer.testing import CliRunner

from plimsoll.logs import log_to_stderr

log = structlog.get_logger("test")
app = typer.Typer()


@app.command()
def run() -> None:
    log_to_stderr()
    log.info("within")


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_a_replaced_standard_error_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    assert '"event": "within"' in CliRunner().invoke(app, []).stderr
    log.info("after")
    assert '"event": "after"' in capsys.readouterr().err


@pytest.mark.parametrize("terminal", [True, False])
def test_a_traceback_is_logged_without_values_of_variables(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    log_to_stderr()
    password = "-".join(["open", "sesame"])
    try:
        raise ValueError(len(password))
    except ValueError:
        log.exception("failed")
    logged = capsys.readouterr().err
    assert "Traceback" in logged and "raise ValueError(len(password))" in logged
    assert password not in logged
