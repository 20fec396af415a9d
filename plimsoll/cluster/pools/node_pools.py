"""The shapes of new nodes that the NodePools of a cluster allow."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from plimsoll.cluster.catalog import (
    CLOUDS,
    KWOK,
    OfferedType,
    OfferedTypes,
    label_requirements,
    reported_memory_mib,
    type_labels,
)
from plimsoll.cluster.nodes import GpuLabels, NodeIndex, index_of
from plimsoll.cluster.pods import may_name
from plimsoll.cluster.pools.overhead import DaemonOverhead, allocatable, capacity_memory_mib
from plimsoll.cluster.pools.shape import PoolShape, same_product
from plimsoll.labels import GPU_PRODUCT, GPU_RESOURCE, INSTANCE_TYPE, NODEPOOL, REQUEST, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import NodeRequirement, Taint
from plimsoll.packing.nodes import UNBOUNDED
from plimsoll.quantity import parse_cpu_milli, parse_devices, parse_memory_mib
from plimsoll.text import did_you_mean, nearest

KUBELET_PODS: Final = 110
"""The kubelet's default maximum of pods."""
_TOPOLOGY: Final = "topology.kubernetes.io/"
"""Prefix of labels that differ between the nodes of one node group, such as the zone."""
_PASSING: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)
"""Prefixes of taints that say how a node is now, and that Cluster Autoscaler does not expect of a new one."""


