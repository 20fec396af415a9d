"""The profiles of new nodes that the NodePools of a cluster allow."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from plimsoll.cluster.catalog import (
    CLOUDS,
    KWOK,
    NodeTemplate,
    OfferedTypes,
    catalogued,
    discovery_labels,
    launched_for_gpus,
    type_labels,
)
from plimsoll.cluster.claims import served
from plimsoll.cluster.nodes import NodeIndex, index_of
from plimsoll.cluster.pods import may_name
from plimsoll.cluster.pools.overhead import DaemonOverhead, capacity_memory_mib, listed_amounts
from plimsoll.cluster.pools.seen_nodes import SeenNodes
from plimsoll.cluster.pools.unknown import unknown_pools
from plimsoll.cluster.pools.vendor_pools import planned_vendors
from plimsoll.cluster.profiles import (
    ALL_DISABLED,
    HOST,
    MIG_CONFIG_STATE,
    NodeProfile,
    Said,
    Source,
    discovery_of,
    is_gpu,
    least_amounts,
    read_discovery,
)
from plimsoll.labels import (
    GPU_PRODUCT,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    MIG_CONFIG,
    MIG_PREFIX,
    NODEPOOL,
    REQUEST,
    WORKSPACE,
)
from plimsoll.model import Snapshot
from plimsoll.model.api import DemandProvisioner
from plimsoll.model.cluster import Device, Division, InstanceType, Node
from plimsoll.model.dra import Claimable
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import EPHEMERAL_STORAGE, NodeRequirement
from plimsoll.packing import UNBOUNDED
from plimsoll.quantity import amount_in
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


class PoolProfiles:
    """Profiles of new nodes of the NodePools; in a cluster without NodePools, of nodes like the existing ones."""

    def __init__(self, snapshot: Snapshot, index: NodeIndex | None = None) -> None:
        self._resource = snapshot.environment.spec.gpu_resource
        self._settings = snapshot.environment.spec.demand
        self._index = index or index_of(snapshot.nodes)
        self._types = OfferedTypes(snapshot, self._index)
        self._seen = SeenNodes(self._index, snapshot.node_profiles)
        self._catalog = self._types.declared
        prices = snapshot.environment.spec.catalog.prices
        self._prices = {name.casefold(): price for name, price in prices.items()}
        self._classes = snapshot.device_classes
        self._vendors = planned_vendors(snapshot)
        self._unknown: list[str] = []
        scaled = (pool for pool in snapshot.node_pools if WORKSPACE not in pool.labels and pool.replicas is None)
        pools = sorted((pool for pool in scaled if not pool.deleting), key=lambda pool: pool.name)
        if snapshot.node_pools:
            profiles = [profile for pool in pools for profile in self._of_pool(pool)]
        else:
            profiles = list(self._of_nodes())
        unready = {pool.name: pool.unready for pool in pools if pool.unready}
        self._unknown += [f"{not_ready(name, why)}: no nodes are requested from it" for name, why in unready.items()]
        daemons = DaemonOverhead(snapshot.daemon_sets)
        every = [profile.with_overhead(daemons.of_profile(profile)) for profile in profiles]
        self.every: tuple[NodeProfile, ...] = tuple(every)
        """All of them, by NodePool, then by instance type."""
        ready = [profile for profile in every if profile.node_pool not in unready]
        self.shapes: tuple[NodeProfile, ...] = tuple(profile for profile in ready if not profile.divided)
        """Nodes that can be requested for shares, by NodePool, then by instance type."""
        self.divided: tuple[NodeProfile, ...] = tuple(profile for profile in ready if profile.divided)
        """Nodes whose GPUs pods cannot share."""
        self.unready: tuple[NodeProfile, ...] = tuple(
            profile for profile in every if profile.node_pool in unready and not profile.divided
        )
        """Those of NodePools that are not Ready: Karpenter creates no more such nodes for now."""
        offered = {profile.instance_type.casefold() for profile in every}
        self._unknown += [
            f"catalog.prices of the Environment: no NodePool offers instance type {name}"
            for name in sorted(self._prices)
            if name not in offered and not snapshot.environment.spec.auto_provisioning
        ]
        self._unknown += self._without_gpus(pools)
        self._unknown += unknown_pools(snapshot)
        self.warnings: tuple[str, ...] = tuple(dict.fromkeys(self._unknown))
        """Warnings on instance types and products that NodePools or the Environment name and that are not known."""

    def _without_gpus(self, pools: Iterable[NodePool]) -> Iterable[str]:
        """Warnings on products that have TFLOPS in the Environment, and that no known GPU has."""
        if not self._settings.gpu_tflops:
            return
        known = {*self._index.by_label(GPU_PRODUCT), *(listed.product for listed in self._catalog.types)}
        known |= {product for pool in pools for product in NodeTemplate.by(pool).products}
        for name in sorted(self._settings.gpu_tflops):
            if not any(may_name(name, product) for product in known):
                near = did_you_mean(nearest(name, sorted(known)))
                yield (
                    f"demand.gpuTflops of the Environment: no node, NodePool or instance type of the catalog has GPU "
                    f"{name}" + (f" ({near})" if near else "")
                )

    def _of_pool(self, pool: NodePool) -> Iterable[NodeProfile]:
        template = NodeTemplate.by(pool)
        for name in self._names(pool):
            seen = self._seen.of(template, name)
            gpus = self._of_vendor(template, name, seen)
            if gpus is not None:
                yield self._profile_of_vendor(template, name, gpus, seen)
            elif (profile := self._of_type(template, name, seen)) is not None:
                yield profile

    def _of_type(self, template: NodeTemplate, name: str, seen: Said | None) -> NodeProfile | None:
        """A node with GPUs of NVIDIA, or that pods claim; None where none is requested, for what a warning says."""
        pool = template.pool
        offered = self._types.find(name)
        if offered is None or all(allowing is not pool for allowing in offered.pools):
            return None
        if offered.resource or (offered.kind is None and self._catalog.other_vendor(name)):
            return None
        if offered.kind is None:
            self._unknown.append(
                f"NodePool {pool.name}: the GPUs of instance type {name} are not known until a node of it exists: "
                f"{self._types.how_to_know(name, pool)}"
            )
            return None
        listed = self._catalog.lookup(name)
        claimed = self._claimed(pool.name, name, offered.kind, seen)
        if not claimed and self._resource == GPU_RESOURCE and listed is not None and not listed.nvidia:
            return None
        shared = self._settings.sharing_of(pool.name, name).resource
        refused = self._why_not_claimed(template, name) if claimed is not None else ""
        if refused:
            self._unknown.append(refused)
        if shared and REQUEST not in template.requirements:
            self._unknown.append(
                f"NodePool {pool.name}: no nodes with shared devices (spec.demand.sharedDevices) are requested "
                f"without the requirement {{key: {REQUEST}, operator: Exists}}: add it"
            )
            return None
        asked_as_gpus = not shared and claimed is None
        if listed is not None and asked_as_gpus and not launched_for_gpus(listed, pool.node_class_group):
            self._unknown.append(
                f"NodePool {pool.name}: no nodes of instance type {name} are requested from it, because Karpenter "
                "counts no GPU on this type and launches none for pods that ask for GPUs"
            )
            return None
        said = tuple(self._said(template, name, offered.kind, seen, claimed))
        labels = {key: value for source in reversed(said) for key, value in source.labels.items()}
        discovered = labels if seen is None else seen.labels
        product = discovered.get(GPU_PRODUCT, "") if claimed is None else claimed.product
        if not template.allows_product(product):
            self._unknown.append(
                f"NodePool {pool.name}: instance type {name} is skipped: it has {product}, but the NodePool "
                f"requires {', '.join(template.products)}"
            )
            return None
        wrong = read_discovery(discovered, {}, self._resource).labels.invalid
        if wrong is not None and wrong.value is not None:
            self._unknown.append(
                f"NodePool {pool.name}: instance type {name} is skipped: declared {wrong}: correct it in the "
                "NodePool's template or the NodeProfile"
            )
            return None
        profile = self._profile(template, name, said, labels, seen=seen, claimed=claimed)
        return replace(profile, divided=refused) if refused else profile

    def _of_vendor(self, template: NodeTemplate, name: str, seen: Said | None) -> Device | None:
        """The whole GPUs of another vendor that such a node has, as far as capacity is planned for them."""
        if REQUEST not in template.requirements:
            return None
        said, listed = seen or self._seen.declared(template.pool.name, name), self._catalog.lookup(name)
        gpus = read_discovery(said.labels, said.allocatable, self._resource).of_vendor if said is not None else None
        if seen is None and gpus is None and listed is not None:
            gpus = listed.of_vendor
        planned = gpus is not None and gpus.resource in self._vendors and gpus.division is Division.WHOLE
        return gpus if planned else None

    def _profile_of_vendor(self, template: NodeTemplate, name: str, gpus: Device, seen: Said | None) -> NodeProfile:
        kind = InstanceType(name, "", gpus.count, gpus.memory_mib, gpus.product or gpus.resource)
        said = tuple(self._said(template, name, kind, seen, gpus))
        labels = {key: value for source in reversed(said) for key, value in source.labels.items()}
        return self._profile(template, name, said, labels, seen=seen, claimed=gpus)

    def _names(self, pool: NodePool) -> Iterable[str]:
        """Instance types that the pool names; if it names none, those of its cloud, as far as it is known, and of its
        nodes."""
        if pool.instance_types:
            return pool.instance_types
        group = pool.node_class_group
        known = group == KWOK or group in CLOUDS
        names = {listed.name for listed in self._catalog.launched_by(group)}
        nodes = self._index.with_label(NODEPOOL, pool.name)
        names |= {node.instance_type for node in nodes if discovery_of(node).complete} | self._seen.types_of(pool.name)
        if not known and not nodes:
            self._unknown.append(
                f"NodePool {pool.name}: no nodes are requested from it, because the instance types of its cloud "
                f"({group or 'no nodeClassRef'}) are not known: require {INSTANCE_TYPE} In a list, or wait until it "
                "has a node with GPUs"
            )
        return sorted(filter(None, names))

    def _claimed(self, pool: str, name: str, kind: InstanceType, seen: Said | None) -> Device | None:
        """The GPUs of such a node that pods get by claims; None where a device plugin announces them, as far as it is
        known. What a NodeProfile declares is completed from the catalog."""
        published: tuple[tuple[Claimable, int], ...] = seen.published if seen is not None else ()
        spec = self._seen.declared(pool, name)
        if seen is None and spec is not None and spec.claim_devices is not None:
            declared = spec.claim_devices
            published = ((catalogued(declared.claimable, kind), declared.count or kind.gpus),)
        allocatable = seen.allocatable if seen is not None else {}
        device = read_discovery({}, allocatable, self._resource, published).claimed
        if device is None or device.claimable is None:
            return None
        return replace(device, claimable=served(device.claimable, self._classes))

    def _why_not_claimed(self, template: NodeTemplate, name: str) -> str:
        """Why no nodes of the type in the NodePool can be requested for claims; empty if they can."""
        why = ""
        if self._settings.provisioner is DemandProvisioner.PROVISIONING_REQUEST:
            why = (
                "by ProvisioningRequests: set spec.demand.provisioner of the Environment to trigger-pod or "
                "capacity-buffer"
            )
        elif REQUEST not in template.requirements:
            why = f"without the requirement {{key: {REQUEST}, operator: Exists}}: add it"
        return why and f"NodePool {template.pool.name}: no nodes of {name} are requested for claims {why}"

    def _said(
        self, template: NodeTemplate, name: str, kind: InstanceType, seen: Said | None, claimed: Device | None
    ) -> Iterator[Said]:
        """What each source says of new nodes, first that which counts most. Labels of discovery come as a whole from
        nodes that were seen, as such nodes have no others; else what is declared is completed from the catalog."""
        pool, live, listed = template.pool, self._types.nodes_of(name), self._catalog.lookup(name)
        in_pool = [node for node in live if node.labels.get(NODEPOOL) == pool.name]
        if in_pool:
            where = f"node {in_pool[0].name}" if len(in_pool) == 1 else "least of its nodes"
            yield Said(Source.LIVE, where, {}, least_amounts([node.allocatable for node in in_pool]))
        if seen is not None:
            yield seen
        known = self._seen.profile(pool.name, name)
        if known is not None:
            declared = known.spec.labels if seen is None else {}
            yield Said(Source.DECLARED, f"spec of NodeProfile {known.name}", declared, known.spec.allocatable)
        required = {} if seen is not None or claimed is not None else template.product_of(kind.product)
        yield Said(Source.DECLARED, f"NodePool {pool.name}", {**required, **template.labels, INSTANCE_TYPE: name})
        if live:
            others = f"node {live[0].name} of NodePool {live[0].labels.get(NODEPOOL, '')}".rstrip()
            yield Said(Source.LIVE, others, {}, least_amounts([node.allocatable for node in live]))
        of_type = dict(type_labels(pool.node_class_group, name, listed).values)
        of_type |= discovery_labels(kind) if seen is None and claimed is None else {}
        yield Said(Source.CATALOG, f"type {name}", of_type, listed_amounts(listed))
        yield Said(Source.CATALOG, "default of the kubelet", {}, {"pods": KUBELET_PODS})

    def _profile(
        self,
        template: NodeTemplate,
        name: str,
        said: tuple[Said, ...],
        labels: Mapping[str, str],
        *,
        seen: Said | None,
        claimed: Device | None,
    ) -> NodeProfile:
        pool = template.pool
        listed = self._catalog.lookup(name)
        vcpus, nominal = (listed.vcpus or 0, listed.memory_mib or 0) if listed is not None else (0, 0)
        discovered = labels if seen is None else seen.labels
        device, divided = (claimed, "") if claimed else self._device(pool.name, name, discovered, seen)
        absent = type_labels(pool.node_class_group, name, listed).absent
        capacity = least_amounts([node.capacity for node in self._types.nodes_of(name)])
        spec = self._seen.declared(pool.name, name)
        declared = bool(template.discovered) or (spec is not None and bool(spec.labels or spec.claim_devices))
        return NodeProfile(
            node_pool=pool.name,
            weight=pool.weight,
            instance_type=name,
            device=device,
            divided=divided,
            cpu_milli=_first(said, "cpu", UNBOUNDED),
            memory_mib=_first(said, "memory", UNBOUNDED),
            pods=_first(said, "pods", KUBELET_PODS),
            storage_mib=_first(said, EPHEMERAL_STORAGE, UNBOUNDED),
            capacity_cpu_milli=_amount(capacity, "cpu") or vcpus * 1000,
            capacity_memory_mib=_amount(capacity, "memory") or capacity_memory_mib(nominal),
            price=self._price(name),
            taints=template.taints,
            labels=labels,
            requirements={**{key: (NodeRequirement(key, "DoesNotExist"),) for key in absent}, **template.requirements},
            source=seen.source if seen is not None else Source.DECLARED if declared else Source.CATALOG,
            said=said,
        )

    def _device(self, pool: str, name: str, labels: Mapping[str, str], seen: Said | None) -> tuple[Device, str]:
        """What pods request of such a node, and why they cannot share its GPUs; empty if they can.

        A MIG configuration that is declared counts as applied.
        """
        config = labels.get(MIG_CONFIG, ALL_DISABLED)
        applied = {} if config in ("", ALL_DISABLED) or MIG_CONFIG_STATE in labels else {MIG_CONFIG_STATE: "success"}
        allocatable = seen.allocatable if seen is not None else {}
        published = seen.published if seen is not None else ()
        discovery = read_discovery({**labels, **applied}, allocatable, self._resource, published)
        gpus = discovery.gpus or replace(discovery.devices[0], resource="")
        sharing = self._settings.sharing_of(pool, name)
        where = f"{seen.where} of NodePool {pool}" if seen is not None else f"NodePool {pool}"
        if any(device.claimable is not None for device in discovery.devices):
            return gpus, f"{where} has GPUs by claims that differ or are parts of GPUs, which is not planned for"
        if not sharing.resource:
            if discovery.shareable:
                return gpus, ""
            return gpus, (
                f"pods cannot share the GPUs of {name}, by {where}: {discovery.division}: declare its devices in "
                "spec.demand.sharedDevices of the Environment, and request these, or let another NodePool serve shares"
            )
        division = Division.MIG if sharing.resource.startswith(MIG_PREFIX) else Division.TIME_SLICING
        declared = Device(gpus.product, gpus.memory_mib, gpus.count, division, sharing.per_gpu, sharing.resource)
        announced = {
            name for name, amount in allocatable.items() if is_gpu(name, self._resource) and str(amount) != "0"
        }
        if not announced or sharing.resource in announced:  # without any, the device plugin has not run there yet
            return declared, ""
        return declared, (
            f"{where} has no {sharing.resource}, which spec.demand.sharedDevices of the Environment says that {name} "
            "announces: correct one of the two"
        )

    def _price(self, name: str) -> float | None:
        """Of one node an hour: the Environment's price, else the catalog's."""
        listed = self._catalog.lookup(name)
        known = listed.price_per_hour if listed is not None else None
        return self._prices.get(name.casefold(), known)

    def _of_nodes(self) -> Iterable[NodeProfile]:
        """A profile for each instance type of nodes with GPUs, if the autoscaler's node groups are not visible."""
        for name, nodes in sorted(self._index.by_label(INSTANCE_TYPE).items()):
            whole = [node for node in nodes if not node.deleting and self._shareable(node)]
            usual = self._index.usual(name)
            like_most = (node for node in whole if usual and discovery_of(node).devices == usual[1].devices)
            node = next(like_most, None) or next(iter(whole), None)
            if node is None:
                continue
            (gpus,) = discovery_of(node).devices
            amounts = least_amounts([each.allocatable for each in nodes])
            places = {key: _values(nodes, key) for key in node.labels if key.startswith(_TOPOLOGY)}
            open_to = {key: (NodeRequirement(key, "In", of),) for key, of in places.items() if len(of) > 1}
            yield NodeProfile(
                node_pool="",
                weight=0,
                instance_type=name,
                device=gpus,
                price=self._price(name),
                cpu_milli=_amount(amounts, "cpu") or UNBOUNDED,
                memory_mib=_amount(amounts, "memory") or UNBOUNDED,
                pods=_amount(amounts, "pods") or KUBELET_PODS,
                storage_mib=_amount(amounts, EPHEMERAL_STORAGE) or UNBOUNDED,
                taints=tuple(taint for taint in node.taints if not taint.key.startswith(_PASSING)),
                labels={key: value for key, value in node.labels.items() if key not in open_to},
                requirements=open_to,
                source=Source.LIVE,
            )

    def _shareable(self, node: Node) -> bool:
        discovery = discovery_of(node)
        return discovery.complete and discovery.shareable


def not_ready(name: str, why: str) -> str:
    """That the NodePool is not Ready, with the reason."""
    return f"NodePool {name} is not Ready ({why})"


def _values(nodes: Iterable[Node], key: str) -> tuple[str, ...]:
    """The values of a label on the nodes that have it, sorted."""
    return tuple(sorted({node.labels[key] for node in nodes if key in node.labels}))


def _first(said: Iterable[Said], resource: str, default: int) -> int:
    """The amount of a resource of the first source that has one that can be read."""
    return next(filter(None, (_amount(source.allocatable, resource) for source in said)), default)


def _amount(amounts: Mapping[str, Any], resource: str) -> int:
    """Thousandths of a CPU, MiB, or pods; 0 where there is no amount that can be read."""
    return amount_in(amounts, resource, HOST[resource])
