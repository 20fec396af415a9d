"""Metrics of what the cluster has and costs, computed when they are scraped."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from plimsoll.cluster.ledger import GpuAccount
from plimsoll.cluster.nodes import SEVERAL, node_owners
from plimsoll.cluster.profiles import DiscrepancyReason
from plimsoll.cost import ClusterCost, PlannedCost, Prices, cluster_cost, cost_by_owner, planned_cost
from plimsoll.labels import as_label_value
from plimsoll.model import Plan, Snapshot
from plimsoll.model.cluster import NVIDIA
from plimsoll.packing import GPU_MILLI

OTHER: Final = "Other"
"""Label of the costs that have no series of their own: no namespace and no KAI queue has a capital letter."""
OWNER_QUEUES: Final = 20
"""Queues of one namespace with a series of their own."""
OWNERS: Final = 1000
"""Most series by owner in all, beside those that are always there."""


class CapacityMetrics(Collector):
    """GPUs by state and costs of the newest Snapshot; nothing is computed between scrapes."""

    def __init__(self) -> None:
        self._seen: tuple[Snapshot, Collection[GpuAccount]] | None = None
        self._plan = Plan()

    def seen(self, snapshot: Snapshot, accounts: Collection[GpuAccount]) -> None:
        """`accounts` must not change."""
        self._seen = snapshot, accounts

    def planned(self, plan: Plan) -> None:
        self._plan = plan

    def forget(self) -> None:
        self._seen, self._plan = None, Plan()

    def describe(self) -> Iterable[Metric]:
        return [*_families({}, ClusterCost(), PlannedCost()), _by_owner({}), _contradictions(())]

    def collect(self) -> Iterable[Metric]:
        seen, plan = self._seen, self._plan  # as one value each, because another thread sets them
        if seen is None:
            return self.describe()
        snapshot, accounts = seen
        prices = Prices.of(snapshot)
        cost, planned = cluster_cost(accounts, prices), planned_cost(plan, snapshot, prices)
        owned = bounded(cost_by_owner(accounts, node_owners(snapshot), prices), {each.name for each in snapshot.queues})
        return [*_families(_gpus(accounts), cost, planned), _by_owner(owned), _contradictions(accounts)]


def _gpus(accounts: Iterable[GpuAccount]) -> Mapping[tuple[str, str], float]:
    """By vendor and state."""
    gpus = defaultdict[tuple[str, str], float](float)
    for account in accounts:
        vendor = account.device.vendor
        if not account.node.usable:
            gpus[vendor, "not_ready"] += account.gpus
            continue
        free = sum(account.likely_free_milli) / GPU_MILLI
        gpus[vendor, "free"] += free
        gpus[vendor, "used"] += account.gpus - free
    return gpus


def bounded(costs: Mapping[tuple[str, str], float], queues: Collection[str]) -> dict[tuple[str, str], float]:
    """Costs by namespace and queue with at most OWNERS + 1 keys, and OWNER_QUEUES + 1 of a namespace, the costliest;
    the rest counts as OTHER. `queues` are the declared ones: tenants write the names of others in labels of pods."""
    known = {"", SEVERAL, *queues, *map(as_label_value, queues)}
    costs_of_known: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (namespace, queue), cost in costs.items():
        costs_of_known[namespace, queue if queue in known else OTHER] += cost
    found: dict[tuple[str, str], float] = {}
    named: Counter[str] = Counter()
    """By namespace: its queues with a series of their own."""
    for (namespace, queue), cost in sorted(costs_of_known.items(), key=lambda item: (-item[1], item[0])):
        key = (namespace, queue if named[namespace] < OWNER_QUEUES else OTHER)
        if key not in found and len(found) >= OWNERS:
            key = (OTHER, OTHER)
        named[key[0]] += key not in found and key[1] != OTHER
        found[key] = found.get(key, 0.0) + cost
    return found


def _by_owner(costs: Mapping[tuple[str, str], float]) -> Metric:
    family = GaugeMetricFamily(
        "plimsoll_cost_by_owner_per_hour", "Price of the GPU nodes by whom they were requested for",
        labels=["namespace", "queue"],
    )  # fmt: skip
    for (namespace, queue), cost in {("", ""): 0.0, **costs}.items():
        family.add_metric([namespace, queue], cost)
    return family


def _contradictions(accounts: Iterable[GpuAccount]) -> Metric:
    nodes = Counter(reason for account in accounts for reason in {finding.reason for finding in account.discrepancies})
    family = GaugeMetricFamily(
        "plimsoll_contradictory_nodes", "Nodes on which labels, resources and pods contradict each other",
        labels=["reason"],
    )  # fmt: skip
    for reason in DiscrepancyReason:
        family.add_metric([reason.value], nodes[reason])
    return family


def _families(gpus: Mapping[tuple[str, str], float], cost: ClusterCost, planned: PlannedCost) -> list[Metric]:
    by_state = GaugeMetricFamily("plimsoll_gpus", "GPUs of the cluster's nodes by state", labels=["state", "vendor"])
    for vendor in sorted({NVIDIA, *(vendor for vendor, _ in gpus)}):
        for state in ("used", "free", "not_ready"):
            by_state.add_metric([state, vendor], gpus.get((vendor, state), 0.0))
    by_change = GaugeMetricFamily(
        "plimsoll_planned_cost_per_hour", "What the last Plan adds to and releases from the cost", labels=["change"]
    )
    by_change.add_metric(["added"], planned.added)
    by_change.add_metric(["released"], planned.removed)
    return [
        by_state,
        GaugeMetricFamily("plimsoll_cost_per_hour", "Price of the GPU nodes whose price is known", cost.hourly),
        GaugeMetricFamily("plimsoll_idle_cost_per_hour", "Part of that price for GPUs that no pod uses", cost.idle),
        GaugeMetricFamily("plimsoll_unpriced_nodes", "GPU nodes whose price is not known", sum(cost.unpriced.values())),
        by_change,
    ]
