"""The ledger of GPUs as text and as JSON."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from plimsoll.cli.shared import OUT, print_table
from plimsoll.cluster.ledger import GpuAccount, GpuGroup
from plimsoll.model.kai import shareable_memory_mib
from plimsoll.packing import GPU_MILLI, Milli


def as_json(accounts: Sequence[GpuAccount]) -> dict[str, Any]:
    """Memory in MiB, fractions of GPUs in thousandths."""
    return {"nodes": [_node(account) for account in accounts]}


def _node(account: GpuAccount) -> dict[str, Any]:
    return {
        "name": account.node.name,
        "product": account.kind,
        "gpus": account.gpus,
        "memoryMiB": None if account.memory_mib is None else shareable_memory_mib(account.memory_mib),
        "shareable": account.shareable,
        "groups": [_group(group) for group in account.groups],
        "wholeGPUs": account.whole,
        "releasingWholeGPUs": account.releasing_whole,
        "freeGPUs": account.free_gpus,
        "freeMilli": [_number(free) for free in account.free_milli],
        "devices": [{**each._asdict(), "free": each.free} for each in account.devices],
        "discrepancies": [{"reason": each.reason.value, "message": each.message} for each in account.discrepancies],
    }


def _group(group: GpuGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "gpu": group.gpu or None,
        "reservations": list(group.reservations),
        "pods": list(group.pods),
        "usedMiB": group.used_mib,
        "allocatedMiB": group.used_mib,
        "releasingMiB": group.releasing_mib,
        "usedMilli": _number(group.used_milli),
        "freeMilli": _number(group.free_milli),
        "releasing": group.releasing,
    }


def print_ledger(accounts: Sequence[GpuAccount]) -> None:
    """One line for each GPU group, one for whole GPUs, one for each resource of parts of GPUs; then the
    discrepancies."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("NODE", "PRODUCT", "GPU", "USED", "FREE", "PODS"):
        table.add_column(title, overflow="fold")
    for account in accounts:
        node, product = account.node.name, account.kind or "?"
        for group in account.groups:
            memory = f", {group.used_mib} MiB" if group.used_mib is not None else ""
            releasing = " (releasing)" if group.releasing else ""
            used = f"{float(group.used_milli) / GPU_MILLI:.3g}{memory}{releasing}"
            free = f"{float(group.free_milli) / GPU_MILLI:.3g}"
            table.add_row(node, product, group.gpu or f"group {group.name}", used, free, "\n".join(group.pods))
            node = product = ""
        whole, free = ("whole", "free") if account.shareable else ("devices used", "devices free")
        if account.whole:
            table.add_row(node, product, f"{account.whole} {whole}", str(account.whole), "0", "")
            node = product = ""
        if account.free_gpus:
            table.add_row(node, product, f"{account.free_gpus} {free}", "0", str(account.free_gpus), "")
            node = product = ""
        for parts in account.devices:
            name = f"{parts.allocatable} {parts.resource.rpartition('/')[2]}"
            table.add_row(node, product, name, str(parts.used), str(parts.free), "\n".join(parts.pods))
            node = product = ""
    if table.row_count:
        print_table(table)
    elif not accounts:
        OUT.print("no node has allocatable GPUs (status.allocatable)")
    for account in accounts:
        for each in account.discrepancies:
            OUT.print(f"{each.node}: {each.reason.value}: {each.message}", highlight=False, style="yellow")


def _number(milli: Milli) -> int | float:
    return milli if isinstance(milli, int) else round(float(milli), 3)
