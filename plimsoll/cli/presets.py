"""`plimsoll presets`: the models that are known by name, and the catalog from KAITO's file."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from plimsoll.cli.shared import Format, Output, only_without, print_document, print_table
from plimsoll.errors import PlimsollError
from plimsoll.presets import InvalidPresetsError, ModelCatalog, as_csv, from_kaito

app = typer.Typer(add_completion=False)


@app.command()
def command(
    ctx: typer.Context,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="read KAITO's model_catalog.yaml, and print it as the catalog (CSV)"),
    ] = None,
    output: Output = Format.TEXT,
) -> None:
    """List the models that are known by name. With --from, refresh the catalog from KAITO's file instead.

    `plimsoll presets --from model_catalog.yaml > plimsoll/presets/catalog.csv` replaces the built-in catalog.
    """
    only_without(ctx, "source", "output")
    if source is not None:
        try:
            text = source.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PlimsollError(f"{source}: {error}", "give KAITO's model_catalog.yaml") from None
        try:
            models = from_kaito(text)
        except InvalidPresetsError as error:
            raise PlimsollError(f"{source}: {error.message}", error.hint) from None
        typer.echo(as_csv(models), nl=False)
        return
    presets = ModelCatalog.builtin().presets
    if output.document:
        print_document(
            [
                {
                    "name": each.name,
                    "aliases": each.aliases,
                    "repository": each.repository,
                    "size_gib": each.size_gib,
                    "bytes_per_token": each.bytes_per_token,
                    "context_limit": each.context_limit,
                    "spans_nodes": each.spans_nodes,
                    "gated": each.gated,
                    "source": each.source,
                }
                for each in presets
            ],
            output,
        )
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column("preset", no_wrap=True)
    for column in ("GiB", "context", "heads", "KV heads"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for each in presets:
        shape, notes = each.shape, "gated" if each.gated else "" if each.spans_nodes else "one node"
        table.add_row(
            each.name, f"{each.size_gib:.1f}", str(each.context_limit), str(shape.heads), str(shape.kv_heads), notes
        )
    print_table(table, highlight=False)