class PoolShapes:
    """Shapes of the NodePools; in a cluster without NodePools, those of its nodes."""

    def __init__(self, snapshot: Snapshot, index: NodeIndex | None = None) -> None:
        self._resource = snapshot.environment.spec.gpu_resource
        self._settings = snapshot.environment.spec.demand
        self._index = index or index_of(snapshot.nodes)
        self._types = OfferedTypes(snapshot, self._index)
        self._catalog = self._types.declared
        prices = snapshot.environment.spec.catalog.prices
        self._prices = {name.casefold(): price for name, price in prices.items()}
        self._unknown: list[str] = []
        scaled = (each for each in snapshot.node_pools if WORKSPACE not in each.labels and each.replicas is None)
        pools = sorted((pool for pool in scaled if not pool.deleting), key=lambda pool: pool.name)
        if snapshot.node_pools:
            found = [shape for pool in pools for shape in self._of_pool(pool)]
        else:
            found = list(self._of_nodes())
        unready = {pool.name: pool.unready for pool in pools if pool.unready}
        self._unknown += [f"{not_ready(*each)}: no nodes are requested from it" for each in unready.items()]
        daemons = DaemonOverhead(snapshot.daemon_sets)
        every = [shape.with_overhead(daemons.of_shape(shape)) for shape in found]
        self.shapes: tuple[PoolShape, ...] = tuple(shape for shape in every if shape.node_pool not in unready)
        """By NodePool, then by instance type."""
        self.unready: tuple[PoolShape, ...] = tuple(shape for shape in every if shape.node_pool in unready)
        """Those of NodePools that are not Ready: Karpenter creates no more such nodes for now."""
        offered = {shape.instance_type.casefold() for shape in every}
        self._unknown += [
            f"catalog.prices of the Environment: no NodePool offers instance type {name}"
            for name in sorted(self._prices)
            if name not in offered and not snapshot.environment.spec.auto_provisioning
        ]
        self._unknown += self._without_gpus(pools)
        self.warnings: tuple[str, ...] = tuple(dict.fromkeys(self._unknown))
        """Warnings on instance types and products that NodePools or the Environment name and that are not known."""

    def _without_gpus(self, pools: Iterable[NodePool]) -> Iterable[str]:
        """Warnings on products that have TFLOPS in the Environment, and that no known GPU has."""
        if not self._settings.gpu_tflops:
            return
        known = {*self._index.by_label(GPU_PRODUCT), *(each.product for each in self._catalog.types)}
        known |= {product for pool in pools for product in _NodeTemplate.by(pool).products}
        for name in sorted(self._settings.gpu_tflops):
            if not any(may_name(name, product) for product in known):
                near = did_you_mean(nearest(name, sorted(known)))
                yield (
                    f"demand.gpuTflops of the Environment: no node, NodePool or instance type of the catalog has GPU "
                    f"{name}" + (f" ({near})" if near else "")
                )

    def _of_pool(self, pool: NodePool) -> Iterable[PoolShape]:
        template = _NodeTemplate.by(pool)
        for name in self._names(pool):
            offered = self._types.find(name)
            if offered is None or all(each is not pool for each in offered.pools):
                continue
            if offered.gpus is None:
                self._unknown.append(
                    f"NodePool {pool.name}: the GPUs of instance type {name} are not known until a node of it exists"
                )
                continue
            listed = self._catalog.lookup(name)
            if self._resource == GPU_RESOURCE and listed is not None and not listed.nvidia:
                continue
            product = template.product_of(offered)
            if template.products and product is None:
                self._unknown.append(
                    f"NodePool {pool.name}: instance type {name} is skipped: it has {offered.gpus.product}, but the "
                    f"NodePool requires {', '.join(template.products)}"
                )
                continue
            if self._settings.sharing_of(pool.name, name).resource and REQUEST not in template.requirements:
                self._unknown.append(
                    f"NodePool {pool.name}: no nodes with shared devices (spec.demand.sharedDevices) are requested "
                    f"without the requirement {{key: {REQUEST}, operator: Exists}}: add it"
                )
                continue
            yield self._shape(template, name, offered, product)

    def _names(self, pool: NodePool) -> Iterable[str]:
        """Instance types that the pool names; if it names none, those of its cloud, as far as it is known, and of its
        nodes."""
        if pool.instance_types:
            return pool.instance_types
        group = pool.node_class_group
        known = group == KWOK or group in CLOUDS
        names = {each.name for each in self._catalog.types if group == KWOK or each.cloud == CLOUDS.get(group)}
        nodes = self._index.with_label(NODEPOOL, pool.name)
        names |= {node.instance_type for node in nodes if self._gpus(node) is not None}
        if not known and not nodes:
            self._unknown.append(
                f"NodePool {pool.name}: no nodes are requested from it, because the instance types of its cloud "
                f"({group or 'no nodeClassRef'}) are not known: require {INSTANCE_TYPE} In a list, or wait until it "
                "has a node with GPUs"
            )
        return sorted(filter(None, names))

    def _shape(
        self,
        template: "_NodeTemplate",
        name: str,
        offered: OfferedType,
        product: str | None,
    ) -> PoolShape:
        assert offered.gpus is not None
        live = self._types.nodes_of(name)
        listed = self._catalog.lookup(name)
        by_catalog = allocatable(listed)
        vcpus, nominal = (listed.vcpus or 0, listed.memory_mib or 0) if listed is not None else (0, 0)
        of_type = type_labels(template.pool.node_class_group, name, listed)
        return PoolShape(
            node_pool=template.pool.name,
            weight=template.pool.weight,
            instance_type=name,
            gpus=offered.gpus.count,
            kind=product or offered.gpus.product,
            gpu_memory_mib=_memory(offered),
            cpu_milli=_least(live, "cpu", parse_cpu_milli) or by_catalog.cpu_milli,
            memory_mib=_least(live, "memory", parse_memory_mib) or by_catalog.memory_mib,
            pods=_pods(live),
            capacity_cpu_milli=_least(live, "cpu", parse_cpu_milli, of=_capacity) or vcpus * 1000,
            capacity_memory_mib=_least(live, "memory", parse_memory_mib, of=_capacity) or capacity_memory_mib(nominal),
            price=self._price(name),
            sharing=self._settings.sharing_of(template.pool.name, name),
            taints=template.taints,
            labels={**of_type, **template.labels, INSTANCE_TYPE: name},
            requirements=template.requirements,
            discovered=product is not None or any(self._gpus(node) is not None for node in live),
        )

    def _price(self, name: str) -> float | None:
        """Of one node an hour: the Environment's price, else the catalog's."""
        listed = self._catalog.lookup(name)
        known = listed.price_per_hour if listed is not None else None
        return self._prices.get(name.casefold(), known)

    def _of_nodes(self) -> Iterable[PoolShape]:
        """A shape for each instance type of nodes with GPUs, if the autoscaler's node groups are not visible."""
        for name, nodes in sorted(self._index.by_label(INSTANCE_TYPE).items()):
            usual = self._index.usual_gpus((name,))
            like_most = (each for each in self._whole(nodes) if each[1] == usual)
            node, gpus = next(like_most, None) or next(self._whole(nodes), (None, None))
            if node is None or gpus is None:
                continue
            places = {key: _values(nodes, key) for key in node.labels if key.startswith(_TOPOLOGY)}
            open_to = {key: (NodeRequirement(key, "In", of),) for key, of in places.items() if len(of) > 1}
            yield PoolShape(
                node_pool="",
                weight=0,
                instance_type=name,
                price=self._price(name),
                gpus=gpus.count,
                kind=gpus.product,
                gpu_memory_mib=gpus.memory_mib,
                cpu_milli=_least(nodes, "cpu", parse_cpu_milli) or UNBOUNDED,
                memory_mib=_least(nodes, "memory", parse_memory_mib) or UNBOUNDED,
                pods=_pods(nodes),
                taints=tuple(each for each in node.taints if not each.key.startswith(_PASSING)),
                labels={key: value for key, value in node.labels.items() if key not in open_to},
                requirements=open_to,
                discovered=True,
            )

    def _whole(self, nodes: Iterable[Node]) -> Iterator[tuple[Node, GpuLabels]]:
        """The nodes whose GPUs are not shared, and that stay."""
        for node in nodes:
            gpus = self._gpus(node)
            if gpus is not None and not gpus.shared and not node.deleting:
                yield node, gpus

    def _gpus(self, node: Node) -> GpuLabels | None:
        found = self._index.gpus(node)
        return found if isinstance(found, GpuLabels) else None


