"""Limits of an Environment and its namespaces, and what is left of them."""

import copy
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from plimsoll.cluster.catalog import OfferedTypes, claim_gpus, most_gpus
from plimsoll.cluster.pools import Room, unready_claims
from plimsoll.labels import INSTANCE_TYPE, NODEPOOL, WORKSPACE
from plimsoll.model import Reason, Refusal, Snapshot
from plimsoll.model.api import DemandProvisioner, EnvironmentSpec, Workspace, tenancy_violation
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.plan.requests import CapacityRequests, by_kind, served_by
from plimsoll.plan.view import ClusterView
from plimsoll.quantity import parse_devices
from plimsoll.text import shortlist


@dataclass(frozen=True)
class DemandUsage:
    nodes: int = 0
    gpus: int = 0
    """NodeClaims of an autoscaler. It does not record for which pod it created one, so all with GPUs count."""
    requested_nodes: int = 0
    requested_gpus: int = 0
    """Requested nodes without a NodeClaim."""

    @classmethod
    def of(cls, view: ClusterView) -> "DemandUsage":
        """Zero if no limit applies, or demand has no provisioner."""
        limits = view.settings.limits
        if view.settings.demand.provisioner is DemandProvisioner.NONE or (limits.gpus is None and limits.nodes is None):
            return cls()
        seen, requests = view.observed, view.requests
        arguments = (requests.found, requests.registered, seen.node_claims, seen.nodes, view.types, view.settings)
        return view.known.result("demand usage", arguments, lambda: cls._counted(view))

    @classmethod
    def _counted(cls, view: ClusterView) -> "DemandUsage":
        snapshot, resource = view.observed, view.settings.gpu_resource
        made = [_gpus(claim, resource, view.types) for claim in snapshot.node_claims if WORKSPACE not in claim.labels]
        nodes, gpus = 0, 0
        for each, number in _unclaimed(snapshot, view.requests):
            nodes, gpus = nodes + number, gpus + number * each
        return cls(sum(map(bool, made)), sum(made), nodes, gpus)


def _gpus(claim: NodeClaim, resource: str, types: OfferedTypes) -> int:
    """GPUs of the launched instance type, else those that the NodeClaim requests."""
    launched = types.find(claim.labels.get(INSTANCE_TYPE, ""))
    known = launched.claimable if launched is not None else None
    return known if known is not None else claim_gpus(claim, resource, types)


def _unclaimed(snapshot: Snapshot, requests: CapacityRequests) -> list[tuple[int, int]]:
    """(GPUs per node, nodes) for each request."""
    left = {each.name: each.outstanding - len(requests.registered.get(each.name, ())) for each in requests.found}
    of_kind = by_kind(requests.found)
    for claim in unready_claims(snapshot, snapshot.environment.spec.gpu_resource):
        if (owner := served_by(claim, of_kind, left)) is not None:
            left[owner.name] -= 1
    return [(each.node_request.gpus, left[each.name]) for each in requests.found]


