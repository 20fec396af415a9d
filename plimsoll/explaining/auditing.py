"""An audit: what a cluster's GPUs cost, what of it is idle, what is blocked, and what contradicts itself; pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from plimsoll.cluster.ledger import GpuAccount, gpu_ledger
from plimsoll.cluster.nodes import node_owners
from plimsoll.cluster.pools import PoolProfiles
from plimsoll.cluster.queues import QueueTree, Resource
from plimsoll.cost import ClusterCost, NodeCost, cluster_cost, node_cost, savings
from plimsoll.explaining.planned_demand import PlannedDemand
from plimsoll.labels import HEADROOM, NODEPOOL, REQUEST
from plimsoll.packing import GPU_MILLI
from plimsoll.text import counted, figure, shortlist

_OWNERS: Final = (HEADROOM, REQUEST, NODEPOOL)
"""Labels by which a node says who asked for it, besides its owner's."""
_LISTED: Final = 50
"""Findings of one section; their number is complete."""


class Section(StrEnum):
    IDLE = "Idle GPUs"
    BLOCKED = "Pods without capacity"
    PACKING = "Packing"
    LABELS = "Contradictions"
    OWNERS = "Nodes without an owner"
    GATES = "Missing gates"
    QUEUES = "Queues that can run nothing"
    WOULD = "What Plimsoll would do"


class AuditFinding(NamedTuple):
    section: Section
    subject: str
    text: str
    price: float | None = None
    """What it costs an hour, where that is known."""


@dataclass(frozen=True)
class Audit:
    nodes: int
    gpus: int
    idle_gpus: float
    cost: ClusterCost
    findings: tuple[AuditFinding, ...]
    counts: dict[Section, int]
    """Findings by section, also those that are not listed."""

    def of(self, section: Section) -> tuple[AuditFinding, ...]:
        return tuple(finding for finding in self.findings if finding.section is section)

    def as_json(self) -> dict[str, Any]:
        """`summary`, `prices`, and `sections` by name with `count` and `findings`."""
        return {
            "summary": {
                "nodes": self.nodes,
                "gpus": self.gpus,
                "idleGpus": round(self.idle_gpus, 3),
                "pricePerHour": round(self.cost.hourly, 4),
                "idlePricePerHour": round(self.cost.idle, 4),
                "nodesWithoutPrice": sum(self.cost.unpriced.values()),
            },
            "prices": self.cost.basis.as_json(),
            "sections": {
                section.value: {
                    "count": self.counts.get(section, 0),
                    "findings": [
                        {"subject": each.subject, "text": each.text, "pricePerHour": each.price}
                        for each in self.of(section)
                    ],
                }
                for section in Section
            },
        }


def audit(planned: PlannedDemand) -> Audit:
    accounts = [account for account in gpu_ledger(planned.snapshot).accounts() if account.has_gpus]
    found = [
        *_idle(accounts, planned),
        *_blocked(planned),
        *_packing(planned),
        *_contradictions(accounts, planned),
        *_without_owner(accounts, planned),
        *_without_gates(planned),
        *_dead_queues(planned),
        *_would(planned),
    ]
    by_section: dict[Section, list[AuditFinding]] = defaultdict(list)
    for finding in found:
        by_section[finding.section].append(finding)
    return Audit(
        nodes=len(accounts),
        gpus=sum(account.gpus for account in accounts),
        idle_gpus=float(sum(sum(account.likely_free_milli) for account in accounts)) / GPU_MILLI,
        cost=cluster_cost(accounts, planned.prices),
        findings=tuple(finding for findings in by_section.values() for finding in findings[:_LISTED]),
        counts={section: len(findings) for section, findings in by_section.items()},
    )


def _idle(accounts: Iterable[GpuAccount], planned: PlannedDemand) -> Iterator[AuditFinding]:
    """Nodes with free GPUs, the most expensive first."""
    costs: list[tuple[GpuAccount, NodeCost | None]] = [(each, node_cost(each, planned.prices)) for each in accounts]
    for account, cost in sorted(costs, key=lambda item: -(item[1].idle if item[1] is not None else 0.0)):
        free = float(sum(account.likely_free_milli)) / GPU_MILLI
        if free:
            what = (
                f"{account.gpus} {account.vendor_resource}" if account.vendor_resource else counted(account.gpus, "GPU")
            )
            text = f"{figure(free)} of {what} free"
            yield AuditFinding(Section.IDLE, f"Node {account.node.name}", text, None if cost is None else cost.idle)


