"""`plimsoll plan`: a preview of the next Plan; nothing is applied."""

from datetime import UTC, datetime

import typer

from plimsoll.cli.shared import Context, Files, Format, Kubeconfig, Output, next_plan, only_without, read_files
from plimsoll.logs import log_to_stderr

app = typer.Typer(add_completion=False)


@app.command()
def plan(
    ctx: typer.Context,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Preview the next Plan, from a cluster or from files; nothing is applied.

    Exit code 2 if a Workspace or an object is refused.
    """
    from plimsoll.cli.tables.plan import render
    from plimsoll.cluster.queues import next_gpu, queue_usage

    only_without(ctx, "file", "kubeconfig", "context")
    if file:
        snapshot = read_files(file)
    else:
        from plimsoll.observe.cluster import open_observer

        log_to_stderr()
        with open_observer(kubeconfig, context, hub_timeout=None) as (_, observer):
            snapshot = observer.snapshot()
    following = next_gpu(queue_usage(snapshot)) if snapshot.queues else None
    raise typer.Exit(render(next_plan(snapshot, datetime.now(UTC)), output, following, snapshot))
