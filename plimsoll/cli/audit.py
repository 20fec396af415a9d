"""`plimsoll audit`: what a cluster's GPUs cost, what is idle or blocked, and what Plimsoll would do; reads only."""

from contextlib import closing
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.shared import Context, Files, Format, Kubeconfig, Paths, only_without, print_document, read_snapshot
from plimsoll.errors import PlimsollError

app = typer.Typer(add_completion=False)


class Written(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    HTML = "html"


@app.command()
def audit(
    ctx: typer.Context,
    paths: Paths = None,
    *,
    file: Files = None,
    stack: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="also write the stack file that adopts NodePools, Queues and Workspaces"),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[
        Written, typer.Option("--output", "-o", help="html is one page without other files, to send on")
    ] = Written.TEXT,
) -> None:
    """Audit a cluster: idle GPUs and their cost, pods without capacity and why, packing against its lower bound,
    contradictory labels, nodes without an owner, missing gates, queues that can run nothing, what Plimsoll would do.

    It needs the rights to get and list, and none of Plimsoll's kinds. Nothing is changed. Exit code 0 whatever it
    finds.
    """
    from plimsoll.cli.tables.audit import as_html, print_audit
    from plimsoll.explaining import audit as audited
    from plimsoll.explaining import plan_demand
    from plimsoll.observe.cloud_types import with_cloud_types

    only_without(ctx, "file", "kubeconfig", "context")
    only_without(ctx, "paths", "kubeconfig", "context")
    file = [*(paths or ()), *(file or ())]
    snapshot = with_cloud_types(read_snapshot(file, kubeconfig, context))
    found = audited(plan_demand(snapshot, datetime.now(UTC)))
    if stack is not None:
        _write_stack(stack, file, kubeconfig, context)
    if output in (Written.JSON, Written.YAML):
        print_document({**found.as_json(), "warnings": list(snapshot.warnings)}, Format(output.value))
    elif output is Written.HTML:
        typer.echo(as_html(found, context or ", ".join(file) or "the cluster of the kubeconfig"), nl=False)
    else:
        print_audit(found, snapshot.warnings)


def _write_stack(path: Path, files: list[str], kubeconfig: Path | None, context: str | None) -> None:
    from plimsoll.cli.adopt import adoptable_in, adoptable_of
    from plimsoll.project import adopt
    from plimsoll.yaml_text import write_yaml

    if files:
        manifests = adoptable_in(files)
    else:
        from plimsoll.kube import Connection

        with closing(Connection.open(kubeconfig, context)) as connection:
            manifests = adoptable_of(connection)
    text = write_yaml({"config": {"layer": "objects", **adopt(manifests).settings}})
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlimsollError(f"--stack {path}: {error.strerror}", "set a path that can be written") from None
