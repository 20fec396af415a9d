"""`plimsoll demand`: the GPUs that unschedulable pods need, and the capacity that would be requested."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from plimsoll.cli.shared import (
    REFUSED,
    SETTLED,
    Context,
    Files,
    Format,
    Kubeconfig,
    Output,
    only_without,
    print_document,
    read_snapshot,
)
from plimsoll.errors import PlimsollError

app = typer.Typer(add_completion=False)

_DRAWN: Final = (".html", ".svg")

Plot = Annotated[bool, typer.Option("--plot", help="draw GPUs as bars filled with shares, before and after")]
PlotTo = Annotated[
    Path | None, typer.Option("--plot-to", metavar="PATH", help="write the same drawing to an .html or .svg file")
]


@app.command()
def demand(
    ctx: typer.Context,
    file: Files = None,
    *,
    plot: Plot = False,
    plot_to: PlotTo = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Show the GPUs that unschedulable pods need, and the capacity that would be requested; nothing is applied.

    Exit code 2 if a pod's request is invalid, fits no node, or would not be admitted by its queue.
    """
    from plimsoll.cli.picture import as_html, as_svg, gpu_picture, print_picture
    from plimsoll.cli.tables.demand import as_json, print_demands
    from plimsoll.cluster.pods import competing_warnings
    from plimsoll.observe.cloud_types import with_cloud_types
    from plimsoll.plan.demand import DemandPlanner
    from plimsoll.plan.limits import environment_room
    from plimsoll.plan.owned import PlanBuilder
    from plimsoll.plan.requests import RequestRound
    from plimsoll.plan.view import ClusterView

    only_without(ctx, "file", "kubeconfig", "context")
    if plot and output.document:
        raise PlimsollError(f"--plot has no effect with --output {output.value}", "write the drawing with --plot-to")
    if plot_to is not None and plot_to.suffix not in _DRAWN:
        raise PlimsollError(f"--plot-to {plot_to}: is not an .html or .svg file", "use one of these file extensions")
    view = ClusterView(with_cloud_types(read_snapshot(file, kubeconfig, context)))
    snapshot = view.observed
    requesting = RequestRound(
        snapshot,
        DemandPlanner(),
        PlanBuilder(),
        datetime.now(UTC),
        room=environment_room(view),
        requests=view.requests,
        progress=view.progress,
    )
    warnings = (*snapshot.warnings, *competing_warnings(snapshot.pods))
    phases = {each.name: each.status.phase for each in requesting.plan() if each.status is not None}
    found = requesting.demand
    if output.document:
        print_document(as_json(found, phases, warnings), output)
    else:
        print_demands(found, phases, warnings)
    if plot or plot_to is not None:
        picture = gpu_picture(view.ledger, found, snapshot.environment.spec.demand)
        if plot:
            print_picture(picture)
        if plot_to is not None:
            drawing = as_svg(picture) if plot_to.suffix == ".svg" else as_html(picture)
            _write(plot_to, drawing)
    kept_out = any(each.kept_out for each in found.demands)
    raise typer.Exit(REFUSED if found.refused or kept_out else SETTLED)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlimsollError(f"--plot-to {path}: {error.strerror}", "set a path that can be written") from None
