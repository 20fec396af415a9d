"""`plimsoll import kaito`: converts KAITO's manifests, and names each field that is lost."""

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from plimsoll.cli.shared import ERR, REFUSED, SETTLED, print_json
from plimsoll.kaito import Conversion, convert
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
    files: Annotated[list[str], typer.Argument(metavar="FILE_OR_DIR...", help="manifests; - is standard input")],
    output: Annotated[Written, typer.Option("--output", "-o", help="output format")] = Written.YAML,
) -> None:
    """Convert KAITO's Workspaces and InferenceSets (kaito.sh/v1beta1, v1alpha1), to standard output.

    Standard error names each field that is lost. Exit code 0: converted; 2: a field is refused; 1: an invalid file.
    """
    from plimsoll.observe.files import ManifestError, objects_of, read_documents, tool_file

    found: list[Conversion] = []
    skipped = 0
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
    _print_summary(found, skipped)
    _write([each.workspace for each in found if each.workspace is not None], output)
    raise typer.Exit(REFUSED if any(each.losses.refused for each in found) else SETTLED)


def _print_summary(found: list[Conversion], skipped: int) -> None:
    for each in found:
        for loss in each.losses.found:
            label, style = ("refused", "bold red") if loss.refused else ("warning", "yellow")
            ERR.print(f"{label}: {each.source}: {loss}", style=style, highlight=False, soft_wrap=True)
    if skipped:
        ERR.print(f"warning: {counted(skipped, 'object')} of other API groups skipped", style="yellow", soft_wrap=True)


def _write(manifests: list[dict[str, Any]], output: Written) -> None:
    if output is Written.JSON:
        one = len(manifests) == 1
        print_json(manifests[0] if one else {"apiVersion": "v1", "kind": "List", "items": manifests})
    elif manifests:
        sys.stdout.write("---\n".join(write_yaml(each, width=120) for each in manifests))
