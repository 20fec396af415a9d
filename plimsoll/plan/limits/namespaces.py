"""What each namespace may have of GPUs, whichever way it asks: `access[].gpus`, of all GPUs, and ResourceQuotas of an
extended resource of GPUs: the Environment's, with shares, parts and claims, and those of AMD and Intel. Beside these,
ResourceQuotas of claims.

A namespace uses the GPUs that its bound pods request, whole ones, shares and parts, and those of its Workspaces' nodes
that no pod of the Workspace uses yet.
"""

import copy
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from plimsoll.cluster.pods import bound_pods, is_ours, read_request, released, workspace_key
from plimsoll.cluster.pools import planned_vendors
from plimsoll.cluster.queues import gpus_held
from plimsoll.model.api import EnvironmentSpec, Workspace
from plimsoll.model.cluster import VENDOR_RESOURCES, Node, Pod, ResourceQuota
from plimsoll.model.dra import ClaimRequest
from plimsoll.packing import GPU_MILLI, Milli, exact_milli
from plimsoll.plan.classes import uid_of
from plimsoll.plan.limits.budget import nodes_of
from plimsoll.plan.limits.claim_quotas import ClaimQuotas
from plimsoll.plan.view import ClusterView
from plimsoll.quantity import parse_devices
from plimsoll.text import shortlist

_WITHOUT_CLAIMS: Final = (
    "Pod {} is on a node and no claim says which devices it has, which may be any number: delete the pod if this lasts"
)


@dataclass(frozen=True)
class NamespaceUse:
    """GPUs that bound pods request, and those that claims of others have already, in thousandths."""

    all: Mapping[tuple[str, str], Milli] = field(default_factory=dict)
    """By namespace and extended resource; empty: the Environment's."""
    of_workspaces: Mapping[tuple[str, str], Milli] = field(default_factory=dict)
    """Of these, those of the pods of each Workspace, by the label values of its namespace and name."""
    released: Mapping[str, "Released"] = field(default_factory=dict)
    """By UID: pods whose capacity gate was removed and that are on no node yet."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """By namespace: the first by name of the pods on nodes whose claims do not say what they have."""


class Released(NamedTuple):
    pod: Pod
    milli: Mapping[str, Milli] | None
    """The most that it may get, by extended resource as in NamespaceUse, in thousandths; None: any number."""


def namespace_use(view: ClusterView) -> NamespaceUse:
    """What namespaces use; nothing is read where none is limited."""
    if not _bounded(view.settings, view.observed.resource_quotas):
        return NamespaceUse()
    read_of = (view.observed.pods, view.index, view.settings, view.holdings)
    return view.known.result("use of namespaces", read_of, partial(_use, view))


def _use(view: ClusterView) -> NamespaceUse:
    settings, index = view.settings, view.index.by_name
    found = Counter[tuple[str, str]]()
    for name, pods in bound_pods(view.observed.pods).items():
        node = index.get(name)
        held = view.known.result(
            "GPUs by namespace", (pods, node, settings), partial(_held, pods, node, settings), subject=name
        )
        found.update(held)
    ungated: dict[str, Released] = {}
    unknown: dict[str, str] = {}
    for pod in view.observed.pods:
        if pod.node_name:
            if pod.claimed is not None and pod.claimed.unmet is None and not pod.finished:
                unknown[pod.namespace] = min(pod.name, unknown.get(pod.namespace, pod.name))
            continue
        if pod.claimed is not None and pod.claimed.held:
            found[pod.namespace, ""] += pod.claimed.held * GPU_MILLI
        if released(pod) and not is_ours(pod, settings.demand):
            ungated[uid_of(pod)] = Released(pod, _most(pod, settings))
    own = {
        workspace_key(holding.workspace): sum(
            gpus_held(pod, host, settings) for pod, host in zip(holding.pods, holding.hosts, strict=True)
        )
        for holding in view.holdings.values()
    }
    return NamespaceUse(dict(found), {owner: milli for owner, milli in own.items() if milli}, ungated, unknown)


def _most(pod: Pod, settings: EnvironmentSpec) -> Mapping[str, Milli] | None:
    """The most that a pod may get that is on no node yet, without the devices that its claims have already."""
    found = {scope: milli for (_, scope), milli in _held((pod,), None, settings).items()}
    request = read_request(pod, settings.gpu_resource)
    for each in settings.demand.shared_devices:
        if each.resource != settings.gpu_resource and (count := request.count_of(each.resource)):
            found[""] = max(found.get("", 0), exact_milli(count, each.per_gpu))
    if pod.claimed is not None:
        if pod.claimed.unmet is None:
            return None
        found[""] = found.get("", 0) + (pod.claimed.unmet - pod.claimed.held) * GPU_MILLI
    return {scope: milli for scope, milli in found.items() if milli}


def _held(pods: Iterable[Pod], node: Node | None, settings: EnvironmentSpec) -> Mapping[tuple[str, str], Milli]:
    found: dict[tuple[str, str], Milli] = {}
    for pod in pods:
        left = gpus_held(pod, node, settings)
        for resource, count in read_request(pod, settings.gpu_resource).devices if left else ():
            if scope := _scope(resource, settings):
                of_vendor = min(left, count * GPU_MILLI)
                found[pod.namespace, scope] = found.get((pod.namespace, scope), 0) + of_vendor
                left -= of_vendor
        if left:
            found[pod.namespace, ""] = found.get((pod.namespace, ""), 0) + left
    return found


def _scope(resource: str, settings: EnvironmentSpec) -> str:
    """The resource where it is one of AMD's or Intel's GPUs, which the Environment's other GPUs do not count in."""
    return resource if resource in VENDOR_RESOURCES and resource != settings.gpu_resource else ""


