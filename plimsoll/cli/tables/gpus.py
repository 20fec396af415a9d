"""The ledger of GPUs as text and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from rich import box
from rich.table import Table

from plimsoll.cli.shared import OUT, print_table
from plimsoll.cluster.ledger import GpuAccount, GpuGroup, OtherAccelerators
from plimsoll.model.kai import shareable_memory_mib
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.text import counted


def as_json(accounts: Sequence[GpuAccount], others: Sequence[OtherAccelerators] = ()) -> dict[str, Any]:
    """Memory in MiB, fractions of GPUs in thousandths."""
    return {
        "nodes": [_node(account) for account in accounts],
        "otherAccelerators": [{**each._asdict(), "free": each.free} for each in others],
    }


def _node(account: GpuAccount) -> dict[str, Any]:
    return {
        "name": account.node.name,
        "product": account.kind,
        "driver": account.driver,
        "vendor": account.device.vendor,
        "resource": account.vendor_resource,
        "gpus": account.gpus,
        "memoryMiB": None if account.memory_mib is None else shareable_memory_mib(account.memory_mib),
        "shareable": account.shareable,
        "groups": [_group(group) for group in account.groups],
        "wholeGPUs": account.whole,
        "releasingWholeGPUs": account.releasing_whole,
        "freeGPUs": account.free_gpus,
        "pods": list(account.users),
        "freeMilli": [_number(free) for free in account.free_milli],
        "devices": [{**each._asdict(), "free": each.free} for each in account.devices],
        "claims": [{"claim": name, "pods": list(pods), "devices": devices} for name, pods, devices in account.claims],
        "sharedDevices": [
            {
                "device": each.device,
                "freeMilli": _number(each.free),
                "claims": [{"claim": name, "milli": _number(milli)} for name, milli in each.claims],
            }
            for each in account.shared
        ],
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
    """One line for each GPU group, one for each claim, one for whole GPUs, one for each resource of parts of GPUs; then
    the discrepancies."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("NODE", "PRODUCT", "GPU", "USED", "FREE", "PODS"):
        table.add_column(title, overflow="fold")
    for account in accounts:
        by = f" ({account.driver})" if account.driver else ""
        node = (account.node.name, f"{account.kind or '?'}{by}")
        for row in _rows(account):
            table.add_row(*node, *row)
            node = ("", "")
    if table.row_count:
        print_table(table)
    elif not accounts:
        OUT.print("no node has allocatable GPUs (status.allocatable)")
    for account in accounts:
        for each in account.discrepancies:
            OUT.print(f"{each.node}: {each.reason.value}: {each.message}", highlight=False, style="yellow")


def print_others(others: Sequence[OtherAccelerators]) -> None:
    """One line for each resource of other vendors on a node; nothing where there are none."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("NODE", "OTHER ACCELERATORS", "USED", "FREE", "PODS"):
        table.add_column(title, overflow="fold")
    for each in others:
        what = f"{each.allocatable} {each.resource}" + (f" ({each.product})" if each.product else "")
        table.add_row(each.node, what, str(each.used), str(each.free), "\n".join(each.pods))
    if table.row_count:
        print_table(table)


def _rows(account: GpuAccount) -> Iterator[tuple[str, str, str, str]]:
    """What the GPU or the resource is, what of it is used and free, and its pods."""
    for group in account.groups:
        memory = f", {group.used_mib} MiB" if group.used_mib is not None else ""
        releasing = " (releasing)" if group.releasing else ""
        used = f"{float(group.used_milli) / GPU_MILLI:.3g}{memory}{releasing}"
        free = f"{float(group.free_milli) / GPU_MILLI:.3g}"
        yield group.gpu or f"group {group.name}", used, free, "\n".join(group.pods)
    claimed, of_claims = 0, dict[str, str]()
    for name, pods, devices in account.claims:
        claimed += devices
        namespace = name.partition("/")[0]
        of_claims[name] = "\n".join(f"{namespace}/{pod}" for pod in pods)
        if devices:
            yield f"claim {name}", str(devices), "0", of_claims[name]
    for shared in account.shared:
        left = float(shared.free) / GPU_MILLI
        users = filter(None, (of_claims.get(name, "") for name, _ in shared.claims))
        yield shared.device, f"{1 - left:.3g}", f"{left:.3g}", "\n".join(users)
    if used_whole := max(0, account.whole - claimed):
        yield _counted(used_whole, account, "used"), str(used_whole), "0", "\n".join(account.users)
    if account.free_gpus:
        yield _counted(account.free_gpus, account, "free"), "0", str(account.free_gpus), ""
    for parts in account.devices:
        name = f"{parts.allocatable} {parts.resource.rpartition('/')[2]}"
        yield name, str(parts.used), str(parts.free), "\n".join(parts.pods)


def _counted(number: int, account: GpuAccount, state: Literal["used", "free"]) -> str:
    """`3 whole`, `1 free`; `1 device used`, `2 devices free`; `3 amd.com/gpu`, `1 amd.com/gpu free`"""
    if account.vendor_resource:
        return f"{number} {account.vendor_resource}" + (" free" if state == "free" else "")
    if account.shareable:
        return f"{number} {'whole' if state == 'used' else state}"
    return f"{counted(number, 'device')} {state}"


def _number(milli: Milli) -> int | float:
    return milli if isinstance(milli, int) else round(float(milli), 3)