def not_ready(name: str, why: str) -> str:
    """That the NodePool is not Ready, with the reason."""
    return f"NodePool {name} is not Ready ({why})"


@dataclass(frozen=True, slots=True)
class _NodeTemplate:
    """The labels, requirements and taints of a NodePool's nodes."""

    pool: NodePool
    labels: Mapping[str, str]
    """Labels that every node has."""
    requirements: Mapping[str, tuple[NodeRequirement, ...]]
    """By label."""
    taints: tuple[Taint, ...]

    @classmethod
    def by(cls, pool: NodePool) -> "_NodeTemplate":
        requirements = label_requirements(pool)
        labels = {**pool.template_labels, NODEPOOL: pool.name}
        for key, several in requirements.items():
            if len(several) == 1 and several[0].operator == "In" and len(several[0].values) == 1:
                labels.setdefault(key, several[0].values[0])
        return cls(pool, labels, requirements, pool.taints)

    @property
    def products(self) -> tuple[str, ...]:
        """GPU products that the nodes may have; empty if it does not restrict them."""
        if GPU_PRODUCT in self.labels:
            return (self.labels[GPU_PRODUCT],)
        return next((each.values for each in self.requirements.get(GPU_PRODUCT, ()) if each.operator == "In"), ())

    def product_of(self, offered: OfferedType) -> str | None:
        """The NodePool's product for an instance type; None if none fits."""
        assert offered.gpus is not None
        listed = offered.gpus.product
        return next((each for each in self.products if same_product(listed, each, _memory(offered))), None)


def _memory(offered: OfferedType) -> int | None:
    """MiB of one of its GPUs, as GPU Feature Discovery will label it."""
    if offered.gpus is None or not offered.gpus.memory_mib:
        return None
    return reported_memory_mib(offered.gpus.product, int(offered.gpus.memory_mib))


def _values(nodes: Iterable[Node], key: str) -> tuple[str, ...]:
    """The values of a label on the nodes that have it, sorted."""
    return tuple(sorted({node.labels[key] for node in nodes if key in node.labels}))


def _pods(nodes: Iterable[Node]) -> int:
    """Pods that such a node takes."""
    return _least(nodes, "pods", parse_devices) or KUBELET_PODS


_allocatable: Final = attrgetter("allocatable")
_capacity: Final = attrgetter("capacity")


def _least(nodes: Iterable[Node], resource: str, parse: Any, of: Any = _allocatable) -> int:
    """The minimum of a resource that these nodes offer; 0 if none reports it."""
    amounts = []
    for node in nodes:
        amount = of(node).get(resource)
        if amount is not None:
            try:
                amounts.append(parse(amount))
            except ValueError:
                continue
    return min(amounts, default=0)
