"""The instance types that an Environment can use: those of its NodePools, its nodes, and the catalog."""

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Final, NamedTuple

from plimsoll.cluster.catalog.catalog import Catalog, Difference
from plimsoll.cluster.catalog.pool_types import allows_type, label_requirements
from plimsoll.cluster.catalog.provider_labels import CLOUDS
from plimsoll.cluster.nodes import SHARED_PRODUCT, GpuLabels, NodeIndex, parse_gpu_labels
from plimsoll.labels import INSTANCE_TYPE, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec, NamespaceAccess, NodeClassRef
from plimsoll.model.cluster import InstanceType, Node, NodeGpus
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.quantity import parse_devices
from plimsoll.text import nearest

NODE_CLASSES: Final = {
    "azure": NodeClassRef(group="kaito.sh", kind="KaitoNodeClass"),
    "aws": NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass"),
}
"""Node class by cloud, named as in KAITO; the object is called `default`."""

_AZURE_NAME: Final = re.compile(r"Standard_[ND]\w+", re.IGNORECASE)
NODES: Final = "the live nodes"
"""Source name of figures from node labels."""


class OfferedType(NamedTuple):
    """One instance type. Its GPUs are None where only a NodePool or a node without GFD labels names it."""

    name: str
    """Spelling of a NodePool, else the catalog, else a node."""
    written: tuple[str, ...]
    """Spellings that do not depend on nodes: the catalog's, else a NodePool's; and in lower case."""
    cloud: str
    gpus: NodeGpus | None
    devices: int | None
    """Devices of the extended resource on most live nodes; more than GPUs where GPUs are shared."""
    claimable: int | None
    """Devices that a NodeClaim may request: whole GPUs, because Karpenter does not know how they will be shared."""
    pools: tuple[NodePool, ...]
    """NodePools that allow the type: those that name it, then those that name none; highest weight first."""
    source: str = ""
    """Source of the GPU figures; empty where there are none."""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.gpus is None:
            return self.name
        return f"{self.name} ({self.gpus.count} x {self.gpus.product} of {self.gpus.memory_mib:.0f} MiB)"

    def spellings(self, written: str) -> tuple[str, ...]:
        """Label values that stand for the type, with the spelling of a Workspace; sorted.

        Clouds differ in case. Nodes do not count, because a pod template must not change with them.
        """
        return tuple(sorted({*self.written, written.strip()}))


