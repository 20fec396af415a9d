"""The command line: `plimsoll plan | run | status | sandbox ...`.

Commands import what they need when they run, so that the shell's completion and `plan -f` stay quick.
"""

import contextlib
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from plimsoll.cli.shared import FAILED, INTERRUPTED, print_error
from plimsoll.errors import PlimsollError

COMMANDS = {
    "init": ("plimsoll.cli.init", "Write a Pulumi project for a cluster."),
    "adopt": (
        "plimsoll.cli.adopt",
        "Write the stack file that imports existing NodePools, Queues and KAITO Workspaces.",
    ),
    "plan": ("plimsoll.cli.plan", "Preview the next Plan, from a cluster or from files; nothing is applied."),
    "run": ("plimsoll.cli.run", "Run the controller, or run it once for a job (--once)."),
    "estimate": ("plimsoll.cli.estimate", "Estimate the GPUs and nodes that a model needs, line by line."),
    "presets": ("plimsoll.cli.presets", "List the presets, or generate the catalog from KAITO's file."),
    "prices": ("plimsoll.cli.prices", "Print AWS's price list, or a table, as the prices of an Environment."),
    "demand": (
        "plimsoll.cli.demand",
        "Show the GPUs that unschedulable pods need, and the capacity that would be requested.",
    ),
    "status": ("plimsoll.cli.status", "Show Workspaces, their nodes, NodeClaims and workloads."),
    "top": ("plimsoll.cli.top", "Show nodes, queues, demand and the last deltas live in the terminal."),
    "savings": ("plimsoll.cli.savings", "Show which nodes could be removed if pods moved; nothing is changed."),
    "ui": ("plimsoll.cli.ui", "Show the cluster in the browser, live and read-only."),
    "drift": ("plimsoll.cli.drift", "Compare the declarations, the states and the cluster; nothing is written."),
    "explain": ("plimsoll.cli.explain", "Explain each step of a decision."),
    "queues": (
        "plimsoll.cli.queues",
        "Show KAI's Queues with allocated and requested resources, or check them.",
    ),
    "import": ("plimsoll.cli.import_", "Convert manifests of other systems to Plimsoll's."),
    "policy": (
        "plimsoll.cli.policy",
        "Check manifests against the policy rules, without Pulumi and without a cluster.",
    ),
    "destroy": ("plimsoll.cli.destroy", "Delete the capacity, then the environment, then the foundation."),
    "gpus": ("plimsoll.cli.gpus", "Show what is allocated and free on each GPU."),
    "bind": ("plimsoll.cli.bind", "Bind pods with GPU shares, in a cluster without KAI."),
    "probe": ("plimsoll.cli.probe", "Find the GPU of a reservation pod and write its UUID to the pod."),
    "sandbox": ("plimsoll.cli.sandbox", "Run a real control plane on this machine."),
}
"""The module of each command, which has `app`, and its one-line help."""


class LazyGroup(TyperGroup):
    """Loads a command's module when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, line = COMMANDS[cmd_name]
        of_module = importlib.import_module(module).app
        of_module.rich_markup_mode = None  # as of `app`: help is plain text
        command = typer.main.get_command(of_module)
        command.name = cmd_name
        command.help = command.help or line
        return command

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Names of commands with their one-line help, without loading them, and options."""
        commands = [TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()]
        names = TyperGroup(name=self.name, commands=commands, params=self.params)
        return names.shell_complete(typer.Context(names), incomplete)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(cls=LazyGroup, pretty_exceptions_enable=False, rich_markup_mode=None)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"plimsoll {version('plimsoll')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _plimsoll(
    ctx: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """GPU capacity on Kubernetes, declared and maintained with Pulumi."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def complete() -> None:
    """Completes `kubectl plimsoll`, by kubectl's protocol for plugins: the words, then a directive.

    https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/#shell-completion
    """
    words = ["plimsoll", *sys.argv[1:]]
    os.environ |= {
        "_PLIMSOLL_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    with contextlib.suppress(SystemExit, typer.Exit):
        app(prog_name="plimsoll", standalone_mode=False)
    typer.echo("\n:4")  # no names of files


def main() -> NoReturn:
    """Runs the command line and exits.

    0: done; 1: an error, including a usage error; 2: something is refused.
    """
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a locale other than UTF-8 lacks the characters of tables
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except PlimsollError as error:
        print_error(error)
        code = FAILED
    except TyperException as error:
        said = error.format_message().replace("Value error, ", "")
        print_error(PlimsollError(said, "run the command with --help for its usage"))
        code = FAILED
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:  # whoever reads the output has enough of it
        code = FAILED
    except Exception as error:  # a bug: users get one sentence, developers the traceback on request
        if os.environ.get("PLIMSOLL_DEBUG"):
            raise
        what = f"internal error: {type(error).__name__}: {error}"
        if isinstance(error, OSError) and error.strerror:
            what = ": ".join(str(each) for each in (error.filename, error.strerror) if each)
        print_error(PlimsollError(what, "set PLIMSOLL_DEBUG=1 for the traceback"))
        code = FAILED
    try:
        sys.stdout.flush()
    except OSError:  # Python itself would try again, and exit with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