def gpu_resources(settings: EnvironmentSpec) -> dict[str, str]:
    """The resources of GPUs that ResourceQuotas limit, by their scope."""
    return {"": settings.gpu_resource} | {each: each for each in VENDOR_RESOURCES if each != settings.gpu_resource}


def _bounded(settings: EnvironmentSpec, quotas: Sequence[ResourceQuota]) -> bool:
    """Whether the number of GPUs is limited in any namespace."""
    by_access = any(entry.gpus is not None for entry in settings.access)
    return by_access or any(
        _hard(each, name) is not None for each in quotas for name in gpu_resources(settings).values()
    )


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
    """A warning that names the ResourceQuotas of GPUs that bound no shares: the apiserver counts the pods in their
    scopes, by fields that a share does not have."""
    names = gpu_resources(settings).values()
    found = [
        (f"{each.namespace}/{each.name} ({', '.join(each.told_scopes)})", f"requests.{name}")
        for each in quotas
        for name in names
        if each.told_scopes and each.of(name) is not None
    ]
    if not found:
        return ()
    scoped, counted = (sorted(set(each)) for each in zip(*found, strict=True))
    return (
        f"ResourceQuotas with scopes bound no shares, only the {' and '.join(counted)} of pods that the apiserver "
        f"counts: {shortlist(scoped)}; set access.gpus of the Environment, or a ResourceQuota without scopes",
    )