def _blocked(planned: PlannedDemand) -> Iterator[AuditFinding]:
    """Pods without capacity by reason, the most pods first, each with a few of their names."""
    pods: dict[tuple[str, str], list[str]] = defaultdict(list)
    names = {each.uid or f"{each.namespace}/{each.name}": each for each in planned.snapshot.pods}
    for demand in planned.plan.demands:
        for uid, why in demand.refused.items():
            pod = names.get(uid)
            name = uid if pod is None else f"{pod.namespace}/{pod.name}"
            pods[why.reason.value, str(why)].append(name)
    for (reason, text), several in sorted(pods.items(), key=lambda item: -len(item[1])):
        yield AuditFinding(Section.BLOCKED, f"{counted(len(several), 'pod')}: {shortlist(sorted(several), 3)}",
                           f"{reason}: {text}")  # fmt: skip


def _packing(planned: PlannedDemand) -> Iterator[AuditFinding]:
    found = savings(planned.snapshot, planned.prices)
    unit = "an hour" if found.priced else "GPUs"
    for group in found.groups:
        if group.removable:
            price = None if group.price is None else group.price * len(group.removable)
            text = f"{len(group.removable)} of {counted(group.nodes, 'node')} could be removed if pods moved: "
            name = f"{group.instance_type or 'unknown type'} {group.product}".strip()
            yield AuditFinding(Section.PACKING, name, text + shortlist(group.removable), price)
    if found.now > found.least:
        text = f"{figure(found.now)} {unit} now; no packing of the same pods takes less than {figure(found.least)}"
        yield AuditFinding(Section.PACKING, "all nodes", text, found.now - found.least if found.priced else None)


def _contradictions(accounts: Iterable[GpuAccount], planned: PlannedDemand) -> Iterator[AuditFinding]:
    for account in accounts:
        for each in account.discrepancies:
            yield AuditFinding(Section.LABELS, f"Node {each.node}", f"{each.reason}: {each.message}")
        if account.gpus and not account.kind and not account.vendor_resource:
            yield AuditFinding(Section.LABELS, f"Node {account.node.name}", "GPUs without the label of their product")
    for warning in PoolProfiles(planned.snapshot).warnings:
        yield AuditFinding(Section.LABELS, "NodePools", warning)


def _without_owner(accounts: Iterable[GpuAccount], planned: PlannedDemand) -> Iterator[AuditFinding]:
    owned = node_owners(planned.snapshot)
    for account in accounts:
        node = account.node
        if node.name not in owned and not any(node.labels.get(key) for key in _OWNERS):
            text = "no NodePool, Workspace or demand asked for it by its labels"
            yield AuditFinding(Section.OWNERS, f"Node {node.name}", text, planned.prices.of_type(node.instance_type))


def _without_gates(planned: PlannedDemand) -> Iterator[AuditFinding]:
    """Pods with whole GPUs that their queue does not admit: an autoscaler buys nodes for them all the same."""
    for demand in planned.plan.demands:
        for uid, why in demand.kept_out.items():
            pod = demand.whole_gpu_pods[uid].pod
            if not pod.scheduling_gates:
                text = f"its queue does not admit it, and nothing keeps it from the autoscaler: {why}"
                yield AuditFinding(Section.GATES, f"Pod {pod.namespace}/{pod.name}", text)


def _dead_queues(planned: PlannedDemand) -> Iterator[AuditFinding]:
    tree = QueueTree.of(planned.snapshot)
    in_cycles = {each for cycle in tree.cycles for each in cycle}
    for name in tree:
        if not tree.is_leaf(name) and name not in in_cycles:
            continue
        broken = tree.broken_at(name)
        closed = [each for each in tree.path_to_root(name) if tree.amounts(each, Resource.GPU).limit == 0]
        if broken:
            yield AuditFinding(Section.QUEUES, f"Queue {name}", f"it reaches no root, {broken}: KAI ignores it")
        elif closed:
            text = (
                f"spec.resources.gpu.limit of {closed[0]} is 0 or absent, which KAI takes as 0: no pod with GPUs starts"
            )
            yield AuditFinding(Section.QUEUES, f"Queue {name}", text)


def _would(planned: PlannedDemand) -> Iterator[AuditFinding]:
    """The nodes that Plimsoll would request for the pods that wait."""
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for node in planned.plan.nodes:
        alike[node.instance_type, node.node_pool].append(node.gpus)
    for (name, pool), gpus in sorted(alike.items()):
        price = planned.prices.of_type(name)
        cost = None if price is None else price * len(gpus)
        of_pool = f" of NodePool {pool}" if pool else ""
        text = f"request {counted(len(gpus), 'node')}{of_pool} with {counted(sum(gpus), 'GPU')}"
        yield AuditFinding(Section.WOULD, name, text, cost)
    if planned.plan.nodes:
        text = f"any plan for the same pods needs at least {counted(planned.plan.least_gpus, 'GPU')}"
        yield AuditFinding(Section.WOULD, "lower bound", text)
