"""What each namespace may have of GPUs, whichever way it asks: `access[].gpus` and ResourceQuotas of the GPU resource.

A namespace uses the GPUs that its bound pods request, whole ones, shares and parts, and those of its Workspaces' nodes
that no pod of the Workspace uses yet.
"""

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from plimsoll.cluster.pods import bound_pods, workspace_key
from plimsoll.cluster.queues import gpus_held
from plimsoll.model.api import EnvironmentSpec, Workspace
from plimsoll.model.cluster import Node, Pod, ResourceQuota
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.plan.limits.budget import nodes_of
from plimsoll.plan.view import ClusterView
from plimsoll.quantity import parse_devices
from plimsoll.text import shortlist


@dataclass(frozen=True)
class NamespaceUse:
    """GPUs that bound pods request, in thousandths."""

    all: Mapping[str, Milli] = field(default_factory=dict)
    """By namespace."""
    of_workspaces: Mapping[tuple[str, str], Milli] = field(default_factory=dict)
    """Of these, those of the pods of each Workspace, by the label values of its namespace and name."""


def namespace_use(view: ClusterView) -> NamespaceUse:
    """What namespaces use; nothing is read where none is limited."""
    settings, index = view.settings, view.index.by_name
    if not _bounded(settings, view.observed.resource_quotas):
        return NamespaceUse()
    found = Counter[str]()
    for name, pods in bound_pods(view.observed.pods).items():
        node = index.get(name)
        held = view.known.result(
            "GPUs by namespace", (pods, node, settings), partial(_held, pods, node, settings), subject=name
        )
        found.update(held)
    own = {
        workspace_key(holding.workspace): sum(
            gpus_held(pod, host, settings) for pod, host in zip(holding.pods, holding.hosts, strict=True)
        )
        for holding in view.holdings.values()
    }
    return NamespaceUse(dict(found), {owner: milli for owner, milli in own.items() if milli})


def _held(pods: Iterable[Pod], node: Node | None, settings: EnvironmentSpec) -> Mapping[str, Milli]:
    found: dict[str, Milli] = {}
    for pod in pods:
        milli = gpus_held(pod, node, settings)
        if milli:
            found[pod.namespace] = found.get(pod.namespace, 0) + milli
    return found


def _bounded(settings: EnvironmentSpec, quotas: Sequence[ResourceQuota]) -> bool:
    """Whether the number of GPUs is limited in any namespace."""
    by_access = any(entry.gpus is not None for entry in settings.access)
    return by_access or any(_hard(each, settings.gpu_resource) is not None for each in quotas)


def _hard(quota: ResourceQuota, resource: str) -> int | None:
    """GPUs that the pods of the quota's namespace may have. A number that cannot be read allows none."""
    amount = None if quota.told_scopes else quota.of(resource)
    if amount is None:
        return None
    try:
        return max(0, parse_devices(amount))
    except ValueError:
        return 0


def uncounted_quotas(settings: EnvironmentSpec, quotas: Iterable[ResourceQuota]) -> tuple[str, ...]:
    """A warning that names the ResourceQuotas of the GPU resource that bound nothing here: the apiserver counts the
    pods in their scopes, by fields that a share or a node to come does not have."""
    resource = settings.gpu_resource
    scoped = sorted(
        f"{each.namespace}/{each.name} ({', '.join(each.told_scopes)})"
        for each in quotas
        if each.told_scopes and each.of(resource) is not None
    )
    if not scoped:
        return ()
    return (
        f"ResourceQuotas with scopes bound no shares and no nodes of Workspaces, only the requests.{resource} of pods "
        f"that the apiserver counts: {shortlist(scoped)}; set access.gpus of the Environment, or a ResourceQuota "
        "without scopes",
    )


