"""The help: commands in groups, and the types of options in plain words."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from plimsoll.cli import COMMANDS, app

WIDE = 400
"""Columns, so that a left column is never cut."""
NAMES = {
    "Start": ["init", "adopt", "import", "sandbox"],
    "Plan": ["plan", "demand", "diff", "estimate"],
    "Run": ["run", "bind", "probe", "destroy"],
    "Look": ["status", "top", "ui", "why", "audit", "savings", "gpus", "queues"],
    "Check": ["policy", "drift"],
    "Build": ["presets", "catalog", "prices"],
}


def with_below(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    yield command, context
    for name, below in getattr(command, "commands", {}).items():
        yield from with_below(below, typer.Context(below, info_name=name, parent=context))


def help_of(name: str) -> list[str]:
    """The text of the help of the command and of those below it, as lines."""
    root: Any = typer.main.get_command(app)
    above = typer.Context(root, info_name="plimsoll", terminal_width=WIDE, max_content_width=WIDE)
    command = root.get_command(above, name)
    of_command = typer.Context(command, info_name=name, parent=above)
    return [line for each, context in with_below(command, of_command) for line in each.get_help(context).splitlines()]


def test_commands_are_in_their_groups() -> None:
    text = CliRunner().invoke(app, ["--help"], catch_exceptions=False).stdout
    found: dict[str, list[str]] = {}
    group = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            group = line.rstrip(":")
        elif re.match(r"  \w", line):
            found.setdefault(group, []).append(line.split()[0])
    assert {name: found[name] for name in NAMES} == NAMES


@pytest.mark.parametrize("name", COMMANDS)
def test_types_are_plain_words(name: str) -> None:
    for line in help_of(name):
        left = re.split(r" {2,}", line.strip())[0]
        assert not re.search(r"<\w", left), line
        if left.startswith("-"):
            assert "[" not in left, line


def test_an_option_has_its_type_and_an_argument_its_name() -> None:
    lefts = {re.split(r" {2,}", line.strip())[0] for line in help_of("demand")}
    assert {"--kubeconfig PATH", "--context TEXT", "-o, --output text|wide|json|yaml", "FILE_OR_DIR"} <= lefts
