"""Completes names from the cluster, in a moment or not at all."""

from contextlib import closing
from typing import Any

import typer

from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr


def workspaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of Workspaces, `NAMESPACE/NAME` once a slash is written, else those of --namespace."""
    refs = _refs(ctx)
    if "/" in incomplete:
        names = {f"{namespace}/{name}" for namespace, name in refs}
    else:
        wanted = ctx.params.get("namespace")
        names = {name for namespace, name in refs if wanted in (None, namespace)}
    return sorted(name for name in names if name.startswith(incomplete))


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Namespaces that have Workspaces."""
    return sorted({namespace for namespace, _ in _refs(ctx) if namespace.startswith(incomplete)})


def _refs(ctx: Any) -> list[tuple[str, str]]:
    """(namespace, name) of each Workspace; none where the cluster does not answer: a shell shows no errors here."""
    from plimsoll.kube import Connection
    from plimsoll.observe.cluster import WORKSPACES, Store, list_objects

    log_to_stderr()  # the shell reads standard output
    try:
        with closing(Connection.open(ctx.params.get("kubeconfig"), ctx.params.get("context"))) as connection:
            found, _ = list_objects(connection, Store(WORKSPACES))
    except PlimsollError:
        return []
    return list(found)
