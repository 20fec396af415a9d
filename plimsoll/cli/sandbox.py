"""`plimsoll sandbox`: a real control plane on this machine."""

import enum
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.table import Table

from plimsoll.cli.shared import ERR, OUT, Format, Output, only_with, only_without, print_document, print_table
from plimsoll.errors import PlimsollError
from plimsoll.sandbox import DEFAULT_NAME, ProcessState, Sandbox, making_nodes, show_build, showing_startup, try_start
from plimsoll.sandbox.nodes import make_nodes, read_node_list
from plimsoll.sandbox.parts import Found, Installation, find_programs, missing_programs, part_names

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class User(enum.StrEnum):
    ADMIN = "admin"
    CONTROLLER = "controller"
    BINDER = "binder"
    VIEWER = "viewer"


def _names(incomplete: str) -> list[str]:
    return [each.name for each in Sandbox.all() if each.name.startswith(incomplete)]


Name = Annotated[
    str, typer.Option("--name", envvar="PLIMSOLL_SANDBOX", help="Name of the sandbox.", autocompletion=_names)
]


@app.callback()
def _sandbox() -> None:
    """Run a real control plane on this machine: etcd, kube-apiserver, Karpenter and KWOK nodes, all on loopback."""
    # As Ctrl-C: builds and half-started sandboxes are ended before the command is, also if its terminal is closed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # of nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)


@app.command(short_help="Install the parts: from PATH, the cache, or built.")
def install(
    ctx: typer.Context,
    parts: Annotated[list[str] | None, typer.Option(help="Install only this part; may be repeated.")] = None,
    trainer: Annotated[bool, typer.Option("--trainer", help="Install Kubeflow Trainer and JobSet, too.")] = False,
    kai: Annotated[bool, typer.Option("--kai", help="Install the KAI Scheduler, too.")] = False,
    output: Output = Format.TEXT,
) -> None:
    """Install the parts: from PATH if the version fits, else from the cache, else built with Go."""
    only_without(ctx, "parts", "trainer", "kai")
    wanted = parts or part_names(trainer=trainer, kai=kai)
    found = _installed(wanted)
    if output.document:
        rows = [{"part": f.part.name, "name": f.name, "source": f.source, "path": str(f.path)} for f in found]
        print_document(rows, output)
        return
    table = Table("part", "version", "name", "from", "path", box=None, header_style="bold")
    for one in found:
        table.add_row(one.part.name, one.part.version, one.name, one.source, str(one.path))
    print_table(table)


def _installed(wanted: list[str], port: int | None = None) -> list[Found]:
    """The programs of these parts, built if they are missing, and if a sandbox could start on this machine."""
    found = find_programs(wanted)
    lacking = missing_programs(found)
    if not lacking:
        return found
    try_start(port)
    show_build(Installation(lacking), ERR)
    return find_programs(wanted)


@app.command()
def up(  # noqa: PLR0917 - options of a command, each given by name
    name: Name = DEFAULT_NAME,
    karpenter: Annotated[bool, typer.Option(help="Run Karpenter, which launches nodes for NodeClaims.")] = True,
    trainer: Annotated[bool, typer.Option("--trainer", help="Run Kubeflow Trainer and JobSet's controller.")] = False,
    kai: Annotated[bool, typer.Option("--kai", help="Run the KAI Scheduler, for pods that name it.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Write an audit log of the apiserver to logs/audit.log.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the apiserver; a free one by default.")
    ] = None,
) -> None:
    """Start a sandbox, after installing missing parts. Does nothing if it is running."""
    sandbox = Sandbox.named(name)
    _installed(part_names(karpenter=karpenter, trainer=trainer, kai=kai), port)
    with showing_startup(ERR, name) as on_event:
        started = sandbox.up(
            karpenter=karpenter,
            trainer=trainer,
            kai=kai,
            audit=audit,
            port=port,
            on_event=on_event,
        )
    state = sandbox.state()
    assert state is not None
    if not started:
        OUT.print(f"The sandbox {name} is already running: {state.server}")
        _warn_of_ended(name, state.processes)
        return
    OUT.print(f"The sandbox {name} is up after {state.startup_seconds:.1f} s: {state.server}")
    OUT.print(f'Work on it with: eval "$(plimsoll sandbox env --name {name})"')


@app.command()
def down(name: Name = DEFAULT_NAME) -> None:
    """Stop a sandbox and remove its directory."""
    with ERR.status(f"Stopping the sandbox {name}"):
        was = Sandbox.named(name).down()
    OUT.print(f"The sandbox {name} is removed." if was else f"There is no sandbox {name}.")


@app.command("list")
def list_(output: Output = Format.TEXT) -> None:
    """List the sandboxes of PLIMSOLL_HOME."""
    found = Sandbox.all()
    if output.document:
        rows = [{"name": each.name, "up": each.is_up(), "folder": str(each.folder.path)} for each in found]
        print_document(rows, output)
        return
    if not found:
        OUT.print("There is no sandbox.")
        return
    table = Table("name", "state", "folder", box=None, header_style="bold")
    for each in found:
        table.add_row(each.name, "up" if each.is_up() else "not up", str(each.folder.path))
    print_table(table)


