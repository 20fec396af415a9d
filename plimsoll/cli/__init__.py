"""The command line: `plimsoll plan | run | status | sandbox ...`.

Commands import what they need when they run, so that the shell's completion and `plan -f` stay quick.
"""

import contextlib
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from plimsoll.cli.shared import FAILED, INTERRUPTED, print_error, write_types_plainly
from plimsoll.distribution import missing_extra
from plimsoll.errors import PlimsollError

GROUPS: Final = {
    "Start": {
        "init": ("plimsoll.cli.init", "Write a Pulumi project for a cluster."),
        "adopt": (
            "plimsoll.cli.adopt",
            "Write the stack file that imports existing NodePools, Queues and KAITO Workspaces.",
        ),
        "import": ("plimsoll.cli.import_", "Convert manifests of other systems to Plimsoll's."),
        "sandbox": ("plimsoll.cli.sandbox", "Run a real control plane on this machine."),
    },
    "Plan": {
        "plan": ("plimsoll.cli.plan", "Preview the next Plan, from a cluster or from files; nothing is applied."),
        "demand": (
            "plimsoll.cli.demand",
            "Show the GPUs that unschedulable pods need, and the capacity that would be requested.",
        ),
        "diff": ("plimsoll.cli.diff", "Show what new manifests mean for nodes, GPUs, cost and queues."),
        "estimate": ("plimsoll.cli.estimate", "Estimate the GPUs and nodes that a model needs, line by line."),
    },
    "Run": {
        "run": ("plimsoll.cli.run", "Run the controller, or run it once for a job (--once)."),
        "bind": ("plimsoll.cli.bind", "Bind pods with GPU shares, in a cluster without KAI."),
        "probe": ("plimsoll.cli.probe", "Find the GPU of a reservation pod and write its UUID to the pod."),
        "destroy": ("plimsoll.cli.destroy", "Delete the capacity, then the environment, then the foundation."),
    },
    "Look": {
        "status": ("plimsoll.cli.status", "Show Workspaces, their nodes, NodeClaims and workloads."),
        "top": ("plimsoll.cli.top", "Show nodes, queues, demand and the last deltas live in the terminal."),
        "ui": ("plimsoll.cli.ui", "Show the cluster in the browser, live and read-only."),
        "why": (
            "plimsoll.cli.why",
            "Say why a pod, node, Workspace, demand, queue or namespace has GPUs or none, and what would help.",
        ),
        "audit": (
            "plimsoll.cli.audit",
            "Audit a cluster: idle GPUs, blocked pods, contradictions, and what Plimsoll would do.",
        ),
        "savings": ("plimsoll.cli.savings", "Show which nodes could be removed if pods moved; nothing is changed."),
        "gpus": ("plimsoll.cli.gpus", "Show what is allocated and free on each GPU."),
        "queues": ("plimsoll.cli.queues", "Show KAI's Queues with allocated and requested resources, or check them."),
    },
    "Check": {
        "policy": (
            "plimsoll.cli.policy",
            "Check manifests against the policy rules, without Pulumi and without a cluster.",
        ),
        "drift": ("plimsoll.cli.drift", "Compare the declarations, the states and the cluster; nothing is written."),
    },
    "Build": {
        "presets": ("plimsoll.cli.presets", "List the presets, or generate the catalog from KAITO's file."),
        "catalog": ("plimsoll.cli.catalog", "List the known instance types, or compare them with a cloud's API."),
        "prices": ("plimsoll.cli.prices", "Print AWS's price list, or a table, as the prices of an Environment."),
    },
}
"""The groups of commands in the help; of each command the module, which has `app`, and its one-line help."""
COMMANDS: Final = {name: command for commands in GROUPS.values() for name, command in commands.items()}


class LazyGroup(TyperGroup):
    """Loads a command's module when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            from plimsoll.text import did_you_mean, nearest

            near = did_you_mean(nearest(cmd_name, COMMANDS))
            raise PlimsollError(f"no such command {cmd_name!r}", near or "plimsoll --help lists the commands")
        module, line = COMMANDS[cmd_name]
        of_module = importlib.import_module(module).app
        of_module.rich_markup_mode = None  # as of `app`: help is plain text
        command = typer.main.get_command(of_module)
        command.name = cmd_name
        command.help = command.help or line
        write_types_plainly(command)
        return command

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Names of commands with their one-line help, without loading them, and options."""
        commands = [TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()]
        names = TyperGroup(name=self.name, commands=commands, params=self.params)
        return names.shell_complete(typer.Context(names), incomplete)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()])


app = typer.Typer(cls=LazyGroup, pretty_exceptions_enable=False, rich_markup_mode=None)


def _print_version(asked: bool) -> None:
    if asked:
        from plimsoll.distribution import version

        typer.echo(f"plimsoll {version()}")
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


def _keep_output_to_commands() -> None:
    """What compiled libraries write to standard output, such as the banner of a solver, goes to standard error: it
    would be in front of the document that a command prints."""
    output = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding)
    os.dup2(os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else 2, 1)
    sys.stdout = output


def main() -> NoReturn:
    """Runs the command line and exits.

    0: done; 1: an error, including a usage error; 2: something is refused.
    """
    _prepare_streams()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:  # whoever reads the output has enough of it
        code = FAILED
    except Exception as error:
        print_error(_for_people(error))
        code = FAILED
    try:
        sys.stdout.flush()
    except OSError:  # Python itself would try again, and exit with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _prepare_streams() -> None:
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    elif sys.stdout is sys.__stdout__:
        _keep_output_to_commands()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a locale other than UTF-8 lacks the characters of tables


def _for_people(error: Exception) -> PlimsollError:
    """What users read of an error. Of a bug they get one sentence, and developers the traceback on request, which is
    raised here."""
    if isinstance(error, PlimsollError):
        return error
    if isinstance(error, TyperException):
        said = error.format_message().replace("Value error, ", "")
        return PlimsollError(said, "run the command with --help for its usage")
    if isinstance(error, ImportError) and (lacking := missing_extra(error)) is not None:
        return lacking
    if os.environ.get("PLIMSOLL_DEBUG"):
        raise error
    what = f"internal error: {type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.strerror:
        what = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    return PlimsollError(what, "set PLIMSOLL_DEBUG=1 for the traceback")
