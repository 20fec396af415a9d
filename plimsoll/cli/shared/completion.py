"""Completes names from the cluster, in a moment or not at all."""

from contextlib import closing
from typing import TYPE_CHECKING, Any

import typer

from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr

if TYPE_CHECKING:
    from plimsoll.observe.cluster import Kind


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


def node_profiles(ctx: typer.Context, incomplete: str) -> list[str]:
    """NODEPOOL/TYPE of each NodeProfile."""
    from plimsoll.observe.cluster import NODE_PROFILES

    pairs = (f"{known.spec.node_pool}/{known.spec.instance_type}" for known in _objects(ctx, NODE_PROFILES).values())
    return sorted(pair for pair in pairs if pair.startswith(incomplete))


def pods(ctx: typer.Context, incomplete: str) -> list[str]:
    """NAMESPACE/NAME of each pod."""
    return _names(ctx, "PODS", incomplete)


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    return _names(ctx, "NODES", incomplete)


def queues(ctx: typer.Context, incomplete: str) -> list[str]:
    return _names(ctx, "QUEUES", incomplete)


def demands(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of GPUDemands."""
    return _names(ctx, "GPU_DEMANDS", incomplete)


def _names(ctx: typer.Context, kind: str, incomplete: str) -> list[str]:
    from plimsoll.observe import cluster

    found = _objects(ctx, getattr(cluster, kind))
    names = (f"{namespace}/{name}" if namespace else name for namespace, name in found)
    return sorted(name for name in names if name.startswith(incomplete))


def _refs(ctx: Any) -> list[tuple[str, str]]:
    """(namespace, name) of each Workspace."""
    from plimsoll.observe.cluster import WORKSPACES

    return list(_objects(ctx, WORKSPACES))


def _objects(ctx: Any, kind: "Kind[Any]") -> dict[tuple[str, str], Any]:
    """Objects by namespace and name; none where the cluster does not answer: a shell shows no errors here."""
    from plimsoll.kube import Connection
    from plimsoll.observe.cluster import Store, list_objects

    log_to_stderr()  # the shell reads standard output
    try:
        with closing(Connection.open(ctx.params.get("kubeconfig"), ctx.params.get("context"))) as connection:
            found, _ = list_objects(connection, Store(kind))
    except PlimsollError:
        return {}
    return found
