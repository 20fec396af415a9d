"""What a change of manifests means for nodes, GPUs, cost, pods without capacity and queues."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from plimsoll.cluster.catalog import OfferedTypes
from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cluster.queues import MILLI, Resource, queue_usage
from plimsoll.cost import PriceBasis, Prices
from plimsoll.explaining.planned_demand import plan_demand, pods_by_reason
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import ObservedObject
from plimsoll.plan import plan, validate
from plimsoll.plan.classes import whole_gpus
from plimsoll.text import shortlist

_NAMED: Final = {
    "ReplicaSet": r"-[0-9a-f]{6,10}-[a-z0-9]{5}",
    "StatefulSet": r"(-\d+)+",
    "Job": r"(-[a-z0-9-]+)?-[a-z0-9]{5}",
    "RayCluster": r"-[a-z0-9-]+",
}
"""How Kubernetes names the pods of a workload after it, by the kind of what controls them."""

_NAMED_PODS: Final = 3
"""Names of pods of one reason."""


@dataclass(frozen=True)
class Figures:
    nodes: int = 0
    """GPU nodes that there are, and new ones."""
    gpus: int = 0
    whole_gpus: int = 0
    """GPUs that pods ask for whole. Autoscalers provide nodes for them, which do not count here before they exist."""
    hourly: float = 0.0
    unpriced: int = 0
    """Nodes without a price."""
    waiting: int = 0
    """Pods for which no capacity is planned, and Workspaces that are refused."""
    over_quota: Mapping[str, float] = field(default_factory=dict)
    """GPUs by which what a queue uses and asks for exceeds its quota, by queue."""
    reasons: tuple[str, ...] = ()
    """Why pods have no capacity and Workspaces are refused; sorted."""

    def as_json(self) -> dict[str, Any]:
        return {
            "nodes": self.nodes,
            "gpus": self.gpus,
            "wholeGpus": self.whole_gpus,
            "pricePerHour": round(self.hourly, 4),
            "nodesWithoutPrice": self.unpriced,
            "withoutCapacity": self.waiting,
            "queuesOverQuota": dict(self.over_quota),
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True)
class Difference:
    before: Figures
    after: Figures
    basis: PriceBasis

    def as_json(self) -> dict[str, Any]:
        return {"before": self.before.as_json(), "after": self.after.as_json(), "prices": self.basis.as_json()}


def compare(before: Snapshot, after: Snapshot, now: datetime) -> Difference:
    old, types = _figures(before, now)
    new, more = _figures(after, now)
    return Difference(old, new, Prices.of(after).basis(types | more))


def _figures(snapshot: Snapshot, now: datetime) -> tuple[Figures, set[str]]:
    """The figures, and the instance types that are priced."""
    planned = plan_demand(snapshot, now)
    verdicts = validate(planned.view, now)
    whole, prices = plan(planned.view, verdicts, now), planned.prices
    accounts = [account for account in gpu_ledger(snapshot).accounts() if account.has_gpus]
    nodes = [(account.node.instance_type, account.gpus) for account in accounts]
    nodes += [(node.instance_type, node.gpus) for node in planned.plan.nodes]
    claims = (NodeClaim.read(each.manifest) for each in whole.creations if each.key.kind == "NodeClaim")
    nodes += [
        (claim.instance_types[0] if claim.instance_types else "", _gpus(claim, planned.view.types)) for claim in claims
    ]
    costs = [prices.of_type(name) for name, _ in nodes]
    refused = [verdict for verdict in verdicts if not verdict.accepted]
    demands = planned.plan.demands
    kept = [found for each in demands for found in pods_by_reason(each, {**each.refused, **each.kept_out})]
    whys = [f"{shortlist(found.names, _NAMED_PODS)}: {found.why}" if found.names else found.why for found in kept]
    return Figures(
        len(nodes),
        sum(gpus for _, gpus in nodes),
        whole_gpus(snapshot).asked,
        sum(cost for cost in costs if cost is not None),
        costs.count(None),
        sum(found.number for found in kept) + len(refused),
        _over_quota(snapshot),
        tuple(sorted({*whys, *(f"Workspace {each.workspace}: {each.message}" for each in refused)})),
    ), {name for name, _ in nodes}


def _gpus(claim: NodeClaim, types: OfferedTypes) -> int:
    offered = types.find(claim.instance_types[0]) if claim.instance_types else None
    return offered.claimable or 0 if offered is not None else 0


def _over_quota(snapshot: Snapshot) -> dict[str, float]:
    usage = queue_usage(snapshot)
    found = {}
    for name in usage.tree:
        quota = usage.tree.amounts(name, Resource.GPU).quota
        wanted = usage.allocated[name].gpu + usage.waiting[name].gpu
        if quota is not None and wanted > quota:
            found[name] = float(wanted - quota) / MILLI
    return found


def with_manifests(cluster: Snapshot, files: Snapshot) -> Snapshot:
    """The cluster as if the manifests were applied: objects of the same name are replaced, and so are the pods of the
    workloads, by the names that Kubernetes gives them."""
    update: dict[str, Any] = {"warnings": (*cluster.warnings, *files.warnings), "skipped": files.skipped}
    for name in Snapshot.model_fields:
        old, new = getattr(cluster, name), getattr(files, name)
        if isinstance(new, tuple) and new and isinstance(new[0], ObservedObject):
            keys = {each.key for each in new}
            update[name] = (*(each for each in old if each.key not in keys), *new)
    if files.environment != Environment.default():
        update["environment"] = files.environment
    pods = files.pods
    kept = tuple(pod for pod in cluster.pods if not any(_replaces(new, pod) for new in pods))
    return cluster.model_copy(update={**update, "pods": (*kept, *pods)})


def _replaces(new: Pod, old: Pod) -> bool:
    if new.key == old.key:
        return True
    pattern = _NAMED.get(new.owner_kind)
    if pattern is None or (new.namespace, new.owner_kind) != (old.namespace, old.owner_kind):
        return False
    workload = new.name.rpartition("-")[0]
    return re.fullmatch(re.escape(workload) + pattern, old.name) is not None
