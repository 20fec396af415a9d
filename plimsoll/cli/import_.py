"""`plimsoll import kaito`: KAITO's manifests as ours, with each loss by name."""

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml

from plimsoll.cli.shared import ERR, REFUSED, SETTLED, print_json
from plimsoll.kaito import Conversion, convert
from plimsoll.text import counted

app = typer.Typer(add_completion=False)


class Written(StrEnum):
    YAML = "yaml"
    JSON = "json"


@app.callback()
def _import() -> None:
    """Manifests of other systems as ours."""


@app.command()
def kaito(
    files: Annotated[list[str], typer.Argument(metavar="FILE_OR_DIR...", help="manifests; - is standard input")],
    output: Annotated[Written, typer.Option("--output", "-o", help="how the Workspaces are written")] = Written.YAML,
) -> None:
    """KAITO's Workspaces and InferenceSets (kaito.sh/v1beta1, v1alpha1) as Workspaces of ours, on standard output.

    Each loss is named on standard error. Exit codes: 0 converted, 2 something is refused by name, 1 a bad file.
    """
    from plimsoll.observe.files import ManifestError, objects_of, read_documents

    found: list[Conversion] = []
    passed_over = 0
    for document in read_documents(files):
        for place, manifest in objects_of(document):
            version = manifest.get("apiVersion")
            if not isinstance(version, str) or not isinstance(manifest.get("kind"), str):
                raise ManifestError(f"{place}: apiVersion and kind are needed")
            if version.startswith("kaito.sh/"):
                found.append(convert(manifest))
            else:
                passed_over += 1
    if not found:
        raise ManifestError(
            f"{', '.join(files)}: no objects of kaito.sh there", "Workspaces and InferenceSets are read"
        )
    _tell(found, passed_over)
    _write([each.workspace for each in found if each.workspace is not None], output)
    raise typer.Exit(REFUSED if any(each.losses.refused for each in found) else SETTLED)


def _tell(found: list[Conversion], passed_over: int) -> None:
    for each in found:
        for loss in each.losses.found:
            label, style = ("refused", "bold red") if loss.refused else ("warning", "yellow")
            ERR.print(f"{label}: {each.source}: {loss}", style=style, markup=False, highlight=False, soft_wrap=True)
    if passed_over:
        ERR.print(
            f"warning: {counted(passed_over, 'object')} of other groups passed over", style="yellow", soft_wrap=True
        )


def _write(manifests: list[dict[str, Any]], output: Written) -> None:
    if output is Written.JSON:
        one = len(manifests) == 1
        print_json(manifests[0] if one else {"apiVersion": "v1", "kind": "List", "items": manifests})
    elif manifests:
        yaml.safe_dump_all(manifests, sys.stdout, sort_keys=False, width=120)
