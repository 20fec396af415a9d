"""The log is written to what standard error is at that moment."""

from collections.abc import Iterator

import pytest
import structlog
import typer
from typer.testing import CliRunner

from plimsoll.cli.shared import log_to_stderr

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
