"""The output of `plimsoll queues`: the tree of queues as a table and as JSON."""

from typing import Any, Final

from rich.table import Table
from rich.text import Text

from plimsoll.cli.shared import OUT, print_table, print_warnings
from plimsoll.cluster.queues import MILLI, NOTHING, Amount, NextGpu, QueuedPod, QueueUsage, Resource
from plimsoll.model.kai import UNLIMITED
from plimsoll.text import shortlist

_COLUMNS: Final = {
    "quota": "quota",
    "limit": "limit",
    "fair share": "fairShare",
    "allocated": "allocated",
    "requested": "requested",
    "pending": "pending",
}
"""Heading to field of the JSON object."""


def as_json(usage: QueueUsage, following: NextGpu | None) -> dict[str, Any]:
    """`queues` with GPUs, millicores and MB (10^6 bytes), -1 for unlimited; `total`, and by node pool of
    KAI `totalByNodePool`, `next`, `warnings`."""
    return {
        "queues": [
            {
                "name": name,
                "parent": usage.tree.queue(name).parent,
                "nodePool": usage.tree.shard_of(name),
                "depth": depth,
                "leaf": usage.tree.is_leaf(name),
                "priority": usage.tree.priority(name),
                **{resource.value: _amounts(usage, name, resource) for resource in Resource},
            }
            for name, depth in usage.tree.nested()
        ],
        "total": _total(usage.total),
        "totalByNodePool": {pool: _total(amount) for pool, amount in usage.totals.items()},
        "next": next_as_json(following),
        "warnings": list(usage.warnings),
    }


def _total(amount: Amount) -> dict[str, float]:
    return {resource.value: float(amount[resource]) / MILLI for resource in Resource}


def print_tree(usage: QueueUsage, following: NextGpu | None) -> None:
    if not len(usage.tree):
        OUT.print("there are no Queues")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("GPUs of", no_wrap=True)
    sharded = any(map(usage.tree.shard_of, usage.tree))
    if sharded:
        table.add_column("node pool")
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    for name, depth in usage.tree.nested():
        amounts = _amounts(usage, name, Resource.GPU)
        broken = usage.tree.broken_at(name)
        table.add_row(
            Text("  " * depth + name, style="red" if broken else ""),
            *([usage.tree.shard_of(name)] if sharded else []),
            *("unlimited" if amounts[column] == UNLIMITED else f"{amounts[column]:g}" for column in _COLUMNS.values()),
        )
    print_table(table)
    OUT.print()
    broken_at = ((name, usage.tree.broken_at(name)) for name in usage.tree)
    print_warnings(f"Queue {name} is not in the tree: {broken}" for name, broken in broken_at if broken)
    print_warnings(usage.warnings)
    OUT.print(Text(next_line(following), style="bold"), soft_wrap=True)


def next_line(following: NextGpu | None) -> str:
    """Which queue gets the next GPU, and from which pods it would be reclaimed, in one sentence."""
    if following is None:
        return "no pending pod that its queue would admit"
    pod = following.pod
    head = f"next: {_gpus(pod)} for Queue {pod.queue} (Pod {pod.pod.namespace}/{pod.pod.name})"
    if following.free:
        return f"{head}, free now"
    if not following.victims:
        return f"{head}, with new capacity: nothing can be reclaimed for it"
    taken = [f"{pod.pod.namespace}/{pod.pod.name} of Queue {pod.queue}" for pod in following.victims]
    return f"{head}, with new capacity or reclaimed from {shortlist(taken)}"


def _amounts(usage: QueueUsage, name: str, resource: Resource) -> dict[str, float]:
    amounts = usage.tree.amounts(name, resource)
    allocated, pending = usage.allocated[name][resource], usage.waiting[name][resource]
    values = {
        "quota": amounts.quota,
        "limit": amounts.limit,
        "fairShare": usage.fair.get(name, NOTHING)[resource],
        "allocated": allocated,
        "allocatedNonPreemptible": usage.non_preemptible[name][resource],
        "requested": allocated + pending,
        "pending": pending,
    }
    return {"overQuotaWeight": amounts.weight} | {
        field: UNLIMITED if value is None else float(value) / MILLI for field, value in values.items()
    }


def next_as_json(following: NextGpu | None) -> dict[str, Any] | None:
    """The pod that would be placed next, whether its GPUs are free, and the pods that would be reclaimed for it."""
    if following is None:
        return None
    reclaimed = [_pod(each) for each in following.victims]
    return {**_pod(following.pod), "free": following.free, "reclaimed": reclaimed}


def _pod(each: QueuedPod) -> dict[str, Any]:
    pod = {"namespace": each.pod.namespace, "name": each.pod.name}
    return {"queue": each.queue, "pod": pod, "gpus": float(each.gpu_milli) / MILLI}


def _gpus(pod: QueuedPod) -> str:
    return f"{float(pod.gpu_milli) / MILLI:g} GPU" + ("s" if pod.gpu_milli > MILLI else "")
