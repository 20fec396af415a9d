"""What a cloud's API says of the types of the built-in table: how the table is refreshed."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from plimsoll.cluster.catalog.catalog import Catalog
from plimsoll.model.cluster import InstanceType

_COMPARED: Final = (
    "gpus",
    "vcpus",
    "memory_mib",
    "arch",
    "disk_gib",
    "max_pods",
    "api_gpu_name",
    "api_gpu_memory_mib",
    "karpenter_gpus",
)
"""Columns of the table that the API reports. Labels and the memory that the driver reports are not among them."""


class Changed(NamedTuple):
    """A figure of a type that the API has otherwise."""

    name: str
    column: str
    table: str
    live: str


class Comparison(NamedTuple):
    changed: tuple[Changed, ...] = ()
    missing: tuple[str, ...] = ()
    """Types with NVIDIA GPUs that the table lacks."""
    not_here: tuple[str, ...] = ()
    """Types of the table that the region does not have, and that are not retired."""

    @property
    def same(self) -> bool:
        """Whether the table needs no change; no region has every type."""
        return not self.changed and not self.missing


def compare_table(
    live: Iterable[InstanceType], region: str, prices: Mapping[str, float] | None = None, currency: str = ""
) -> Comparison:
    """The table's types of AWS with those of the API; `prices` are those of the region's list, of which the table has
    the types whose list price is of that region."""
    table = {each.name: each for each in Catalog.builtin().types if each.cloud == "aws" and each.nvidia}
    found = {each.name: each for each in live if each.nvidia}
    changed = [
        Changed(name, column, str(getattr(table[name], column)), str(getattr(found[name], column)))
        for name in sorted(found.keys() & table.keys())
        for column in _COMPARED
        if getattr(table[name], column) != getattr(found[name], column)
    ]
    for name, price in sorted((prices or {}).items()):
        listed = table[name].list_price if name in table else None
        if listed is not None and (listed.region, listed.currency) == (region, currency) and listed.amount != price:
            changed.append(Changed(name, "price", f"{listed.amount:g} ({listed.date})", f"{price:g}"))
    return Comparison(
        tuple(changed),
        tuple(sorted(found.keys() - table.keys())),
        tuple(sorted(name for name, each in table.items() if name not in found and not each.retired)),
    )