@app.command()
def status(name: Name = DEFAULT_NAME, output: Output = Format.TEXT) -> None:
    """Show the processes of a sandbox. Exit code 1 if it is not running or a process has ended."""
    sandbox = Sandbox.named(name)
    state, settings = sandbox.state(), sandbox.settings()
    up = sandbox.is_up()
    processes = state.processes if state else []
    whole = up and all(p.exit_code is None for p in processes)
    if output.document:
        shown = {
            "name": name,
            "up": up,
            "folder": str(sandbox.folder.path),
            "settings": settings.model_dump() if settings else None,
            "state": state.model_dump() if state else None,
        }
        print_document(shown, output)
    elif state is None or settings is None:
        OUT.print(f"There is no sandbox {name}.")
    else:
        OUT.print(f"{name}: {'up' if up else 'not up'}, {state.server}, folder {sandbox.folder.path}")
        OUT.print(f"kubeconfig {sandbox.kubeconfig}")
        OUT.print(_table(processes, up=up))
        _warn_of_ended(name, processes)
    if not whole:
        raise typer.Exit(1)


@app.command(short_help="Create KWOK nodes with GPU labels from a CSV file.")
def nodes(
    source: Annotated[Path, typer.Option("--from", help="CSV with the columns sn,cpu_milli,memory_mib,gpu,model.")],
    name: Name = DEFAULT_NAME,
) -> None:
    """Create KWOK nodes with GPU labels from a CSV file, and wait until they are Ready."""

    listed = read_node_list(source)
    sandbox = Sandbox.named(name)
    sandbox.environ()
    with making_nodes(ERR, len(listed)) as on_progress:
        made = make_nodes(sandbox.kubeconfig, listed, on_progress)
    OUT.print(f"{len(listed)} nodes are Ready: {made.created} created, {made.present} existed already.")


@app.command(
    short_help="Run kubectl against a sandbox.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def kubectl(
    context: typer.Context,
    name: Name = DEFAULT_NAME,
    user: Annotated[User, typer.Option(help="User to act as.")] = User.ADMIN,
) -> None:
    """Run kubectl against a sandbox, such as: plimsoll sandbox kubectl -- get nodes."""
    environment = os.environ | Sandbox.named(name).environ(user.value)
    done = subprocess.run(["kubectl", *context.args], env=environment, stdout=sys.stdout, check=False)
    raise typer.Exit(done.returncode)


@app.command(short_help="Print the variables of a sandbox for a shell to eval.")
def env(
    name: Name = DEFAULT_NAME,
    user: Annotated[User, typer.Option(help="User that the commands act as.")] = User.ADMIN,
) -> None:
    """Print shell commands to eval, so that kubectl, pulumi and plimsoll use a sandbox."""
    for key, value in Sandbox.named(name).environ(user.value).items():
        sys.stdout.write(f"export {key}={shlex.quote(value)}\n")


@app.command()
def logs(
    ctx: typer.Context,
    process: Annotated[
        str | None, typer.Argument(help="Process whose log is shown; without it, the logs are listed.")
    ] = None,
    name: Name = DEFAULT_NAME,
    lines: Annotated[int, typer.Option("--tail", min=1, help="Number of lines to show.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until Ctrl-C.")] = False,
) -> None:
    """Show the end of the log of a process."""
    only_with(ctx, "process", "lines", "follow")
    folder = Sandbox.named(name).folder
    known = sorted(p.stem for p in folder.logs.glob("*.log"))
    if not known:
        raise PlimsollError(f"There is no sandbox {name}.", f"Run `plimsoll sandbox up --name {name}` first.")
    if process is None:
        OUT.print("\n".join(known))
    elif process not in known:
        raise PlimsollError(f"There is no log of {process!r}.", f"There are {', '.join(known)}.")
    else:
        options = ["-F"] if follow else []
        log = str(folder.logs / f"{process}.log")
        subprocess.run(["tail", f"-n{lines}", *options, log], stdout=sys.stdout, check=False)


def _table(processes: list[ProcessState], *, up: bool) -> Table:
    table = Table("process", "pid", "port", "memory", "state", box=None, header_style="bold")
    for process in processes:
        memory, says = "", "running" if up else "gone"
        if process.exit_code is not None:
            says = f"ended with {process.exit_code}"
        elif up:
            try:
                memory = f"{psutil.Process(process.pid).memory_info().rss / 1024**2:.0f} MiB"
            except psutil.NoSuchProcess:
                says = "gone"
        table.add_row(process.name, str(process.pid), str(process.port or ""), memory, says)
    return table


def _warn_of_ended(sandbox: str, processes: list[ProcessState]) -> None:
    for process in processes:
        if process.exit_code is not None:
            logs = f"plimsoll sandbox logs --name {sandbox} {process.name}"
            ERR.print(f"{process.name} has ended with {process.exit_code}: see `{logs}`.")
