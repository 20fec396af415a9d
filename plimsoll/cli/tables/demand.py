"""Demands as a table and as JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich import box
from rich.table import Column, Table
from rich.text import Text

from plimsoll.cli.shared import OUT, print_table, print_warnings
from plimsoll.cluster.pods import PodShare
from plimsoll.cost import PlannedCost
from plimsoll.explaining import pods_by_reason
from plimsoll.model.api import DemandPhase, GPUDemandStatus
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.plan.demand import Demand, DemandPlan, PlannedNode
from plimsoll.text import counted, figure, shortlist

UNKNOWN_COST: Final = PlannedCost()
"""Of no node."""
Statuses = Mapping[str, GPUDemandStatus]
"""By name of the demand."""


def print_demands(
    plan: DemandPlan, statuses: Statuses, warnings: Iterable[str], cost: PlannedCost = UNKNOWN_COST
) -> None:
    """`cost` is that of the new nodes."""
    table = Table(Column("DEMAND", overflow="fold"), "PHASE", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    whole = any(each.whole_gpu_pods for each in plan.demands)
    for column in ("PODS", "FREE", "REQUESTED", "NEW", "REFUSED", "GPUS", *(("WHOLE GPU",) if whole else ())):
        table.add_column(column, justify="right", no_wrap=True)
    for each in plan.demands:
        table.add_row(
            each.name, statuses[each.name].phase.value, f"{len(each.pods)}", f"{sum(map(len, each.on_nodes.values()))}",
            f"{_on_requested(each)}", f"{len(each.on_new)}", f"{len(each.refused)}",
            figure(each.gpu_milli / GPU_MILLI), *([f"{len(each.whole_gpu_pods)}"] if whole else []),
        )  # fmt: skip
    if plan.demands:
        print_table(table)
        OUT.print(
            "FREE: pods that fit on free GPUs. REQUESTED: pods for which requested nodes suffice. NEW: pods on new "
            "nodes.\nGPUS: the demand's share of the GPUs of requested and new nodes, which may serve several "
            "demands."
            + (
                "\nWHOLE GPU: pods that request whole GPUs, which an autoscaler provisions without Plimsoll."
                if whole
                else ""
            )
            + "\n",
            style="dim",
        )
    for text, demands in _nodes(plan.nodes):
        OUT.print(Text.assemble(("  + ", "green"), text, (f"  ({demands})", "dim")), soft_wrap=True)
    for each in plan.demands:
        for why, number, names in pods_by_reason(each, each.refused):
            pods = shortlist(names, 3) or counted(number, "pod")
            OUT.print(Text.assemble(("  ! ", "red"), f"{pods}: {why}"), soft_wrap=True)
        for why, number, names in pods_by_reason(each, each.kept_out):
            text = f"{shortlist(names, 3)}: {each.kept_out_reason(why, number)}"
            OUT.print(Text.assemble(("  ! ", "red"), text), soft_wrap=True)
        for why in _refusals(each, statuses[each.name]):
            OUT.print(Text.assemble(("  ! ", "red"), why), soft_wrap=True)
    print_warnings(_warnings(plan, warnings))
    OUT.print(Text(_summary(plan), style="bold"), soft_wrap=True)
    for line in _cost(cost):
        OUT.print(Text(line), soft_wrap=True)


def _cost(cost: PlannedCost) -> Iterable[str]:
    """What the new nodes cost, how many of them have no price, and where the prices are from."""
    if not cost.basis and cost.unpriced:
        yield f"the cost is not known: {counted(cost.unpriced, 'node')} without a price"
    if not cost.basis:
        return
    currency = f" {cost.basis.currency}" if cost.basis.currency else ""
    unpriced = f"; {counted(cost.unpriced, 'node')} without a price" if cost.unpriced else ""
    yield f"{cost.added:+,.2f}{currency} an hour for new nodes{unpriced}"
    yield str(cost.basis)


def _refusals(demand: Demand, status: GPUDemandStatus) -> Iterable[str]:
    """Why nodes that are requested do not come, where the autoscaler refuses them: the reasons of the status that are
    not those of pods."""
    of_pods = {demand.queue_refusal, *demand.reasons, *demand.kept_out_reasons}
    return () if status.phase is not DemandPhase.REFUSED else (each for each in status.reasons if each not in of_pods)


def _on_requested(demand: Demand) -> int:
    """Pods for which requested nodes suffice."""
    return sum(map(len, demand.on_requested.values())) + len(demand.awaiting)


def _nodes(nodes: Iterable[PlannedNode]) -> Iterable[tuple[str, str]]:
    """New nodes that are alike, and the demands that they serve."""
    counts: Counter[tuple[str, str, int, str, str]] = Counter()
    demands: dict[tuple[str, str, int, str, str], set[str]] = {}
    for node in nodes:
        required = " or ".join(" and ".join(map(str, term)) for term in node.requires)
        key = node.instance_type, node.node_pool, node.gpus, node.kind, f", {required}" if required else ""
        counts[key] += 1
        demands.setdefault(key, set()).update(node.demands)
    for key, count in counts.items():
        name, pool, gpus, kind, required = key
        of_pool = f" of NodePool {pool}" if pool else ""
        yield f"{count} x {name} with {gpus} x {kind}{of_pool}{required}", shortlist(sorted(demands[key]))


def _summary(plan: DemandPlan) -> str:
    if not any(each.pods or each.refused for each in plan.demands):
        seen = sum(len(each.whole_gpu_pods) for each in plan.demands)
        return "no demand" + (
            f"; {counted(seen, 'pod')} whose GPUs an autoscaler provisions without Plimsoll" if seen else ""
        )
    bound = f", at least {plan.least_gpus} needed" if plan.nodes else ""
    names = sorted("/".join(share.pod.key) for each in plan.demands for share in each.pods.values())
    named = f" ({shortlist(names, 3)})" if names else ""
    return (
        f"{counted(len(names), 'pod')}{named}: {counted(len(plan.nodes), 'node')} with {counted(plan.gpus, 'GPU')} to "
        f"request{bound}"
    )


def as_json(
    plan: DemandPlan, statuses: Statuses, warnings: Iterable[str], cost: PlannedCost = UNKNOWN_COST
) -> dict[str, Any]:
    """`demands`, each with its pods and refusals; `requests`, one for each new node; `summary`; `cost`, that of the
    new nodes an hour; `warnings`."""
    names = {
        uid: f"{each.pod.namespace}/{each.pod.name}" for demand in plan.demands for uid, each in demand.pods.items()
    }
    return {
        "demands": [_demand(each, statuses[each.name]) for each in plan.demands],
        "requests": [_request(each, names) for each in plan.nodes],
        "summary": {
            "pods": sum(len(each.pods) for each in plan.demands),
            "nodes": len(plan.nodes),
            "gpus": plan.gpus,
            "leastGpus": plan.least_gpus,
            "lowerBound": round(plan.lower_bound, 6),
            "refused": plan.refused,
            "waitingForRequested": sum(map(_on_requested, plan.demands)),
            "waitingForGrace": sum(len(each.in_grace) for each in plan.demands),
        },
        "cost": {
            "added": round(cost.added, 4),
            "nodesWithoutPrice": cost.unpriced,
            "prices": cost.basis.as_json(),
        },
        "warnings": _warnings(plan, warnings),
    }


def _warnings(plan: DemandPlan, others: Iterable[str]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys((*others, *(warning for each in plan.demands for warning in each.warnings))))


def _demand(demand: Demand, status: GPUDemandStatus) -> dict[str, Any]:
    placement = demand.demand_class.placement
    return {
        "name": demand.name,
        "phase": status.phase.value,
        "deadline": status.deadline,
        "reasons": list(status.reasons),
        "queue": demand.demand_class.queue,
        "scheduler": demand.demand_class.scheduler,
        "nodeSelector": dict(placement.node_selector),
        "nodeAffinity": [[str(each) for each in term] for term in placement.affinity],
        "tolerations": [each.model_dump(mode="json", exclude_defaults=True) for each in placement.tolerations],
        "pods": [_pod(uid, each) for uid, each in demand.pods.items()],
        "gpus": round(demand.gpu_milli / GPU_MILLI, 3),
        "leastGpus": demand.least_gpus,
        "onNodes": {name: list(uids) for name, uids in demand.on_nodes.items()},
        "onRequested": {name: list(uids) for name, uids in demand.on_requested.items()},
        "waitingForRequested": list(demand.awaiting),
        "waitingForGrace": list(demand.in_grace),
        "onNew": dict(demand.on_new),
        "refused": {uid: str(why) for uid, why in demand.refused.items()},
        "blocked": str(demand.queue_refusal or ""),
        "wholeGpuPods": [_pod(uid, each) for uid, each in demand.whole_gpu_pods.items()],
        "keptOut": {uid: str(why) for uid, why in demand.kept_out.items()},
        "warnings": list(demand.warnings),
    }


def _pod(uid: str, each: PodShare) -> dict[str, Any]:
    share = each.share
    size: dict[str, Any] = {"milli": _number(share.milli)} if share.milli is not None else {}
    size |= {"memoryMib": share.memory_mib} if share.memory_mib is not None else {}
    size |= {"resource": share.resource} if share.resource else {}
    size |= {"tflops": share.tflops_milli / 1000} if share.tflops_milli is not None else {}
    return {"uid": uid, "namespace": each.pod.namespace, "name": each.pod.name, "devices": share.devices, **size}


def _number(milli: Milli) -> int | float:
    return milli if isinstance(milli, int) else round(float(milli), 6)


def _request(node: PlannedNode, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "nodePool": node.node_pool,
        "instanceType": node.instance_type,
        "alternatives": list(node.alternatives),
        "gpus": node.gpus,
        "product": node.kind,
        "requires": [[str(each) for each in term] for term in node.requires],
        "demands": list(node.demands),
        "pods": sorted(names[uid] for uid in node.pods),
        "podsByGpu": [list(uids) for uids in node.held],
        "cpuMilli": node.cpu_milli,
        "memoryMib": node.memory_mib,
        "storageMib": node.storage_mib,
    }
