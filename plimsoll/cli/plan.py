"""`plimsoll plan`: a preview of the next Plan; nothing is applied."""

from datetime import UTC, datetime

import typer

from plimsoll.cli.shared import (
    REFUSED,
    Context,
    Files,
    Format,
    Kubeconfig,
    Output,
    Paths,
    named_files,
    next_plan,
    read_files,
)
from plimsoll.logs import log_to_stderr

app = typer.Typer(add_completion=False)


@app.command()
def plan(
    ctx: typer.Context,
    paths: Paths = None,
    *,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Preview the next Plan, from a cluster or from files; nothing is applied.

    Exit code 2 if a Workspace or an object is refused, or if files have nothing but objects that are skipped.
    """
    from plimsoll.cli.tables.plan import render
    from plimsoll.cluster.queues import next_gpu, queue_usage

    file = named_files(ctx, paths, file)
    if file:
        snapshot = read_files(file)
    else:
        from plimsoll.observe.cluster import open_observer

        log_to_stderr()
        with open_observer(kubeconfig, context, hub_timeout=None) as (_, observer):
            snapshot = observer.snapshot()
    following = next_gpu(queue_usage(snapshot)) if snapshot.queues else None
    planned = next_plan(snapshot, datetime.now(UTC))
    code = render(planned, output, following, snapshot)
    raise typer.Exit(REFUSED if snapshot.skipped and not (planned.verdicts or planned.demands) else code)
