"""Whether ResourceQuotas of a namespace let the pods of a Workspace exist: the cluster accepts its workload anyway, and
refuses the pods that it creates, so that nodes would be bought for nothing.

The quota's own status says what counts already. Nodes of Workspaces whose pods do not exist yet count beside it. GPUs
of quotas without scopes are NamespaceBudget's, which counts shares and claims too.
"""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal

from plimsoll.model import Reason, Refusal
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import ResourceQuota, part_of_pods
from plimsoll.plan.limits.namespaces import gpu_resources
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import AdmittedPod
from plimsoll.quantity import canonical_quantity, parse_quantity
from plimsoll.text import counted, shortlist


class PodQuotas:
    """What ResourceQuotas leave for pods of Workspaces, one Workspace after the other."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._quotas = defaultdict[str, list[ResourceQuota]](list)
        for quota in view.observed.resource_quotas:
            if quota.counts_pods or quota.counts_claims:
                self._quotas[quota.namespace].append(quota)
        self._of_gpus = {f"requests.{each}" for each in gpu_resources(view.settings).values()}
        self._taken = defaultdict[tuple[str, str, str], Decimal](Decimal)
        """By namespace, name and key: what pods will take that do not exist yet."""
        self._spare: dict[tuple[str, str], int] = {}
        """Pods of each Workspace that exist, and wait for a node."""

    def bounds(self, namespace: str) -> bool:
        return namespace in self._quotas

    def settle(self, workspace: Workspace, pod: AdmittedPod, nodes: int, existing: int) -> None:
        """Counts the pods that come on nodes that the Workspace has: of the `nodes` that it needs, `existing` ones and
        those that were created for it. On existing nodes alone, those that its workload asks for count already."""
        own, created = self._view.ownership, self._view.settings.auto_provisioning
        workloads = [each for each in own.workloads_of(workspace) if not each.deleting]
        pods = sum(each.size * (each.pods if created else max(each.pods, each.replicas)) for each in workloads)
        wanted = nodes + (workspace.temporary_nodes if workspace.key in self._view.rolling else 0)
        there = min(own.requested_for(workspace) + existing, wanted) if created else 0
        self._spare[workspace.key] = max(0, pods - there)
        self._count(workspace, pod, max(0, there - pods))

    def refusal(self, workspace: Workspace, pod: AdmittedPod, pods: int) -> Refusal | None:
        """Why so many pods more may not exist, besides those that have no node; None if they may."""
        more = pods - self._spare.get(workspace.key, 0)
        for quota in self._quotas.get(workspace.namespace, ()) if more > 0 else ():
            if not pod.counts_in(quota):
                continue
            if unsaid := shortlist([f"{pod.where}{field}" for field in pod.unsaid(quota)], 4):
                return Refusal(
                    Reason.NOT_ALLOWED,
                    f"ResourceQuota {quota.name} of namespace {workspace.namespace!r} bounds CPU or memory, and the "
                    f"cluster would refuse pods that do not say how much they take: set {unsaid}",
                )
            for key, hard in quota.hard.items():
                each = self._each(quota, key, pod)
                used = _amount(quota.used, key) + self._taken[quota.namespace, quota.name, key]
                if each and used + more * each > _amount(quota.hard, key):
                    return Refusal(
                        Reason.LIMIT_EXCEEDED,
                        f"ResourceQuota {quota.name} of namespace {workspace.namespace!r} allows {hard} of {key}, "
                        f"{_text(used)} are in use, and {counted(more, 'more pod')} of {_text(each)} each would be "
                        "created: lower inference.replicas or what its pods request, or raise the quota",
                    )
        return None

    def subtract(self, workspace: Workspace, pod: AdmittedPod, pods: int) -> None:
        """Counts so many pods more, besides those that have no node."""
        waiting = min(self._spare.get(workspace.key, 0), pods)
        self._spare[workspace.key] = self._spare.get(workspace.key, 0) - waiting
        self._count(workspace, pod, pods - waiting)

    def _count(self, workspace: Workspace, pod: AdmittedPod, pods: int) -> None:
        for quota in self._quotas.get(workspace.namespace, ()) if pods else ():
            if pod.counts_in(quota):
                for key in quota.hard:
                    self._taken[quota.namespace, quota.name, key] += pods * self._each(quota, key, pod)

    def _each(self, quota: ResourceQuota, key: str, pod: AdmittedPod) -> Decimal:
        """What one pod takes of it."""
        if key in pod.claimed:
            return Decimal(0 if quota.told_scopes else pod.claimed[key])
        if part_of_pods(key) is None or (key in self._of_gpus and not quota.told_scopes):
            return Decimal(0)
        return pod.amount(key)


def _amount(amounts: Mapping[str, str | int | float], key: str) -> Decimal:
    """0 where there is none, or it cannot be read."""
    try:
        return parse_quantity(amounts.get(key, 0))
    except ValueError:
        return Decimal(0)


def _text(amount: Decimal) -> str:
    return canonical_quantity(f"{amount:f}")
