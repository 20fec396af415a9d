"""The built-in tables: instance types, and the names of types without NVIDIA GPUs.

`docs/reference/catalog.md` says where each column is from, and how the table is refreshed.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

from plimsoll.model.cluster import Evidence, InstanceType, ListPrice


@cache
def builtin_types() -> tuple[InstanceType, ...]:
    """The types of `instance_types.csv`."""
    return tuple(_read(row) for row in _rows("instance_types.csv"))


@cache
def other_vendors() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Names of families, as clouds form them, and their accelerators."""
    return tuple((re.compile(row["pattern"], re.IGNORECASE), row["product"]) for row in _rows("other_vendors.csv"))


def _rows(table: str) -> Iterator[dict[str, str]]:
    text = resources.files("plimsoll.cluster.catalog").joinpath(table).read_text("utf-8")
    yield from csv.DictReader(text.splitlines())


def _read(row: Mapping[str, str]) -> InstanceType:
    return InstanceType(
        name=row["name"],
        cloud=row["cloud"],
        gpus=int(row["gpus"]),
        gpu_memory_mib=_number(row["gpu_memory_mib"]),
        product=row["product"],
        product_source=Evidence(row["product_source"]),
        memory_source=Evidence(row["memory_source"]),
        compute_capability=row["compute_capability"],
        family=row["family"],
        vcpus=_number(row["vcpus"]),
        memory_mib=_number(row["memory_mib"]),
        arch=row["arch"],
        disk_gib=float(row["disk_gib"]) if row["disk_gib"] else None,
        max_pods=_number(row["max_pods"]),
        api_gpu_name=row["api_gpu_name"],
        api_gpu_memory_mib=_number(row["api_gpu_memory_mib"]),
        karpenter_gpus=_number(row["karpenter_gpus"]),
        retired=row["retired"] == "yes",
        list_price=_price(row),
        note=row["note"],
    )


def _price(row: Mapping[str, str]) -> ListPrice | None:
    return ListPrice(float(row["price"]), row["currency"], row["region"], row["price_date"]) if row["price"] else None


def _number(text: str) -> int | None:
    return int(text) if text else None