class Budget:
    """GPU devices and nodes that are left under the limits of the Environment and of its NodePools.

    A NodePool's limits apply to the sum of the nodes that Karpenter creates from it and those that Plimsoll creates of
    an instance type that it allows. Only `nodes` and the GPU resource are checked; other resources of a machine are not
    known in advance.
    """

    def __init__(
        self,
        environment: EnvironmentSpec,
        claims: Iterable[NodeClaim],
        own_pools: Iterable[NodePool],
        types: OfferedTypes,
        demand: DemandUsage | None = None,
    ) -> None:
        demand = demand or DemandUsage()
        limits = environment.limits
        self._limits = {"gpus": limits.gpus, "nodes": limits.nodes}
        self._environment = environment
        self._types = types
        self._used = {"gpus": demand.gpus, "nodes": demand.nodes}
        self._requested = {"gpus": demand.requested_gpus, "nodes": demand.requested_nodes}
        self._of_pools: dict[str, dict[str, int]] = {}
        """What nodes of Workspaces use, by NodePool, and by the resource in its limits."""
        claims = tuple(claims)
        self._leaving = shortlist([f"NodeClaim {each.name} ({each.stays})" for each in claims if each.deleting])
        if limits.gpus is None and limits.nodes is None and not types.limited_pools:
            return
        for owned, nodes, gpus, resource in nodes_of(claims, own_pools, environment.gpu_resource, types):
            self.subtract(nodes, gpus, self._pool_of(owned), resource)

    def copy(self) -> "Budget":
        """As much as is left here, to subtract from."""
        found = copy.copy(self)
        found._used, found._requested = dict(self._used), dict(self._requested)
        found._of_pools = {pool: dict(used) for pool, used in self._of_pools.items()}
        return found

    def short(self, nodes: int, gpus_each: int, pool: NodePool | None, resource: str = "") -> str:
        """Which limit `nodes` more nodes would exceed; empty if none. `pool` is the NodePool that allows their type,
        `resource` that of their GPUs; empty: the Environment's."""
        for name, amount in (("gpus", nodes * gpus_each), ("nodes", nodes)):
            limit, used = self._limits[name], self.used(name)
            if amount and limit is not None and used + amount > limit:
                problem = f"limits.{name} of the Environment is {limit}, {used} are in use"
                return f"{problem}{self.still_counted}, and {amount} more are requested"
        if pool is None or not pool.limits:
            return ""
        of_workspaces = self._of_pools.get(pool.name, {})
        for key, amount in ((resource or self._environment.gpu_resource, nodes * gpus_each), ("nodes", nodes)):
            bound, used = _devices(pool.limits, key), of_workspaces.get(key, 0) + (_devices(pool.used, key) or 0)
            if amount and bound is not None and used + amount > bound:
                return (
                    f"limits.{key} of NodePool {pool.name} is {bound}, {used} in use{self.still_counted}, {amount} "
                    "more requested"
                )
        return ""

    @property
    def still_counted(self) -> str:
        """The NodeClaims in use that are being deleted, for messages; empty if there are none."""
        return f" (by {self._leaving}, too)" if self._leaving else ""

    def used(self, name: str) -> int:
        """What is in use under the Environment's limit of that name, `gpus` or `nodes`, requested nodes included."""
        return self._used[name] + self._requested[name]

    def room(self) -> Room:
        """What is left for demand, including what it has already requested."""
        bounds = {name: limit for name, limit in self._limits.items() if limit is not None}
        return Room(bounds, {name: limit - self._used[name] for name, limit in bounds.items()})

    def subtract(self, nodes: int, gpus_each: int, pool: NodePool | None, resource: str = "") -> None:
        self._used["nodes"] += nodes
        self._used["gpus"] += nodes * gpus_each
        if pool is not None and pool.limits:
            used = self._of_pools.setdefault(pool.name, {})
            for key, amount in (("nodes", nodes), (resource or self._environment.gpu_resource, nodes * gpus_each)):
                used[key] = used.get(key, 0) + amount

    def _pool_of(self, owned: NodeClaim | NodePool) -> NodePool | None:
        offered = self._types.find(owned.instance_types[0]) if owned.instance_types else None
        if offered is None:
            return None
        try:
            access = self._environment.access_of(owned.owner[0])
        except KeyError:
            access = None
        return self._types.pool(offered, access, owned.allowed_values)


def nodes_of(
    claims: Iterable[NodeClaim], pools: Iterable[NodePool], resource: str, types: OfferedTypes
) -> Iterator[tuple[NodeClaim | NodePool, int, int, str]]:
    """Each NodeClaim, and each NodePool with the nodes that it has no NodeClaim for: (object, nodes, GPUs of each,
    resource of the GPUs where they are AMD's or Intel's)."""
    made: Counter[str] = Counter()

    def of_vendor(names: tuple[str, ...]) -> str:
        offered = types.find(names[0]) if names else None
        return offered.resource if offered is not None else ""

    for claim in claims:
        made[claim.labels.get(NODEPOOL, "")] += 1
        yield claim, 1, claim_gpus(claim, resource, types), of_vendor(claim.possible_types)
    for pool in pools:
        nodes = max(0, (pool.replicas or 0) - made[pool.name])
        yield pool, nodes, most_gpus(pool.instance_types, types), of_vendor(pool.instance_types)


def _devices(amounts: Mapping[str, str | int | float], key: str) -> int | None:
    """The whole number under a key; None if there is none."""
    amount = amounts.get(key)
    try:
        return None if amount is None else parse_devices(amount)
    except ValueError:
        return None


def environment_budget(view: ClusterView, overdue: Collection[str] = ()) -> Budget:
    """The limits' budget after everything that Plimsoll created, without the NodeClaims named in `overdue`."""
    own, types, settings, demand = view.ownership, view.types, view.settings, DemandUsage.of(view)

    def budget() -> Budget:
        counted = (claim for claim in own.claims if claim.name not in overdue)
        return Budget(settings, counted, own.pools, types, demand)

    return view.known.result("budget", (own, types, settings, demand, overdue), budget).copy()


def environment_room(view: ClusterView) -> Room:
    """What the Environment's limits leave for demand. Without limits, nothing is read."""
    limits = view.observed.environment.spec.limits
    return Room() if limits.gpus is None and limits.nodes is None else environment_budget(view).room()


def forbidden(workspace: Workspace, environment: EnvironmentSpec) -> Refusal | None:
    """A refusal if the Workspace uses something that its namespace may not use."""
    violation = tenancy_violation(
        environment,
        workspace.namespace,
        queue=workspace.spec.queue,
        labels=workspace.pod_labels,
        instance_types=workspace.spec.resource.named_types,
    )
    return None if violation is None else Refusal(Reason.NOT_ALLOWED, violation.message)


def reserved_keys(keys: Iterable[str], prefixes: tuple[str, ...]) -> list[str]:
    """Label keys that the environment reserves, sorted."""
    return sorted(key for key in keys if key.startswith(prefixes))
