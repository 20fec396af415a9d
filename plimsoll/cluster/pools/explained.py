"""What is known of the nodes of one NodePool and instance type, each fact with where it comes from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from plimsoll.cluster.catalog import Catalog, OfferedTypes
from plimsoll.cluster.nodes import NodeIndex, index_of
from plimsoll.cluster.pools.pool_profiles import PoolProfiles
from plimsoll.cluster.pools.seen_nodes import SeenNodes
from plimsoll.cluster.profiles import Finding, NodeProfile, Said, Source, discovery_of
from plimsoll.errors import PlimsollError
from plimsoll.labels import GPU_MEMORY, GPU_PRODUCT, NODEPOOL
from plimsoll.model import Snapshot
from plimsoll.model.api import KnownNodeProfile
from plimsoll.model.cluster import VENDOR_RESOURCES
from plimsoll.model.meta import EPHEMERAL_STORAGE
from plimsoll.packing import UNBOUNDED
from plimsoll.text import did_you_mean, nearest, shortlist


class Fact(NamedTuple):
    """One label, amount or device of such nodes."""

    name: str
    value: str
    source: Source
    where: str
    """The object, or the row of the catalog, that says it."""


@dataclass(frozen=True)
class ProfileFacts:
    """The profile of new nodes of a NodePool and instance type, with its sources."""

    profile: NodeProfile
    devices: Fact
    labels: tuple[Fact, ...]
    open: Mapping[str, tuple[str, ...]]
    """Labels that the provider chooses, with the conditions by which the NodePool restricts them."""
    allocatable: tuple[Fact, ...]
    """What pods and DaemonSets can use of one node: thousandths of a CPU, MiB, pods."""
    price: Fact | None
    """Per hour; None if no source has one."""
    known: KnownNodeProfile | None
    """Its NodeProfile, if there is one."""
    findings: tuple[tuple[str, Finding], ...]
    """What its nodes that exist contradict themselves in, by node."""


def profile_facts(snapshot: Snapshot, node_pool: str, instance_type: str) -> ProfileFacts:
    """Raises PlimsollError if there is no such NodePool, or it offers no such type with known GPUs."""
    index = index_of(snapshot.nodes)
    profiles = PoolProfiles(snapshot, index)
    profile = _found(snapshot, profiles, node_pool, instance_type)
    return _Facts(snapshot, index, profile).all()


def _found(snapshot: Snapshot, profiles: PoolProfiles, node_pool: str, instance_type: str) -> NodeProfile:
    pools = sorted(pool.name for pool in snapshot.node_pools)
    if node_pool not in pools:
        raise PlimsollError(
            f"NodePool {node_pool!r} not found",
            did_you_mean(nearest(node_pool, pools)) or f"existing NodePools: {shortlist(pools) or 'none'}",
        )
    types = {profile.instance_type: profile for profile in profiles.every if profile.node_pool == node_pool}
    profile = next((types[name] for name in types if name.casefold() == instance_type.casefold()), None)
    if profile is not None:
        return profile
    why = [warning for warning in profiles.warnings if f"NodePool {node_pool}:" in warning and instance_type in warning]
    if why:
        raise PlimsollError(f"{node_pool}/{instance_type}: no profile", "; ".join(why))
    raise PlimsollError(
        f"NodePool {node_pool} has no profile of instance type {instance_type!r}",
        did_you_mean(nearest(instance_type, sorted(types)))
        or f"its instance types with known GPUs: {shortlist(sorted(types)) or 'none'}",
    )


class _Facts:
    """The sources of one profile, in the order in which they count."""

    def __init__(self, snapshot: Snapshot, index: NodeIndex, profile: NodeProfile) -> None:
        self._profile = profile
        self._environment = snapshot.environment
        pool = next(pool for pool in snapshot.node_pools if pool.name == profile.node_pool)
        types = OfferedTypes(snapshot, index)
        self._own = [node for node in types.nodes_of(profile.instance_type) if node.labels.get(NODEPOOL) == pool.name]
        self._catalog: Catalog = types.declared
        self._known = SeenNodes(index, snapshot.node_profiles).profile(pool.name, profile.instance_type)

    def all(self) -> ProfileFacts:
        labels = tuple(self._label(key, value) for key, value in sorted(self._profile.labels.items()))
        requirements = sorted(self._profile.requirements.items())
        return ProfileFacts(
            profile=self._profile,
            devices=self._devices(),
            labels=labels,
            open={key: tuple(map(str, of)) for key, of in requirements if key not in self._profile.labels},
            allocatable=tuple(self._amounts()),
            price=self._price(),
            known=self._known,
            findings=tuple((node.name, finding) for node in self._own for finding in discovery_of(node).findings),
        )

    def _label(self, key: str, value: str) -> Fact:
        said = next(source for source in self._profile.said if key in source.labels)
        return Fact(key, value, said.source, self._where(said, key))

    def _where(self, said: Said, key: str = "") -> str:
        """The source, with the node and the time of what was learned, and how a figure of the catalog is known."""
        learned = self._known.status.learned if self._known is not None else None
        if said.source is Source.LEARNED and learned is not None:
            return f"{said.where}: node {learned.node or 'not named'}{f' at {learned.seen}' if learned.seen else ''}"
        return self._row(key) if said.source is Source.CATALOG and said.labels else said.where

    def _row(self, key: str = "") -> str:
        """The row of the catalog, with how its figure is known where that is recorded."""
        listed = self._catalog.lookup(self._profile.instance_type)
        name = f"type {self._profile.instance_type}"
        evidence = {}
        if listed is not None:
            evidence = {GPU_PRODUCT: listed.product_source, GPU_MEMORY: listed.memory_source}
        return f"{name}, {evidence[key]}" if key in evidence else name

    def _devices(self) -> Fact:
        device = self._profile.device
        sharing = self._environment.spec.demand.sharing_of(self._profile.node_pool, self._profile.instance_type)
        if sharing.resource:
            where = f"spec.demand.sharedDevices of Environment {self._environment.name}"
            return Fact(sharing.resource, str(device), Source.DECLARED, where)
        resource = device.resource or self._environment.spec.gpu_resource
        if resource in VENDOR_RESOURCES and device.claimable is None:
            said = next(source for source in self._profile.said if resource in source.allocatable)
            return Fact(resource, str(device), said.source, self._where(said))
        product = next(
            (self._label(key, value) for key, value in self._profile.labels.items() if key == GPU_PRODUCT), None
        )
        source, where = (
            (product.source, product.where) if product is not None else (Source.CATALOG, self._row(GPU_PRODUCT))
        )
        return Fact(resource, str(device), source, where)

    def _amounts(self) -> Iterator[Fact]:
        profile = self._profile
        values = {
            "cpu": f"{profile.node_cpu_milli}m",
            "memory": f"{profile.node_memory_mib}Mi",
            "pods": str(profile.pods + profile.overhead.pods),
        }
        if profile.node_storage_mib < UNBOUNDED:
            values[EPHEMERAL_STORAGE] = f"{profile.node_storage_mib}Mi"
        for name, value in values.items():
            said = next((source for source in profile.said if name in source.allocatable), None)
            catalog = Source.CATALOG, self._row()
            yield Fact(name, value, *(catalog if said is None else (said.source, self._where(said))))

    def _price(self) -> Fact | None:
        priced = {name.casefold() for name in self._environment.spec.catalog.prices}
        name = self._profile.instance_type
        listed = self._catalog.lookup(name)
        if self._profile.price is not None:
            by_environment = name.casefold() in priced
            currency = self._environment.spec.catalog.currency or ""
            source = Source.DECLARED if by_environment else Source.CATALOG
            where = f"catalog.prices of Environment {self._environment.name}" if by_environment else self._row()
            return Fact("price", f"{self._profile.price:g} {currency}".strip(), source, where)
        if listed is not None and listed.list_price is not None:
            price = listed.list_price
            where = f"{self._row()}, list price of {price.region}" + (f", {price.date}" if price.date else "")
            where += f", less {price.discount:g} %" if price.discount else ""
            return Fact("price", f"{price.amount:g} {price.currency}", Source.CATALOG, where)
        return None
