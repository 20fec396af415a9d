"""Demands as a table and as JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Column, Table
from rich.text import Text

from plimsoll.cli.shared import OUT
from plimsoll.model.api import DemandPhase
from plimsoll.plan.demand import Demand, PlannedNode
from plimsoll.plan.pods import PodShare
from plimsoll.text import counted

Phases = Mapping[str, DemandPhase]
"""By name of the demand."""


def print_demands(found: Sequence[Demand], phases: Phases, warnings: Iterable[str]) -> None:
    table = Table(Column("DEMAND", overflow="fold"), "PHASE", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("PODS", "FREE", "GPUS", "BOUND", "REFUSED", "SEEN"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in found:
        free = sum(map(len, each.on_nodes.values()))
        table.add_row(
            each.name, phases[each.name].value, f"{len(each.pods)}", f"{free}", f"{each.gpus}",
            f"{each.packing.least}", f"{len(each.refused)}", f"{len(each.spoken_for)}",
        )  # fmt: skip
    if found:
        OUT.print(table)
        OUT.print(
            "FREE: pods that fit on free GPUs. GPUS: GPUs of new nodes. BOUND: lower bound of GPUS.\n"
            "SEEN: pods that request whole GPUs, which an autoscaler provisions without Plimsoll.\n",
            style="dim",
        )
    for each in found:
        for text in _nodes(each.nodes):
            OUT.print(Text.assemble(("  + ", "green"), text, (f"  ({each.name})", "dim")), soft_wrap=True)
        for why, count in Counter(each.refused.values()).most_common():
            OUT.print(Text.assemble(("  ! ", "red"), f"{counted(count, 'pod')}: {why}"), soft_wrap=True)
        for why in each.kept_out_reasons:
            OUT.print(Text.assemble(("  ! ", "red"), why), soft_wrap=True)
    for warning in dict.fromkeys((*warnings, *(warning for each in found for warning in each.warnings))):
        OUT.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
    OUT.print(Text(_summary(found), style="bold"))


def _nodes(nodes: Iterable[PlannedNode]) -> Iterable[str]:
    counts = Counter((node.instance_type, node.node_pool, node.gpus, node.kind) for node in nodes)
    for (name, pool, gpus, kind), count in counts.items():
        yield f"{count} x {name} with {gpus} x {kind}" + (f" of NodePool {pool}" if pool else "")


def _summary(found: Sequence[Demand]) -> str:
    if not any(each.pods or each.refused for each in found):
        seen = sum(len(each.spoken_for) for each in found)
        return "no demand" + (
            f"; {counted(seen, 'pod')} whose GPUs an autoscaler provisions without Plimsoll" if seen else ""
        )
    nodes = [node for each in found for node in each.nodes]
    return (
        f"{counted(sum(len(each.pods) for each in found), 'pod')} in {len(found)} {_classes(len(found))}: "
        f"{counted(len(nodes), 'node')} with {counted(sum(node.gpus for node in nodes), 'GPU')} to request"
    )


def as_json(found: Sequence[Demand], phases: Phases, warnings: Iterable[str]) -> dict[str, Any]:
    """`demands`, each with its pods, nodes and refusals; `warnings`."""
    return {"demands": [_demand(each, phases[each.name]) for each in found], "warnings": list(warnings)}


def _demand(demand: Demand, phase: DemandPhase) -> dict[str, Any]:
    placement = demand.of.placement
    return {
        "name": demand.name,
        "phase": phase.value,
        "queue": demand.of.queue,
        "scheduler": demand.of.scheduler,
        "nodeSelector": dict(placement.node_selector),
        "nodeAffinity": [[str(each) for each in term] for term in placement.affinity],
        "tolerations": [each.model_dump(mode="json", exclude_defaults=True) for each in placement.tolerations],
        "pods": [_pod(uid, each) for uid, each in demand.pods.items()],
        "gpus": demand.gpus,
        "leastGpus": demand.packing.least,
        "lowerBound": round(demand.packing.lower_bound, 6),
        "gap": demand.packing.gap,
        "nodes": [_node(each) for each in demand.nodes],
        "onPromises": {name: list(uids) for name, uids in demand.on_promises.items()},
        "onNodes": {name: list(uids) for name, uids in demand.on_nodes.items()},
        "refused": dict(demand.refused),
        "blocked": demand.blocked,
        "spokenFor": [_pod(uid, each) for uid, each in demand.spoken_for.items()],
        "keptOut": dict(demand.kept_out),
        "warnings": list(demand.warnings),
    }


def _pod(uid: str, each: PodShare) -> dict[str, Any]:
    share = each.share
    asked = {"milli": share.milli} if share.milli is not None else {"memoryMib": share.memory_mib}
    return {"uid": uid, "namespace": each.pod.namespace, "name": each.pod.name, "devices": share.devices, **asked}


def _node(node: PlannedNode) -> dict[str, Any]:
    return {
        "nodePool": node.node_pool,
        "instanceType": node.instance_type,
        "alternatives": list(node.alternatives),
        "gpus": node.gpus,
        "product": node.kind,
        "held": [list(held) for held in node.held],
        "cpuMilli": node.cpu_milli,
        "memoryMib": node.memory_mib,
    }


def _classes(count: int) -> str:
    return "class" if count == 1 else "classes"
