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
    Paths,
    named_files,
    print_document,
    read_snapshot,
    with_passed_over,
)
from plimsoll.errors import PlimsollError

app = typer.Typer(add_completion=False)

NOTHING_REQUESTED: Final = (
    "nothing requests these nodes: spec.demand.provisioner of the Environment is none: set trigger-pod, "
    "capacity-buffer or provisioning-request"
)
_DRAWN: Final = (".html", ".svg")

Plot = Annotated[bool, typer.Option("--plot", help="draw GPUs as bars filled with shares, before and after")]
PlotTo = Annotated[
    Path | None, typer.Option("--plot-to", metavar="PATH", help="write the same drawing to an .html or .svg file")
]


@app.command()
def demand(
    ctx: typer.Context,
    paths: Paths = None,
    file: Files = None,
    *,
    plot: Plot = False,
    plot_to: PlotTo = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Show the GPUs that unschedulable pods need, and the capacity that would be requested; nothing is applied.

    Of files, Deployments, Jobs and other workloads stand for their pods. Exit code 2 if a pod's request is invalid,
    fits no node, or would not be admitted by its queue, or if files have nothing but objects that are skipped.
    """
    from plimsoll.cli.picture import as_html, as_svg, gpu_picture, print_picture
    from plimsoll.cli.tables.demand import as_json, print_demands
    from plimsoll.cluster.ledger import gpu_ledger
    from plimsoll.cluster.pods import competing_warnings
    from plimsoll.cost import nodes_cost
    from plimsoll.explaining import plan_demand
    from plimsoll.model.api import DemandProvisioner
    from plimsoll.observe.cloud_types import with_cloud_types

    file = named_files(ctx, paths, file)
    if plot and output.document:
        raise PlimsollError(f"--plot has no effect with --output {output.value}", "write the drawing with --plot-to")
    if plot_to is not None and plot_to.suffix not in _DRAWN:
        raise PlimsollError(f"--plot-to {plot_to}: is not an .html or .svg file", "use one of these file extensions")
    read = with_passed_over(read_snapshot(file, kubeconfig, context))
    planned = plan_demand(with_cloud_types(read), datetime.now(UTC))
    snapshot, found, statuses = planned.snapshot, planned.plan, planned.statuses
    idle = snapshot.environment.spec.demand.provisioner is DemandProvisioner.NONE and found.nodes
    noted = (*snapshot.warnings, *competing_warnings(snapshot.pods))
    warnings = (*([NOTHING_REQUESTED] if idle else []), *noted)
    cost = nodes_cost(found.nodes, planned.prices)
    if output.document:
        print_document(as_json(found, statuses, warnings, cost), output)
    else:
        print_demands(found, statuses, warnings, cost)
    if plot or plot_to is not None:
        picture = gpu_picture(gpu_ledger(snapshot), found, snapshot.environment.spec.demand)
        if plot:
            print_picture(picture)
        if plot_to is not None:
            drawing = as_svg(picture) if plot_to.suffix == ".svg" else as_html(picture)
            _write(plot_to, drawing)
    kept_out = any(each.kept_out for each in found.demands)
    unread = snapshot.skipped and not found.demands
    raise typer.Exit(REFUSED if found.refused or kept_out or unread else SETTLED)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlimsollError(f"--plot-to {path}: {error.strerror}", "set a path that can be written") from None
