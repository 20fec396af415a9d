"""`plimsoll why`: the steps from a pod to its GPU, and the change that would unblock it."""

from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from plimsoll.cli.shared import (
    ERR,
    REFUSED,
    SETTLED,
    Context,
    Files,
    Format,
    Kubeconfig,
    Output,
    Paths,
    demands,
    named_files,
    namespaces,
    next_plan,
    node_profiles,
    nodes,
    pods,
    print_document,
    queues,
    with_passed_over,
    workspaces,
)
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr

if TYPE_CHECKING:
    from plimsoll.explaining import Chain, PlannedDemand
    from plimsoll.kube import Connection
    from plimsoll.model import Snapshot
    from plimsoll.model.api import WorkspaceRef

app = typer.Typer(add_completion=False)

Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="namespace [needed if several have the name]", autocompletion=namespaces),
]


class _Source(NamedTuple):
    """Where the state is read from."""

    files: list[str]
    kubeconfig: Path | None
    context: str | None


@app.callback()
def _why() -> None:
    """Say why a pod, node, Workspace, demand, queue or namespace has GPUs or none, and what would help."""


@app.command("pod", short_help="Say why a pod has its GPU, or has none.")
def pod(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", autocompletion=pods)],
    paths: Paths = None,
    *,
    namespace: Namespace = None,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Say why a pod has its GPU, or has none, and which change would help; nothing is applied.

    Each change is proven by a plan with it. Exit code 2 if the pod is blocked.
    """
    from plimsoll.explaining import why_pod

    def explain(planned: "PlannedDemand") -> tuple["Chain", tuple[str, str, str]]:
        keys = [each.key for each in planned.snapshot.pods]
        of, short = _key(keys, name, namespace, "pod")
        return why_pod(planned, of, short), ("Pod", of, short)

    _answer(_Source(named_files(ctx, paths, file), kubeconfig, context), output, explain)


@app.command("node", short_help="Say for whom a node is there, what it costs, and what keeps it.")
def node(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="name of a Node or NodeClaim", autocompletion=nodes)],
    paths: Paths = None,
    *,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Say for whom a node is there, what it costs, when it goes, and what keeps it.

    Exit code 2 if it cannot be used, or does not come.
    """
    from plimsoll.explaining import why_node

    _answer(
        _Source(named_files(ctx, paths, file), kubeconfig, context),
        output,
        lambda planned: (why_node(planned, name), ("Node", "", name)),
    )


@app.command("demand", short_help="Say why the pods of a GPUDemand have capacity, or none.")
def demand(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="name of the GPUDemand", autocompletion=demands)],
    paths: Paths = None,
    *,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Say why the pods of a GPUDemand have capacity, or none, and which change would help.

    Exit code 2 if some are blocked.
    """
    from plimsoll.explaining import why_demand

    _answer(
        _Source(named_files(ctx, paths, file), kubeconfig, context), output,
        lambda planned: (why_demand(planned, name), ("GPUDemand", "", name)),
    )  # fmt: skip


@app.command("queue", short_help="Say why the pods of a Queue have capacity, or none.")
def queue(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="name of KAI's Queue", autocompletion=queues)],
    paths: Paths = None,
    *,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Say what a Queue has and asks for, why its pods have no capacity, and which change would help.

    Exit code 2 if some are blocked.
    """
    from plimsoll.explaining import why_queue

    _answer(
        _Source(named_files(ctx, paths, file), kubeconfig, context),
        output,
        lambda planned: (why_queue(planned, name), ("Queue", "", name)),
    )


@app.command("namespace", short_help="Say why the pods and Workspaces of a namespace have capacity, or none.")
def namespace(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="name of the namespace", autocompletion=namespaces)],
    paths: Paths = None,
    *,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Say what a namespace may have, why its pods and Workspaces have no capacity, and which change would help.

    Exit code 2 if some are blocked.
    """
    from plimsoll.explaining import why_namespace
    from plimsoll.plan import validate

    _answer(
        _Source(named_files(ctx, paths, file), kubeconfig, context), output,
        lambda planned: (why_namespace(planned, name, validate(planned.view, planned.now)), ("Namespace", "", name)),
    )  # fmt: skip


@app.command("workspace", short_help="Say why a Workspace runs, or does not, with each step of its verdict.")
def workspace(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", autocompletion=workspaces)],
    paths: Paths = None,
    *,
    namespace: Namespace = None,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Say why a Workspace runs, or does not, and which change would help; then each step of its verdict, its nodes, and
    what would be created or deleted.

    Exit code 2 if it is refused, or one of its objects is.
    """
    from plimsoll.cli.explanation import as_json, print_chain, print_explanation
    from plimsoll.explaining import explain, plan_demand, why_workspace
    from plimsoll.observe.hub_models import with_hub_models

    with _state(_Source(named_files(ctx, paths, file), kubeconfig, context)) as (seen, connection):
        refs = _refs(seen)
        ref = refs[_key(refs, name, namespace, "Workspace")]
        events = _events(connection, "Workspace", ref.namespace, ref.name)
        snapshot = with_hub_models(seen, connection)
    now = datetime.now(UTC)
    planned = plan_demand(snapshot, now)
    whole = next_plan(planned.view, now)
    explanation = explain(planned.view, whole, ref, now)
    chain = why_workspace(planned, explanation, whole)
    if output.document:
        print_document({"why": chain.as_json(), **as_json(explanation, events)}, output)
    else:
        print_chain(chain, [])
        print_explanation(explanation, events)
    raise typer.Exit(SETTLED if explanation.verdict.accepted and not explanation.withheld else REFUSED)


