"""`plimsoll diff`: what a change of manifests means for nodes, GPUs, cost and queues."""

import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final

import typer

from plimsoll.cli.shared import (
    REFUSED,
    SETTLED,
    Context,
    Format,
    Kubeconfig,
    Paths,
    print_document,
    read_snapshot,
    with_passed_over,
)
from plimsoll.errors import PlimsollError

app = typer.Typer(add_completion=False)

CLUSTER: Final = "cluster"


class Written(StrEnum):
    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    YAML = "yaml"


@app.command()
def diff(
    paths: Paths = None,
    *,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE_OR_DIR", help="the new manifests; - is standard input"),
    ] = None,
    against: Annotated[
        list[str],
        typer.Option(
            metavar="FILE_OR_DIR|cluster", help="the old manifests, or cluster: as if the new ones were applied"
        ),
    ],
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[
        Written, typer.Option("--output", "-o", help="markdown is for a comment on a pull request")
    ] = Written.TEXT,
) -> None:
    """Show what new manifests mean: nodes, GPUs, whole GPUs of pods, cost an hour, pods without capacity, queues
    over quota, before and after. Deployments, Jobs and other workloads stand for their pods; nothing is applied.

    Exit code 2 if more pods or Workspaces than before have no capacity, or if only objects that are skipped were read.
    """
    from plimsoll.cli.tables.diff import as_markdown, print_difference
    from plimsoll.cluster.pods import passed_over_warnings
    from plimsoll.explaining import compare, with_manifests
    from plimsoll.model.api import DemandProvisioner
    from plimsoll.observe.cloud_types import with_cloud_types
    from plimsoll.observe.files import snapshot_from_files

    new_files = [*(paths or ()), *(file or ())]
    if not new_files:
        raise PlimsollError("no new manifests are named", "name files or folders, or - for standard input")
    new = snapshot_from_files(new_files)
    if CLUSTER in against:
        if len(against) > 1:
            raise PlimsollError("--against cluster has no effect with files", "compare with one of them")
        before = with_cloud_types(read_snapshot(None, kubeconfig, context))
        after = with_passed_over(with_manifests(before, new))
    else:
        before, after = with_cloud_types(read_snapshot(against, None, None)), with_cloud_types(with_passed_over(new))
    found = compare(before, after, datetime.now(UTC))
    demand = after.environment.spec.demand
    warnings = list(dict.fromkeys((*after.warnings, *passed_over_warnings(after.pods, demand))))
    more = found.after.whole_gpus - found.before.whole_gpus
    if more:
        warnings.insert(0, f"whole GPUs: {more:+d}, nodes by the autoscaler, which are not counted before they exist")
    if demand.provisioner is DemandProvisioner.NONE:
        warnings.insert(0, "nodes for pods count, and nothing requests them: spec.demand.provisioner is none")
    if output in (Written.JSON, Written.YAML):
        print_document({**found.as_json(), "warnings": warnings}, Format(output.value))
    elif output is Written.MARKDOWN:
        sys.stdout.write(as_markdown(found, warnings))
    else:
        print_difference(found, warnings)
    unread = new.skipped and not (new.pods or new.workspaces or new.node_pools or new.queues)
    raise typer.Exit(REFUSED if found.after.waiting > found.before.waiting or unread else SETTLED)