class OfferedTypes:
    """Finds instance types, case-insensitive: labels of nodes take precedence over NodePools, then the catalog."""

    def __init__(self, snapshot: Snapshot, index: NodeIndex) -> None:
        self.declared = Catalog.of(snapshot)
        """The catalog without the figures of nodes and NodePools."""
        self._prices = snapshot.environment.spec.catalog.prices
        self._index = index
        # A NodePool that Plimsoll created serves one Workspace only.
        self._pools = sorted(
            (pool for pool in snapshot.node_pools if WORKSPACE not in pool.labels and not pool.deleting),
            key=lambda pool: (-pool.weight, pool.name),
        )
        self._requirements = {pool.name: label_requirements(pool) for pool in self._pools}
        self._found: dict[str, OfferedType | None] = {}
        self._by_pool: dict[str, list[NodePool]] = {}
        self._on_nodes: dict[str, list[str]] = {}
        """Spellings on nodes, by the name in lower case."""
        for name in sorted(index.by_label(INSTANCE_TYPE)):
            self._on_nodes.setdefault(name.casefold(), []).append(name)
        self._in_pools: dict[str, str] = {}
        for pool in self._pools:
            for name in pool.instance_types:
                self._in_pools.setdefault(name.casefold(), name)
                self._by_pool.setdefault(name.casefold(), []).append(pool)

    @property
    def limited_pools(self) -> bool:
        """Whether any NodePool has limits."""
        return any(pool.limits for pool in self._pools)

    @cached_property
    def catalog(self) -> Catalog:
        """Every type with its effective figures: those of nodes and NodePools are merged over the declared ones."""
        here = [self._merged(folded) for folded in sorted({*self._on_nodes, *self._in_pools})]
        everything = self.declared.with_types(merged for merged, _ in here if merged is not None)
        return everything.with_prices({name: price for name, price in self._prices.items() if everything.lookup(name)})

    def unknown_prices(self) -> tuple[str, ...]:
        """Types that have a price in the Environment and are not known; sorted."""
        return tuple(sorted(name for name in self._prices if self.find(name) is None))

    def find(self, name: str) -> OfferedType | None:
        """The type of that name, case-insensitive; None if it is not known."""
        folded = self.declared.real_name(name.strip()).casefold()
        if folded not in self._found:
            self._found[folded] = self._find(folded) or self._unlisted(name.strip())
        return self._found[folded]

    def _find(self, folded: str) -> OfferedType | None:
        listed = self.declared.lookup(folded)
        on_nodes = self._on_nodes.get(folded, [])
        in_pools = self._in_pools.get(folded)
        name = in_pools or (listed.name if listed is not None else next(iter(on_nodes), None))
        if name is None:
            return None
        written = listed.name if listed is not None else in_pools or folded
        merged, differences = self._merged(folded)
        labels = self._index.usual_gpus(tuple(on_nodes))
        cloud = listed.cloud if listed is not None else ""
        return OfferedType(
            name=name,
            written=tuple(dict.fromkeys((written, folded))),
            cloud=cloud,
            gpus=merged.node_gpus if merged is not None else None,
            devices=labels.devices if labels is not None else merged.gpus if merged is not None else None,
            claimable=listed.gpus if listed is not None else merged.gpus if merged is not None else None,
            pools=self._allowing(name, cloud, listed),
            source=merged.source if merged is not None else "",
            warnings=tuple(map(str, differences)),
        )

    def _unlisted(self, name: str) -> OfferedType | None:
        """A type of Azure of which only the name is known, where a NodePool there allows it."""
        pools = self._allowing(name, "azure", None) if unlisted_azure(name) else ()
        if not any(CLOUDS.get(pool.node_class_group) == "azure" for pool in pools):
            return None
        written = (name, name.casefold())
        return OfferedType(name, written, "azure", gpus=None, devices=None, claimable=None, pools=pools)

    def _allowing(self, name: str, cloud: str, listed: InstanceType | None) -> tuple[NodePool, ...]:
        """The NodePools that allow a type; see `OfferedType.pools`."""
        pools = (*self._by_pool.get(name.casefold(), ()), *(pool for pool in self._pools if not pool.instance_types))
        return tuple(pool for pool in pools if allows_type(pool, self._requirements[pool.name], name, cloud, listed))

    def _merged(self, folded: str) -> tuple[InstanceType | None, tuple[Difference, ...]]:
        """The effective figures and the contradictions between sources; None where there are none."""
        listed = self.declared.lookup(folded)
        reported = [each for each in (self._by_pools(folded), self._by_nodes(folded)) if each is not None]
        found = Catalog([] if listed is None else [listed]).with_types(reported)
        earlier = (each for each in self.declared.differences if each.live.name.casefold() == folded)
        return found.lookup(folded), (*earlier, *found.differences)

    def _by_nodes(self, folded: str) -> InstanceType | None:
        labels = self._index.usual_gpus(tuple(self._on_nodes.get(folded, ())))
        if labels is None:
            return None
        name, product = self._on_nodes[folded][0], labels.product.removesuffix(SHARED_PRODUCT)
        return InstanceType(name, "", labels.count, labels.memory_mib, product, source=NODES)

    def _by_pools(self, folded: str) -> InstanceType | None:
        """The GPUs that the labels of a NodePool's template declare."""
        for pool in self._by_pool.get(folded, ()):
            labels = parse_gpu_labels(pool.template_labels)
            if isinstance(labels, GpuLabels):
                name = self._in_pools[folded]
                source = f"NodePool {pool.name}"
                return InstanceType(name, "", labels.count, labels.memory_mib, labels.product, source=source)
        return None

    def nodes_of(self, name: str) -> list[Node]:
        """Nodes of the type, case-insensitive, sorted by the spelling of their label, then by name."""
        spelled = self._on_nodes.get(name.strip().casefold(), ())
        return [node for each in spelled for node in self._index.with_label(INSTANCE_TYPE, each)]

    def near(self, name: str) -> tuple[str, ...]:
        """At most three similar names, closest first."""
        known = {each.name.casefold(): each.name for each in self.declared.types if each.nvidia}
        return nearest(name, list((self._observed_names() | known).values()))

    def named_for(self, access: NamespaceAccess | None) -> tuple[str, ...] | None:
        """Types that nodes, or NodePools that the namespace may use, name; sorted. None where such a NodePool names
        none and allows a known type with GPUs, or nothing is named."""
        pools = [pool for pool in self._pools if access is None or access.allows_pool(pool.name)]
        if any(not pool.instance_types and self._allows_any(pool) for pool in pools):
            return None
        named = {name.casefold(): name for pool in pools for name in pool.instance_types}
        return tuple(sorted(({folded: names[0] for folded, names in self._on_nodes.items()} | named).values())) or None

    def _allows_any(self, pool: NodePool) -> bool:
        """Whether the NodePool allows a known type with NVIDIA GPUs."""
        known = (each for each in self.declared.types if each.nvidia)
        return any(allows_type(pool, self._requirements[pool.name], each.name, each.cloud, each) for each in known)

    def clouds(self, environment: EnvironmentSpec) -> frozenset[str]:
        """The clouds of the environment, from its node classes, else its nodes; empty where they are not known."""
        declared = environment.node_claims.node_class_ref
        groups = [declared.group] if declared is not None else [pool.node_class_group for pool in self._pools]
        clouds = {cloud for group in groups if (cloud := CLOUDS.get(group))}
        if not clouds:
            provider = next((node.provider_id for node in self._index.nodes if node.provider_id), "")
            clouds = {cloud for cloud in NODE_CLASSES if provider.startswith(f"{cloud}://")}
        return frozenset(clouds)

    def _observed_names(self) -> dict[str, str]:
        return {folded: names[0] for folded, names in self._on_nodes.items()} | self._in_pools

    def node_class_ref(
        self, offered: OfferedType, environment: EnvironmentSpec, access: NamespaceAccess | None
    ) -> NodeClassRef | None:
        """The node class for a NodeClaim: the Environment's, else that of a NodePool that allows the type, else the
        cloud's."""
        if environment.node_claims.node_class_ref is not None:
            return environment.node_claims.node_class_ref
        pool = self.pool(offered, access)
        return NODE_CLASSES.get(offered.cloud) if pool is None else NodeClassRef.model_validate(pool.node_class_ref)

    def pool(self, offered: OfferedType, access: NamespaceAccess | None) -> NodePool | None:
        """The first NodePool with a node class that allows the type, Ready or not: NodeClaims of the type use its node
        class and count against its limits, and neither may change from one moment to the next."""
        allowed = (pool for pool in offered.pools if access is None or access.allows_pool(pool.name))
        return next((pool for pool in allowed if pool.node_class_ref is not None), None)


def unlisted_azure(name: str) -> bool:
    """Whether the name is of Azure's families N and D, which KAITO accepts without knowing the type."""
    return _AZURE_NAME.fullmatch(name) is not None


def claim_gpus(claim: NodeClaim, resource: str, types: OfferedTypes) -> int:
    """GPU devices of a NodeClaim: those that it requests, else those of the launched instance type; before the launch,
    of the largest that it allows."""
    resources = claim.spec.get("resources")
    requests = resources.get("requests") if isinstance(resources, dict) else None
    amount = requests.get(resource) if isinstance(requests, dict) else None
    if amount is not None:
        try:
            return parse_devices(amount)
        except ValueError:
            pass
    return most_gpus(claim.possible_types, types)


def most_gpus(instance_types: Iterable[str], types: OfferedTypes) -> int:
    """GPUs of the largest of the types, as far as they are known."""
    found = [each.claimable or 0 for name in instance_types if (each := types.find(name)) is not None]
    return max(found, default=0)
