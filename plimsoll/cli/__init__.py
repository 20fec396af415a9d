"""The command line: `plimsoll plan | run | status | sandbox ...`.

Commands import what they need when they run, so that the shell's completion and `plan -f` stay quick.
"""

import importlib
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from plimsoll.cli.shared import FAILED, INTERRUPTED, print_error
from plimsoll.errors import PlimsollError

COMMANDS = {
    "plan": ("plimsoll.cli.plan", "What the next delta would be, from the cluster or from files; nothing is applied."),
    "run": ("plimsoll.cli.run", "Keep the capacity: as a controller, or once for a job."),
    "estimate": ("plimsoll.cli.estimate", "How many GPUs and nodes a model takes, line by line."),
    "demand": ("plimsoll.cli.demand", "What GPUs unschedulable pods need, and what would be asked for."),
    "status": ("plimsoll.cli.status", "Workspaces, their nodes and what the engine made for them."),
    "explain": ("plimsoll.cli.explain", "The whole story of one decision."),
    "queues": (
        "plimsoll.cli.queues",
        "KAI's Queues: the tree with what is allocated and asked, and checks of manifests.",
    ),
    "import": ("plimsoll.cli.import_", "Manifests of other systems as ours."),
    "policy": ("plimsoll.cli.policy", "The rules on plain manifests, without Pulumi and without a cluster."),
    "destroy": ("plimsoll.cli.destroy", "Drain capacity, then environment, then foundation."),
    "gpus": ("plimsoll.cli.gpus", "What is taken and free of every GPU."),
    "bind": ("plimsoll.cli.bind", "Bind share pods to parts of GPUs, where no KAI does."),
    "probe": ("plimsoll.cli.probe", "What runs in a reservation: find its GPU, and say which one it is."),
    "sandbox": ("plimsoll.cli.sandbox", "A real control plane on this machine."),
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


app = typer.Typer(cls=LazyGroup, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def _plimsoll(ctx: typer.Context) -> None:
    """GPU capacity on Kubernetes, declared and kept by Pulumi."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main() -> None:
    """Runs the command line and exits.

    0: done; 1: an error, printed for people, one in the command's use included; 2: an intent is refused.
    """
    try:
        code = app(standalone_mode=False)
    except PlimsollError as error:
        print_error(error)
        code = FAILED
    except TyperException as error:
        print_error(PlimsollError(error.format_message(), "--help after the command says how it is used"))
        code = FAILED
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except Exception as error:  # a defect of ours: people get a sentence, developers the traceback on request
        if os.environ.get("PLIMSOLL_DEBUG"):
            raise
        print_error(PlimsollError(f"internal error: {type(error).__name__}: {error}", "PLIMSOLL_DEBUG=1 shows where"))
        code = FAILED
    sys.exit(code)
