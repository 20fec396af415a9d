"""The instance types that an environment can have: its NodePools' and live nodes', and the catalog's."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from plimsoll.model.environment import EnvironmentSpec, NamespaceAccess, NodeClassRef
from plimsoll.model.labels import INSTANCE_TYPE, WORKSPACE
from plimsoll.model.node_pool import NodePool
from plimsoll.plan.catalog import Catalog, InstanceType, nearest
from plimsoll.plan.estimator import NodeGpus
from plimsoll.plan.gpu_labels import GpuLabels
from plimsoll.plan.node_index import NodeIndex

NODE_CLASSES: Final = {
    "azure": NodeClassRef(group="kaito.sh", kind="KaitoNodeClass"),
    "aws": NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass"),
}
"""Node class by the catalog's cloud, as KAITO names them; the object is called `default`."""


class OfferedType(NamedTuple):
    """One instance type; its GPUs are None where only a NodePool or a node without GFD labels names it."""

    name: str
    """As a NodePool spells it, else the catalog, else a node."""
    spellings: tuple[str, ...]
    """The name, then others that live nodes carry: clouds are not of one mind about case."""
    cloud: str
    gpus: NodeGpus | None
    devices: int | None
    """Devices of the extended resource that a live node offers, more than GPUs where they are shared."""
    claimable: int | None
    """Devices that a NodeClaim may ask for: the cloud knows whole GPUs only, not how they will be shared."""
    pools: tuple[NodePool, ...]
    """NodePools that name it, heaviest first."""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.gpus is None:
            return self.name
        return f"{self.name} ({self.gpus.count} x {self.gpus.product} of {self.gpus.memory_mib:.0f} MiB)"


class OfferedTypes:
    """Looks instance types up, case aside: the live label wins over the catalog's figures."""

    def __init__(self, catalog: Catalog, pools: Iterable[NodePool], index: NodeIndex) -> None:
        self._catalog = catalog
        self._index = index
        # A NodePool of ours is a Workspace's alone.
        self._pools = sorted(
            (pool for pool in pools if WORKSPACE not in pool.labels), key=lambda pool: (-pool.weight, pool.name)
        )
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

    def find(self, name: str) -> OfferedType | None:
        """The type of that name, case aside; None where nobody offers it."""
        folded = name.strip().casefold()
        if folded not in self._found:
            self._found[folded] = self._find(folded)
        return self._found[folded]

    def _find(self, folded: str) -> OfferedType | None:
        listed = self._catalog.lookup(folded)
        on_nodes = self._on_nodes.get(folded, [])
        name = self._in_pools.get(folded) or (listed.name if listed is not None else next(iter(on_nodes), None))
        if name is None:
            return None
        spellings = (name, *(each for each in on_nodes if each != name))
        pools = tuple(self._by_pool.get(folded, ()))
        cloud = listed.cloud if listed else ""
        labels = self._discovered(on_nodes)
        if labels is not None:
            live = InstanceType(name, "", labels.count, labels.memory_mib, labels.product, source="the live nodes")
            differences = self._catalog.with_types([live]).differences
            warnings = tuple(str(each) for each in differences if each.live.name.casefold() == folded)
            gpus = NodeGpus(labels.count, labels.memory_mib, labels.product)
            claimable = labels.count if listed is None else listed.gpus
            return OfferedType(name, spellings, cloud, gpus, labels.devices, claimable, pools, warnings)
        if listed is not None:
            return OfferedType(name, spellings, cloud, listed.node_gpus, listed.gpus, listed.gpus, pools)
        return OfferedType(name, spellings, cloud, None, None, None, pools)

    def _discovered(self, names: list[str]) -> GpuLabels | None:
        for name in names:
            for node in self._index.with_label(INSTANCE_TYPE, name):
                labels = self._index.gpus(node)
                if isinstance(labels, GpuLabels):
                    return labels
        return None

    def near(self, name: str) -> tuple[str, ...]:
        """At most three names that could have been meant, the nearest first."""
        known = {each.name.casefold(): each.name for each in self._catalog.types}
        return nearest(name, list((self._here() | known).values()))

    def named_here(self) -> tuple[str, ...]:
        """Types that a NodePool or a node of the environment names, sorted."""
        return tuple(sorted(self._here().values()))

    def _here(self) -> dict[str, str]:
        return {folded: names[0] for folded, names in self._on_nodes.items()} | self._in_pools

    def node_class_ref(
        self, offered: OfferedType, environment: EnvironmentSpec, access: NamespaceAccess | None
    ) -> NodeClassRef | None:
        """The node class for a claim: the environment's, else of a NodePool that allows the type, else by the cloud."""
        if environment.node_claims.node_class_ref is not None:
            return environment.node_claims.node_class_ref
        pool = self.pool(offered, access)
        if pool is not None and pool.node_class_ref is not None:
            return NodeClassRef.model_validate(pool.node_class_ref)
        return NODE_CLASSES.get(offered.cloud)

    def pool(self, offered: OfferedType, access: NamespaceAccess | None) -> NodePool | None:
        """The NodePool that allows the type: it lends its node class, and its limits hold for what is made of it.

        Those that name the type come first, then those that name none and so allow every one.
        """
        allowed = None if access is None else access.node_pools
        for pool in (*offered.pools, *(pool for pool in self._pools if not pool.instance_types)):
            if pool.node_class_ref is not None and (allowed is None or pool.name in allowed):
                return pool
        return None