class NamespaceBudget:
    """GPUs that each namespace uses and may use, in thousandths."""

    def __init__(self, view: ClusterView) -> None:
        self._environment = environment = view.settings
        quotas = view.observed.resource_quotas
        self.bounded = _bounded(environment, quotas)
        """Whether the number of GPUs is limited in any namespace."""
        self._in_use: dict[str, Milli] = {}
        self._covered: dict[tuple[str, str], Milli] = {}
        """Of each Workspace's pods, what no node of it stands for yet."""
        self._quotas: dict[str, list[tuple[int, str]]] = {}
        if not self.bounded:
            return
        for quota in quotas:
            hard = _hard(quota, environment.gpu_resource)
            if hard is not None:
                self._quotas.setdefault(quota.namespace, []).append((hard, quota.name))
        use = namespace_use(view)
        self._in_use, self._covered = dict(use.all), dict(use.of_workspaces)
        own, types = view.ownership, view.types
        for owned, nodes, gpus in nodes_of(own.claims, own.pools, environment.gpu_resource, types):
            self._count(owned.owner[:2], nodes * gpus)

    def copy(self) -> "NamespaceBudget":
        """As much as is left here, to subtract from."""
        found = copy.copy(self)
        found._in_use, found._covered = dict(self._in_use), dict(self._covered)
        return found

    def short(self, namespace: str, milli: Milli) -> str:
        """Why the namespace may not have that much more, in thousandths of a GPU; empty if it may."""
        if not self.bounded or not milli:
            return ""
        in_use = self._in_use.get(namespace, 0)
        for most, limit in self._limits(namespace):
            if in_use + milli > most * GPU_MILLI:
                return f"{limit}, {_gpus(in_use)} are in use, and {_gpus(milli)} more are requested"
        return ""

    def exhausted(self, namespace: str) -> str:
        """Why the namespace may have nothing more; empty if it may."""
        in_use = self._in_use.get(namespace, 0)
        limits = self._limits(namespace) if self.bounded else ()
        why = next((limit for most, limit in limits if in_use >= most * GPU_MILLI), "")
        return f"{why}, {_gpus(in_use)} are in use, and its pods request more" if why else ""

    def left(self, namespace: str) -> Milli | None:
        """What it may have more, in thousandths of a GPU; None: as much as it asks for."""
        limits = self._limits(namespace) if self.bounded else ()
        most = min((most for most, _ in limits), default=None)
        return None if most is None else most * GPU_MILLI - self._in_use.get(namespace, 0)

    def bounds(self, namespace: str) -> bool:
        """Whether the number of GPUs of the namespace is limited."""
        return next(self._limits(namespace), None) is not None

    def subtract(self, namespace: str, milli: Milli) -> None:
        """Counts that much more as in use, in thousandths of a GPU."""
        self._in_use[namespace] = self._in_use.get(namespace, 0) + milli

    def count(self, workspace: Workspace, gpus: int) -> None:
        """Counts GPUs of nodes that the Workspace uses without a NodeClaim."""
        self._count(workspace_key(workspace), gpus)

    def _count(self, owner: tuple[str, str], gpus: int) -> None:
        covered = min(self._covered.get(owner, 0), gpus * GPU_MILLI)
        if covered:
            self._covered[owner] -= covered
        self.subtract(owner[0], gpus * GPU_MILLI - covered)

    def _limits(self, namespace: str) -> Iterator[tuple[int, str]]:
        """GPUs that the namespace may have, and what says so."""
        try:
            access = self._environment.access_of(namespace)
        except KeyError:  # it is refused by name
            access = None
        if access is not None and access.gpus is not None:
            yield access.gpus, f"access.gpus of the Environment lets namespace {namespace!r} have {access.gpus} GPUs"
        for hard, name in self._quotas.get(namespace, ()):
            resource = self._environment.gpu_resource
            yield hard, f"ResourceQuota {name} of namespace {namespace!r} allows {hard} of requests.{resource}"


def _gpus(milli: Milli) -> str:
    return f"{float(milli) / GPU_MILLI:.10g}"
