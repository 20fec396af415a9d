"""`plimsoll explain workspace NAME`: the whole story of one decision."""

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.shared import (
    REFUSED,
    SETTLED,
    Context,
    Files,
    Format,
    Kubeconfig,
    Output,
    namespaces,
    next_plan,
    only_without,
    print_document,
    workspaces,
)
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr

if TYPE_CHECKING:
    from plimsoll.model import Snapshot
    from plimsoll.model.api import WorkspaceRef

app = typer.Typer(add_completion=False)

Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        help="namespace of the Workspace [needed if several have the name]",
        autocompletion=namespaces,
    ),
]


@app.callback()
def _explain() -> None:
    """Explain each step of a decision."""


@app.command(short_help="Explain the verdict of a Workspace, and its nodes.")
def workspace(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="name of the Workspace, or NAMESPACE/NAME", autocompletion=workspaces)],
    *,
    namespace: Namespace = None,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Explain the verdict of a Workspace, its nodes, and what would be created or deleted; nothing is applied.

    Exit code 2 if it is refused, or one of its objects is.
    """
    from plimsoll.cli.explanation import as_json, print_explanation
    from plimsoll.observe.cloud_types import with_cloud_types
    from plimsoll.observe.hub_models import with_hub_models
    from plimsoll.plan import explain
    from plimsoll.plan.view import ClusterView

    only_without(ctx, "file", "kubeconfig", "context")
    log_to_stderr()
    events: list[dict[str, Any]] = []
    if file:
        from plimsoll.observe.files import snapshot_from_files

        snapshot = snapshot_from_files(file)
        ref = _find(snapshot, name, namespace)
        snapshot = with_hub_models(snapshot)
    else:
        from plimsoll.kube import Connection
        from plimsoll.observe.cluster import events_about, read_cluster

        with closing(Connection.open(kubeconfig, context)) as connection:
            snapshot = read_cluster(connection, required=("Workspace",))
            ref = _find(snapshot, name, namespace)
            snapshot = with_hub_models(snapshot, connection)
            events = events_about(connection, ref)
    view, now = ClusterView(with_cloud_types(snapshot)), datetime.now(UTC)
    explanation = explain(view, next_plan(view, now), ref, now)
    if output.document:
        print_document(as_json(explanation, events), output)
    else:
        print_explanation(explanation, events)
    raise typer.Exit(SETTLED if explanation.verdict.accepted and not explanation.withheld else REFUSED)


def _find(snapshot: "Snapshot", name: str, namespace: str | None) -> "WorkspaceRef":
    if namespace is None and "/" in name:
        namespace, _, name = name.partition("/")
    refs = [each.ref for each in snapshot.workspaces] + [each.ref for each in snapshot.invalid_workspaces]
    found = [ref for ref in refs if ref.name == name and namespace in (None, ref.namespace)]
    if len(found) == 1:
        return found[0]
    if found:
        namespaces = ", ".join(sorted(ref.namespace for ref in found))
        raise PlimsollError(f"{len(found)} Workspaces are named {name!r}", f"set --namespace to one of {namespaces}")
    known = ", ".join(sorted(map(str, refs))[:5])
    where = f" in namespace {namespace!r}" if namespace else ""
    raise PlimsollError(
        f"Workspace {name!r} not found{where}", f"existing Workspaces: {known}" if known else "no Workspaces exist"
    )