class NamespaceBudget:
    """GPUs that each namespace uses and may use, in thousandths."""

    def __init__(self, view: ClusterView) -> None:
        self._environment = environment = view.settings
        self._resources = gpu_resources(environment)
        quotas = view.observed.resource_quotas
        seen = view.observed
        read_of = (quotas, seen.device_classes, seen.resource_claims, seen.pods)
        self._claims = view.known.result("quotas of claims", read_of, lambda: ClaimQuotas(seen)).copy()
        gpus_bounded = _bounded(environment, quotas)
        self.bounded = gpus_bounded or self._claims.bounded
        """Whether the number of GPUs, or claims, are limited in any namespace."""
        self._in_use: dict[tuple[str, str], Milli] = {}
        """By namespace and extended resource; empty: the Environment's."""
        self._covered: dict[tuple[str, str], Milli] = {}
        """Of each Workspace's pods, what no node of it stands for yet."""
        self._quotas: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self._scopes = ("", *sorted(planned_vendors(view.observed))) if gpus_bounded else ("",)
        """Resources for which capacity is planned."""
        self.released: Mapping[str, Released] = {}
        """Pods whose capacity gate was removed and that are on no node yet, by UID; they do not count as in use."""
        self._unknown: dict[str, str] = {}
        """By namespace: the name of a pod, and why it counts as any number."""
        if not gpus_bounded:
            return
        for quota in quotas:
            for scope, name in self._resources.items():
                hard = _hard(quota, name)
                if hard is not None:
                    self._quotas.setdefault((quota.namespace, scope), []).append((hard, quota.name))
        use = namespace_use(view)
        self._unknown = {namespace: _WITHOUT_CLAIMS.format(name) for namespace, name in use.unknown.items()}
        self._in_use, self._covered, self.released = dict(use.all), dict(use.of_workspaces), use.released
        own, types = view.ownership, view.types
        for owned, nodes, gpus, resource in nodes_of(own.claims, own.pools, environment.gpu_resource, types):
            self._count(owned.owner[:2], nodes * gpus, resource)

    def copy(self) -> "NamespaceBudget":
        """As much as is left here, to subtract from."""
        found = copy.copy(self)
        found._in_use, found._covered = dict(self._in_use), dict(self._covered)
        found._claims = self._claims.copy()
        return found

    def beside(self, planned: Container[str]) -> "NamespaceBudget":
        """As much as is left here beside the pods whose gate was removed and that are not planned for, by UID: their
        scheduler may place them at any time."""
        others = sorted(
            (each for uid, each in self.released.items() if uid not in planned), key=lambda each: each.pod.name
        )
        if not others:
            return self
        found = self.copy()
        found._unknown = dict(self._unknown)
        for pod, milli in others:
            if milli is None:
                found._unknown.setdefault(
                    pod.namespace,
                    f"Pod {pod.name}, whose gate was removed, may get any number: its claims are not known",
                )
            for scope, more in (milli or {}).items():
                found.subtract(pod.namespace, more, scope)
        return found

    def short(self, namespace: str, milli: Milli, resource: str = "", claims: Sequence[ClaimRequest] = ()) -> str:
        """Why the namespace may not have that much more, in thousandths of a GPU, or these claims that are to be
        created; empty if it may. `resource` is that of GPUs of AMD or Intel."""
        if not self.bounded:
            return ""
        limits = self._limits(namespace, _scope(resource, self._environment)) if milli else ()
        for most, in_use, limit in limits:
            if unknown := self._unknown.get(namespace):
                return f"{limit}, and {unknown}"
            if in_use + milli > most * GPU_MILLI:
                return f"{limit}, {_gpus(in_use)} are in use, and {_gpus(milli)} more are requested"
        return self._claims.short(namespace, claims)

    def exhausted(self, namespace: str) -> str:
        """Why the namespace may have nothing more of any resource; empty if it may."""
        whys = []
        for scope in self._scopes if self.bounded else ():
            full = ((used, limit) for most, used, limit in self._limits(namespace, scope) if used >= most * GPU_MILLI)
            in_use, why = next(full, (0, ""))
            whys.append(f"{why}, {_gpus(in_use)} are in use, and its pods request more" if why else "")
        return whys[0] if whys and all(whys) else ""

    def left(self, namespace: str) -> Milli | None:
        """What it may have more of the resource of which it may have most, in thousandths of a GPU; None: as much as it
        asks for."""
        found: list[Milli] = []
        for scope in self._scopes if self.bounded else ():
            rest = min((most * GPU_MILLI - used for most, used, _ in self._limits(namespace, scope)), default=None)
            if rest is None:
                return None
            found.append(rest)
        return max(found, default=None)

    def bounds(self, namespace: str) -> bool:
        """Whether the number of GPUs of the namespace is limited."""
        return any(next(self._limits(namespace, scope), None) for scope in self._resources)

    def subtract(self, namespace: str, milli: Milli, resource: str = "", claims: Sequence[ClaimRequest] = ()) -> None:
        """Counts that much more as in use, in thousandths of a GPU, and these claims."""
        self._claims.subtract(namespace, claims)
        key = namespace, _scope(resource, self._environment)
        self._in_use[key] = self._in_use.get(key, 0) + milli

    def count(self, workspace: Workspace, gpus: int, resource: str) -> None:
        """Counts GPUs of nodes that the Workspace uses without a NodeClaim."""
        self._count(workspace_key(workspace), gpus, resource)

    def _count(self, owner: tuple[str, str], gpus: int, resource: str) -> None:
        covered = min(self._covered.get(owner, 0), gpus * GPU_MILLI)
        if covered:
            self._covered[owner] -= covered
        self.subtract(owner[0], gpus * GPU_MILLI - covered, resource)

    def _limits(self, namespace: str, scope: str) -> Iterator[tuple[int, Milli, str]]:
        """GPUs of the resource that the namespace may have, thousandths of those in use, and what says so."""
        try:
            access = self._environment.access_of(namespace)
        except KeyError:  # it is refused by name
            access = None
        if access is not None and access.gpus is not None:
            in_use = sum(self._in_use.get((namespace, each), 0) for each in self._resources)
            limit = f"access.gpus of the Environment lets namespace {namespace!r} have {access.gpus} GPUs"
            yield access.gpus, in_use, limit
        for hard, name in self._quotas.get((namespace, scope), ()):
            resource = self._resources[scope]
            limit = f"ResourceQuota {name} of namespace {namespace!r} allows {hard} of requests.{resource}"
            yield hard, self._in_use.get((namespace, scope), 0), limit


def _gpus(milli: Milli) -> str:
    return f"{float(milli) / GPU_MILLI:.10g}"
