"""`plimsoll import`: converts KAITO's manifests, and pods that share GPUs by KAI's annotations, and names each field
that is lost."""

import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from plimsoll.cli.shared import ERR, REFUSED, SETTLED, Files, Paths, print_json, required_files
from plimsoll.errors import PlimsollError
from plimsoll.kaito import Conversion, Losses, convert
from plimsoll.text import counted
from plimsoll.yaml_text import write_yaml

app = typer.Typer(add_completion=False)


class Written(StrEnum):
    YAML = "yaml"
    JSON = "json"


@app.callback()
def _import() -> None:
    """Convert manifests of other systems to Plimsoll's."""


@app.command(short_help="Convert KAITO's Workspaces and InferenceSets.")
def kaito(
    paths: Paths = None,
    file: Files = None,
    output: Annotated[Written, typer.Option("--output", "-o", help="output format")] = Written.YAML,
) -> None:
    """Convert KAITO's Workspaces and InferenceSets (kaito.sh/v1beta1, v1alpha1), to standard output.

    Standard error names each field that is lost. Exit code 0: converted; 2: a field is refused; 1: an invalid file.
    """
    from plimsoll.observe.files import ManifestError, objects_of, read_documents, tool_file

    found: list[Conversion] = []
    skipped = 0
    files = required_files(paths, file)
    for document in read_documents(files):
        if tool_file(document):
            skipped += 1
            continue
        for place, manifest in objects_of(document):
            version = manifest.get("apiVersion")
            if not isinstance(version, str) or not isinstance(manifest.get("kind"), str):
                raise ManifestError(f"{place}: apiVersion and kind are required")
            if version.startswith("kaito.sh/"):
                found.append(convert(manifest))
            else:
                skipped += 1
    if not found:
        raise ManifestError(
            f"{', '.join(files)}: no objects of kaito.sh", "only Workspaces and InferenceSets are converted"
        )
    _print_losses((each.source, each.losses) for each in found)
    if skipped:
        ERR.print(f"warning: {counted(skipped, 'object')} of other API groups skipped", style="yellow", soft_wrap=True)
    _write([each.workspace for each in found if each.workspace is not None], output)
    raise typer.Exit(REFUSED if any(each.losses.refused for each in found) else SETTLED)


@app.command(short_help="Rewrite pods that share GPUs by KAI's annotations to claims.")
def kai(  # noqa: PLR0917 - options of a command, each given by name
    paths: Paths = None,
    file: Files = None,
    claims: Annotated[
        bool, typer.Option("--to-claims", help="to claims of NVIDIA's driver (Dynamic Resource Allocation); required")
    ] = False,
    consumable_shares: Annotated[
        str,
        typer.Option(help="consumableShares of the driver: memory, unlimited, disabled, or a number of shares"),
    ] = "memory",
    gpu_memory: Annotated[
        str | None, typer.Option(help="memory of one GPU, such as 80Gi, for fractions where the driver divides memory")
    ] = None,
    output: Annotated[Written, typer.Option("--output", "-o", help="output format")] = Written.YAML,
) -> None:
    """Rewrite pods with GPU shares by KAI's annotations, or with whole GPUs, to claims, to standard output.

    The other objects are printed as they are, so that the output takes the place of the files. Standard error names
    what is lost. Exit code 0: rewritten; 2: something is refused and printed as it was; 1: an invalid file.
    """
    from plimsoll.kai import Sharing, to_claims

    if not claims:
        raise PlimsollError("import kai needs --to-claims", "set it: shares can be rewritten to claims only")
    sharing = Sharing.of(consumable_shares, gpu_memory)
    found = to_claims(_objects(required_files(paths, file)), sharing)
    _print_losses((each.source, each.losses) for each in found)
    _write([manifest for each in found for manifest in each.manifests], output)
    raise typer.Exit(REFUSED if any(each.losses.refused for each in found) else SETTLED)


def _objects(files: list[str]) -> Iterator[dict[str, Any]]:
    """The objects of files. Raises ManifestError."""
    from plimsoll.observe.files import ManifestError, objects_of, read_documents

    for document in read_documents(files):
        for place, manifest in objects_of(document):
            if not isinstance(manifest.get("apiVersion"), str) or not isinstance(manifest.get("kind"), str):
                raise ManifestError(f"{place}: apiVersion and kind are required")
            yield manifest


def _print_losses(found: Iterable[tuple[str, Losses]]) -> None:
    for source, losses in found:
        for loss in losses.found:
            label, style = ("refused", "bold red") if loss.refused else ("warning", "yellow")
            ERR.print(f"{label}: {source}: {loss}", style=style, highlight=False, soft_wrap=True)


def _write(manifests: list[dict[str, Any]], output: Written) -> None:
    if output is Written.JSON:
        one = len(manifests) == 1
        print_json(manifests[0] if one else {"apiVersion": "v1", "kind": "List", "items": manifests})
    elif manifests:
        sys.stdout.write("---\n".join(write_yaml(each, width=120) for each in manifests))
