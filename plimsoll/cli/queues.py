"""`plimsoll queues`: the tree of KAI's Queues; `plimsoll queues check`: checks of Queues."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from plimsoll.cli.shared import (
    ERR,
    REFUSED,
    Context,
    Files,
    Format,
    Kubeconfig,
    Output,
    Paths,
    named_files,
    none_before_command,
    only_with,
    only_without,
    print_document,
    print_warnings,
    read_snapshot,
)
from plimsoll.errors import InvalidObjectError, PlimsollError
from plimsoll.labels import GROUP
from plimsoll.logs import log_to_stderr
from plimsoll.text import counted

if TYPE_CHECKING:
    from plimsoll.cluster.queues import UsageByQueue

app = typer.Typer(add_completion=False)

_READ: Final = ("Environment", "Queue", "Pod", "PodGroup", "Node")


@app.callback(invoke_without_command=True)
def queues(  # noqa: PLR0917 - options of a command, each given by name
    ctx: typer.Context,
    file: Files = None,
    k_value: Annotated[
        float, typer.Option("--k-value", min=0, metavar="K", help="kValue of KAI's time-based fair share")
    ] = 0,
    usage: Annotated[
        Path | None,
        typer.Option("--usage", metavar="FILE", help="YAML: for each queue, the part of the cluster it used"),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Show KAI's Queues: quota, limit, fair share, allocated and requested resources, and the next queue.

    Without a command: the tree, of a cluster or of files.
    """
    if ctx.invoked_subcommand is not None:
        none_before_command(ctx)
        return
    only_without(ctx, "file", "kubeconfig", "context")
    only_with(ctx, "k_value", "usage")
    only_with(ctx, "usage", "k_value")
    from plimsoll.cli.tables.queues import as_json, print_tree
    from plimsoll.cluster.queues import PastUsage, next_gpu, queue_usage

    snapshot = read_snapshot(file, kubeconfig, context, _READ, required=("Queue",))
    found = queue_usage(snapshot, PastUsage(k_value, _past_usage(usage)))
    following = next_gpu(found)
    if output.document:
        shown = as_json(found, following)
        print_document(shown | {"warnings": [*snapshot.warnings, *shown["warnings"]]}, output)
    else:
        print_warnings(snapshot.warnings)
        print_tree(found, following)


@app.command(short_help="Check Queues, and the objects that use them.")
def check(  # noqa: PLR0917 - options of a command, each given by name
    ctx: typer.Context,
    paths: Paths = None,
    file: Files = None,
    known: Annotated[
        list[str] | None, typer.Option("--known", metavar="QUEUE", help="leaf queue that is declared elsewhere")
    ] = None,
    delete: Annotated[
        list[str] | None, typer.Option("--delete", metavar="QUEUE", help="check as if this queue were deleted")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Check the Queues of files or of a cluster, and the objects that use them; nothing is applied.

    Exit code 2 if there are findings, or if files have nothing to check.
    """
    from plimsoll.cli.shared import print_findings
    from plimsoll.cluster.queues import check_queues, is_queue
    from plimsoll.model.kai import NodePoolLabel
    from plimsoll.policy import environment_of, is_kind

    files, passed_over = named_files(ctx, paths, file), Counter[str]()
    manifests = list(_from_files(files, passed_over)) if files else _from_cluster(kubeconfig, context)
    label = NodePoolLabel.declared(environment_of(manifests) or {})
    manifests = [each for each in manifests if not is_kind(each, GROUP, "Environment")]
    declared = {each["metadata"].get("name") for each in manifests if is_queue(each)}
    for name in delete or ():
        if name not in declared:
            raise PlimsollError(f"--delete {name}: Queue not found")
    if passed_over:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(passed_over.items()))
        ERR.print(f"skipped, because they are no Queues of KAI and name none: {kinds}", style="yellow", soft_wrap=True)
    code = print_findings(check_queues(manifests, known or (), delete or (), label), output, len(manifests))
    ERR.print(f"{counted(len(declared), 'Queue')} checked, and the objects that use them", soft_wrap=True)
    raise typer.Exit(REFUSED if files and not manifests else code)


def _from_files(paths: list[str], passed_over: Counter[str]) -> Iterator[dict[str, Any]]:
    """The Queues, and the objects that name one; counts the others."""
    from plimsoll.cluster.queues import is_queue, queue_uses, require_object
    from plimsoll.model.api import Environment
    from plimsoll.observe.files import ManifestError, objects_of, read_documents, tool_file
    from plimsoll.policy import is_kind

    environment = None
    for document in read_documents(paths):
        if tool := tool_file(document):
            passed_over[tool] += 1
            continue
        for place, manifest in objects_of(document):
            try:
                require_object(manifest)
            except InvalidObjectError as error:
                if _is_of_no_cluster(manifest):
                    passed_over[f"{manifest['kind']} ({manifest['apiVersion']})"] += 1
                    continue
                raise ManifestError(f"{place}: {error.message}", error.hint) from None
            settings = manifest["kind"] == "NodePool"
            if is_kind(manifest, GROUP, "Environment"):
                if environment is not None:
                    problem = f"{place}: a second Environment; the first is in {environment}"
                    raise ManifestError(problem, "check one Environment at a time")
                try:
                    Environment.read(manifest)
                except InvalidObjectError as error:
                    raise ManifestError(f"{place}: {error.message}", error.hint) from None
                environment, settings = place, True
            if is_queue(manifest) or settings or any(queue_uses(manifest)):
                yield manifest
            else:
                passed_over[f"{manifest['kind']} ({manifest['apiVersion']})"] += 1


def _is_of_no_cluster(manifest: dict[str, Any]) -> bool:
    """Whether it is the configuration of a tool, such as a kubeconfig: without metadata, and in a form of its own."""
    from plimsoll.observe.files import READ
    from plimsoll.policy import is_read

    version, kind = (manifest.get(field) for field in ("apiVersion", "kind"))
    named = isinstance(version, str) and isinstance(kind, str) and bool(version and kind)
    return named and "metadata" not in manifest and (version, kind) not in READ and not is_read(manifest)


def _from_cluster(kubeconfig: Any, context: str | None) -> list[dict[str, Any]]:
    from plimsoll.kube import Connection
    from plimsoll.observe.cluster import queue_objects

    log_to_stderr()
    with closing(Connection.open(kubeconfig, context)) as connection:
        return list(queue_objects(connection))


def _past_usage(path: Path | None) -> "UsageByQueue | None":
    """Raises PlimsollError if the file is not a mapping of queues to parts of the cluster, from 0 to 1."""
    if path is None:
        return None
    import yaml
    from pydantic import TypeAdapter, ValidationError

    from plimsoll.cluster.queues import UsageByQueue
    from plimsoll.model.meta import describe_errors
    from plimsoll.yaml_text import problem_of

    try:
        return TypeAdapter(UsageByQueue).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        why = describe_errors(error)
    except yaml.YAMLError as error:
        why = problem_of(error)
    except (OSError, UnicodeDecodeError) as error:
        why = str(error)
    raise PlimsollError(f"--usage {path}: {why}", "write, for each queue, parts of the cluster: training: {gpu: 0.4}")
