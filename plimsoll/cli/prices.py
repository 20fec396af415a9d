"""`plimsoll prices`: AWS's price list, or a table, as the prices of an Environment."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from plimsoll.cli.shared import ERR, Format, Output, only_with, print_document, print_table
from plimsoll.errors import PlimsollError

app = typer.Typer(add_completion=False)


@app.command()
def command(
    ctx: typer.Context,
    aws_region: Annotated[
        str | None,
        typer.Option(help="read the on-demand prices of this region's GPU instance types from the AWS Price List"),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="include types that the built-in catalog lacks, for Environments with `awsRegion`"),
    ] = False,
    table: Annotated[
        Path | None,
        typer.Option("--from", help="CSV file with name,price_per_hour; its prices take precedence"),
    ] = None,
    output: Output = Format.TEXT,
) -> None:
    """Print prices of instance types; with --output yaml, as `catalog.prices` of an Environment. Nothing is changed."""
    if aws_region is None and table is None:
        raise PlimsollError("no source is given", "set --aws-region, --from, or both")
    only_with(ctx, "aws_region", "every")
    catalog: dict[str, Any] = {}
    prices: dict[str, float] = {}
    if aws_region is not None:
        from plimsoll.cluster.catalog import Catalog
        from plimsoll.observe.ec2_prices import ec2_prices

        found = ec2_prices(aws_region)
        known = {each.name.casefold() for each in Catalog.builtin().types}
        prices = {name: price for name, price in found.prices.items() if every or name in known}
        catalog = {"currency": found.currency}
        summary = f"{len(prices)} of {len(found.prices)} instance types in {found.region}"
        ERR.print(f"{summary}, on demand, in {found.currency}", highlight=False)
    if table is not None:
        from plimsoll.observe.files import read_prices

        prices |= read_prices(table)
    if output.document:
        print_document({"catalog": {**catalog, "prices": prices}}, output)
        return
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("instance type", no_wrap=True)
    shown.add_column("an hour", justify="right", no_wrap=True)
    for name, price in sorted(prices.items(), key=lambda each: (each[1], each[0])):
        shown.add_row(name, f"{price:,.4f}")
    print_table(shown, highlight=False)
