"""`plimsoll catalog`: the built-in instance types, and what a cloud's API says of them."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from plimsoll.cli.shared import OUT, REFUSED, Format, Output, print_document, print_table, print_warnings
from plimsoll.cluster.catalog import Catalog, UnknownInstanceTypeError, compare_table
from plimsoll.cost import Prices
from plimsoll.model.cluster import MIB_PER_GIB, InstanceType
from plimsoll.text import counted, shortlist

app = typer.Typer(add_completion=False)


@app.command("list")
def list_types(
    names: Annotated[list[str] | None, typer.Argument(metavar="[TYPE]...", help="these types only")] = None,
    cloud: Annotated[str | None, typer.Option(help="types of this cloud only: aws, azure, gcp, arc")] = None,
    output: Output = Format.TEXT,
) -> None:
    """List the instance types of the built-in table, with how each figure is known and the list price."""
    catalog = Catalog.builtin()
    types = [_known(catalog, name) for name in names] if names else catalog.types
    shown = [each for each in types if cloud is None or each.cloud == cloud.casefold()]
    if output.document:
        print_document({"types": [_as_object(each) for each in shown]}, output)
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column in ("type", "cloud", "GPUs"):
        table.add_column(column, overflow="fold")
    for column in ("vCPUs", "GiB", "disk GiB", "an hour"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in shown:
        memory = "" if each.memory_mib is None else f"{each.memory_mib / MIB_PER_GIB:g}"
        disk = "" if each.disk_gib is None else f"{each.disk_gib:g}"
        price = "" if each.list_price is None else f"{each.list_price.amount:,.4f}"
        table.add_row(each.name, each.cloud, each.describe_gpus(), str(each.vcpus or ""), memory, disk, price)
    print_table(table, highlight=False)
    _say(str(Prices.of_types(shown, None).basis(each.name for each in shown)))
    for each in shown if names else ():
        if each.note:
            _say(f"{each.name}: {each.note}")


def _as_object(kind: InstanceType) -> dict[str, Any]:
    columns = asdict(kind) | {"resource": kind.resource}
    del columns["announced"]  # by nodes, of which the table knows nothing
    return columns


def _known(catalog: Catalog, name: str) -> InstanceType:
    found = catalog.lookup(name)
    if found is None:
        raise UnknownInstanceTypeError(name, catalog.near(name))
    return found


@app.command()
def check(
    aws_region: Annotated[str, typer.Option(help="ask the EC2 API of this region (ec2:DescribeInstanceTypes)")],
    prices: Annotated[
        bool, typer.Option("--prices", help="compare prices with the AWS Price List, too (pricing:GetProducts)")
    ] = False,
    output: Output = Format.TEXT,
) -> None:
    """Compare the built-in table with what AWS reports now; nothing is changed.

    Exit code 0: it is the same; 2: it differs; 1: an error.
    """
    from plimsoll import home
    from plimsoll.observe.ec2 import ec2_types
    from plimsoll.observe.ec2_prices import ec2_prices

    live = ec2_types(home.instance_types(), datetime.now(UTC), aws_region, timedelta(0))
    listed = ec2_prices(aws_region) if prices else None
    found = compare_table(
        live.types,
        live.region,
        None if listed is None else listed.prices,
        "" if listed is None else listed.currency,
    )
    if output.document:
        document: dict[str, Any] = {
            "region": live.region,
            "changed": [each._asdict() for each in found.changed],
            "missing": list(found.missing),
            "notHere": list(found.not_here),
            "warnings": list(live.warnings),
        }
        print_document(document, output)
    else:
        print_warnings(live.warnings)
        for each in found.changed:
            _say(f"{each.name}: {each.column} is {each.table} in the table, {each.live} in {live.region}")
        for name in found.missing:
            _say(f"{name}: not in the table")
        if found.not_here:
            _say(f"not in {live.region}: {shortlist(found.not_here)}")
        differing = len({each.name for each in found.changed}) + len(found.missing)
        _say(f"{counted(differing, 'type')} of {len(live.types)} to change in the table")
    if not found.same:
        raise typer.Exit(REFUSED)


def _say(text: str) -> None:
    OUT.print(text, highlight=False, soft_wrap=True)
