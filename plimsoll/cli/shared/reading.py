"""Reads the state that a command shows, of files or of a cluster."""

from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from plimsoll.cli.shared.effect import only_without
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr

if TYPE_CHECKING:
    from plimsoll.model import Snapshot


def read_snapshot(
    files: list[str] | None,
    kubeconfig: Path | None,
    context: str | None,
    only: Collection[str] | None = None,
    required: Collection[str] = (),
    *,
    any_rights: bool = False,
) -> "Snapshot":
    """Of the files where there are any, else of the cluster: `only` and `required` are names of kinds, `any_rights` as
    of `read_cluster`. What plans
    requests for nodes adds the instance types of the Environment's region (`with_cloud_types`)."""
    if files:
        from plimsoll.observe.files import snapshot_from_files

        return with_passed_over(snapshot_from_files(files))
    from plimsoll.kube import Connection
    from plimsoll.observe.cluster import read_cluster

    log_to_stderr()
    with closing(Connection.open(kubeconfig, context)) as connection:
        return read_cluster(connection, only, required, any_rights=any_rights)


def named_files(ctx: typer.Context, paths: list[str] | None, file: list[str] | None) -> list[str]:
    """The files that a command's parameters `paths` and `file` name; empty: a cluster is read. Raises PlimsollError for
    options of a cluster beside files."""
    for given in ("file", "paths"):
        only_without(ctx, given, "kubeconfig", "context")
    return [*(paths or ()), *(file or ())]


def required_files(paths: list[str] | None, file: list[str] | None) -> list[str]:
    """The same of a command that reads no cluster. Raises PlimsollError where there are none."""
    files = [*(paths or ()), *(file or ())]
    if not files:
        raise PlimsollError("no files are named", "name files or folders with manifests, or - for standard input")
    return files


def read_files(files: list[str]) -> "Snapshot":
    """Of the files, with the instance types and models that they name."""
    from plimsoll.observe.files import snapshot_from_files

    snapshot = with_passed_over(snapshot_from_files(files))
    asked = snapshot.environment.spec
    if asked.catalog.aws_region is None and asked.model_hub is None:
        return snapshot  # without the imports for requests
    from plimsoll.observe.cloud_types import with_cloud_types
    from plimsoll.observe.hub_models import with_hub_models

    log_to_stderr()
    return with_hub_models(with_cloud_types(snapshot))


def with_passed_over(snapshot: "Snapshot") -> "Snapshot":
    """With warnings on pods that are not planned for, by what keeps them out: whatever a command shows of files, it
    says what it leaves out of them."""
    from plimsoll.cluster.pods import passed_over_warnings

    found = passed_over_warnings(snapshot.pods, snapshot.environment.spec.demand)
    return snapshot.model_copy(update={"warnings": tuple(dict.fromkeys((*snapshot.warnings, *found)))})
