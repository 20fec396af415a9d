"""The command line: `plimsoll plan | run | status | sandbox ...`.

Commands import what they need when they run, so that the shell's completion and `plan -f` stay quick.
"""

import importlib
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from plimsoll.cli.output import FAILED, print_error
from plimsoll.model.errors import PlimsollError

COMMANDS = {
    "plan": ("plimsoll.cli.plan", "What the next delta would be, from the cluster or from files; nothing is applied."),
    "run": ("plimsoll.cli.run", "Keep the capacity: as a controller, or once for a job."),
    "status": ("plimsoll.cli.status", "Workspaces, their nodes and what the engine made for them."),
    "destroy": ("plimsoll.cli.destroy", "Drain capacity, then environment, then foundation."),
    "sandbox": ("plimsoll.sandbox.cli", "A real control plane on this machine."),
}
"""Each command's module, which has `app`, and its line of help."""


class LazyGroup(TyperGroup):
    """Loads a command's module when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, line = COMMANDS[cmd_name]
        command = typer.main.get_command(importlib.import_module(module).app)
        command.name = cmd_name
        command.help = command.help or line
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def _plimsoll() -> None:
    """GPU capacity on Kubernetes, declared and kept by Pulumi."""


def main() -> Any:
    """Runs the command line; a PlimsollError is printed for people and ends with exit code 1."""
    try:
        return app()
    except PlimsollError as error:
        print_error(error)
        sys.exit(FAILED)