@app.command("node-profile", short_help="Say what new nodes of a NodePool and instance type offer.")
def node_profile(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="POOL/TYPE", autocompletion=node_profiles)],
    paths: Paths = None,
    *,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Say what a new node of a NodePool and instance type offers to pods, and where each fact comes from.

    Exit code 2 if pods cannot share its GPUs, or its nodes contradict themselves.
    """
    from plimsoll.cli.explanation import print_profile, profile_as_json
    from plimsoll.cluster.pools import profile_facts

    source = _Source(named_files(ctx, paths, file), kubeconfig, context)
    node_pool, _, instance_type = name.partition("/")
    if not node_pool or not instance_type:
        raise PlimsollError(f"{name!r} is not POOL/TYPE", "name a NodePool and an instance type, as in gpu/g6.xlarge")
    with _state(source, required="NodePool") as (snapshot, _):
        facts = profile_facts(snapshot, node_pool, instance_type)
    if output.document:
        print_document(profile_as_json(facts), output)
    else:
        print_profile(facts)
    raise typer.Exit(REFUSED if facts.profile.divided or facts.findings else SETTLED)


def _answer(
    source: _Source, output: Format, explain: "Callable[[PlannedDemand], tuple[Chain, tuple[str, str, str]]]"
) -> None:
    """Prints the chain; `explain` gives it with kind, namespace and name of the object whose Events belong to it."""
    from plimsoll.cli.explanation import print_chain
    from plimsoll.explaining import plan_demand

    with _state(source) as (snapshot, connection):
        chain, about = explain(plan_demand(snapshot, datetime.now(UTC)))
        events = _events(connection, *about)
    if output.document:
        print_document({**chain.as_json(), "events": events}, output)
    else:
        print_chain(chain, events)
    raise typer.Exit(REFUSED if chain.blocked else SETTLED)


@contextmanager
def _state(source: _Source, required: str = "") -> "Iterator[tuple[Snapshot, Connection | None]]":
    """The state, with the instance types of its cloud, and the connection to its cluster; None for files."""
    from plimsoll.observe.cloud_types import with_cloud_types

    log_to_stderr()
    if source.files:
        from plimsoll.observe.files import snapshot_from_files

        snapshot = with_passed_over(snapshot_from_files(source.files))
        for warning in snapshot.warnings:
            ERR.print(f"warning: {warning}", style="yellow", soft_wrap=True)
        yield with_cloud_types(snapshot), None
        return
    from plimsoll.kube import Connection
    from plimsoll.observe.cluster import read_cluster

    with closing(Connection.open(source.kubeconfig, source.context)) as connection:
        yield with_cloud_types(read_cluster(connection, required=(required,) if required else ())), connection


def _events(connection: "Connection | None", kind: str, namespace: str, name: str) -> list[dict[str, Any]]:
    """The Events of the object; files have none."""
    if connection is None:
        return []
    from plimsoll.observe.cluster import events_about

    return events_about(connection, kind, namespace, name)


def _refs(snapshot: "Snapshot") -> "dict[tuple[str, str], WorkspaceRef]":
    refs = (*(each.ref for each in snapshot.workspaces), *(each.ref for each in snapshot.invalid_workspaces))
    return {(ref.namespace, ref.name): ref for ref in refs}


def _key(keys: Collection[tuple[str, str]], name: str, namespace: str | None, what: str) -> tuple[str, str]:
    """Namespace and name of the object that is meant."""
    from plimsoll.text import did_you_mean, nearest

    if namespace is None and "/" in name:
        namespace, _, name = name.partition("/")
    found = [key for key in keys if key[1] == name and namespace in (None, key[0])]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(sorted(of for of, _ in found))
        raise PlimsollError(f"{len(found)} {what}s are named {name!r}", f"set --namespace to one of {several}")
    written = sorted("/".join(key) for key in keys)
    near = did_you_mean(nearest(f"{namespace}/{name}" if namespace else name, written))
    where = f" in namespace {namespace!r}" if namespace else ""
    known = f"existing {what}s: {', '.join(written[:5])}" if written else f"no {what}s exist"
    raise PlimsollError(f"{what} {name!r} not found{where}", near or known)
