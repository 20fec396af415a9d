"""`plimsoll adopt`: writes the stack file that takes over a cluster's NodePools, NodeProfiles, Queues, classes of
devices, templates of claims and KAITO Workspaces."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from plimsoll.cli.shared import ERR, OUT, REFUSED, SETTLED, Context, Kubeconfig
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr
from plimsoll.text import counted
from plimsoll.yaml_text import problem_of, write_yaml

app = typer.Typer(add_completion=False)

_KINDS = (
    ("karpenter.sh", "nodepools", "NodePool"),
    ("plimsoll.dev", "nodeprofiles", "NodeProfile"),
    ("scheduling.run.ai", "queues", "Queue"),
    ("resource.k8s.io", "deviceclasses", "DeviceClass"),
    ("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    ("kaito.sh", "workspaces", "Workspace"),
)

_FIELD_MANAGER = "pulumi.com/patchFieldManager"
"""Annotation of what a stack has made."""


@app.command()
def adopt(
    folder: Annotated[Path, typer.Argument(help="folder of a Pulumi project, as `plimsoll init` writes it")],
    stack: Annotated[str, typer.Option(help="stack whose file is written")] = "objects",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the stack's file.")] = False,
) -> None:
    """Write a stack file that imports the cluster's NodePools, NodeProfiles, Queues, DeviceClasses,
    ResourceClaimTemplates and KAITO Workspaces.

    The first `pulumi up` of the stack imports the objects and does not change them. This command only reads the
    cluster. Exit code 2: an object is omitted because it has a field that stacks do not support; the field is named.
    """
    from plimsoll.kube import Connection
    from plimsoll.project import adopt as settings_of
    from plimsoll.project import write_project

    log_to_stderr()
    stacks = _stack_folder(folder)
    with closing(Connection.open(kubeconfig, context)) as connection:
        found = of_no_stack(adoptable_of(connection))
    adoption = settings_of(found)
    if adoption == ({}, []):
        what = "NodePools, declared NodeProfiles, Queues, DeviceClasses, ResourceClaimTemplates or KAITO Workspaces"
        raise PlimsollError("nothing to adopt", f"the cluster has no other {what}")
    config = {"layer": "objects", **adoption.settings}
    text = write_yaml({"config": config})
    path = f"{stacks}Pulumi.{stack}.yaml"
    write_project(folder, {path: text}, replace=force)
    counts = ", ".join(f"{counted(len(objects), 'object')} under {name}" for name, objects in adoption.settings.items())
    OUT.print(f"wrote {folder / path}: {counts}", highlight=False, soft_wrap=True)
    for line in adoption.left_out:
        ERR.print(f"omitted: {line}", style="yellow", soft_wrap=True)
    raise typer.Exit(REFUSED if adoption.left_out else SETTLED)


def adoptable_of(connection: Any, *, any_rights: bool = False) -> list[dict[str, Any]]:
    """The objects of a cluster that a stack may adopt. With `any_rights`, kinds that the account may not list are left
    out, and named on standard error; else they raise RequestError."""
    return [manifest for kind in _KINDS for manifest in _listed(connection, *kind, any_rights=any_rights)]


def of_no_stack(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that no Pulumi stack has made; the others are counted on standard error."""
    found = [each for each in manifests if _FIELD_MANAGER not in (each["metadata"].get("annotations") or {})]
    if left := len(manifests) - len(found):
        ERR.print(f"skipped: {counted(left, 'object')} of Pulumi stacks", soft_wrap=True)
    return found


def adoptable_in(files: list[str]) -> list[dict[str, Any]]:
    """Those in files."""
    from plimsoll.observe.files import objects_of, read_documents

    kinds = {(group, kind) for group, _, kind in _KINDS}
    return [
        manifest
        for document in read_documents(files)
        for _, manifest in objects_of(document)
        if (str(manifest.get("apiVersion")).partition("/")[0], manifest.get("kind")) in kinds
        and manifest.get("metadata", {}).get("name")
    ]


def _stack_folder(folder: Path) -> str:
    configured = _settings(folder).get("stackConfigDir")
    return f"{configured}/" if configured else ""


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / "Pulumi.yaml"
    try:
        settings = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = problem_of(error) if isinstance(error, yaml.YAMLError) else getattr(error, "strerror", None) or error
        raise PlimsollError(f"{path}: {why}", "write a project with `plimsoll init` first") from None
    if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
        raise PlimsollError(f"{path}: has no name", "add the field name, such as name: gpu-capacity")
    return settings


def _listed(connection: Any, group: str, plural: str, kind: str, *, any_rights: bool) -> list[dict[str, Any]]:
    """Objects of a kind in the version that the cluster prefers; none where it does not serve the group."""
    from plimsoll.kube import RequestError

    try:
        version = connection.request("GET", f"/apis/{group}")["preferredVersion"]["groupVersion"]
        items = connection.list_items(f"/apis/{version}/{plural}", retry_throttled=True)
        return [{**item, "apiVersion": version, "kind": kind} for item in items]
    except RequestError as error:
        if error.code == 404:
            return []
        if error.code == 403 and any_rights:
            what = f"warning: the account may not list {plural} ({group}): the stack file has none"
            ERR.print(what, style="yellow", soft_wrap=True)
            return []
        raise
