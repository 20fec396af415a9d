"""The instance types that an Environment can use: those of its NodePools, its nodes, and the catalog."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from plimsoll.cluster.catalog.catalog import Catalog, Difference
from plimsoll.cluster.catalog.gpu_discovery import catalogued
from plimsoll.cluster.catalog.node_template import NodeTemplate
from plimsoll.cluster.catalog.pool_types import allows_type
from plimsoll.cluster.catalog.provider_labels import AWS_NAME, CLOUDS
from plimsoll.cluster.claims import served
from plimsoll.cluster.nodes import NodeIndex
from plimsoll.cluster.profiles import Discovery, read_discovery, undivided
from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT, INSTANCE_TYPE, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec, KnownNodeProfile, LearnedProfile, NamespaceAccess, NodeClassRef
from plimsoll.model.cluster import VENDOR_RESOURCES, Device, Division, Evidence, InstanceType, Node
from plimsoll.model.dra import Claimable
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.quantity import parse_devices
from plimsoll.text import nearest

NODE_CLASSES: Final = {
    "azure": NodeClassRef(group="kaito.sh", kind="KaitoNodeClass"),
    "aws": NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass"),
}
"""Node class by cloud, named as in KAITO; the object is called `default`."""

_AZURE_NAME: Final = re.compile(r"Standard_[ND]\w+", re.IGNORECASE)
_PROVIDER_IDS: Final = {"azure": "azure", "aws": "aws", "gce": "gcp"}
"""Cloud by the scheme of its nodes' `providerID`."""
NODES: Final = "the live nodes"
"""Source name of figures from node labels."""

Wanted = Mapping[str, Collection[str]]
"""The values that are wanted of labels; of the others, any."""
ANY: Final[Wanted] = {}


class OfferedType(NamedTuple):
    """One instance type, whatever NodePool its node is like.

    The nodes of Workspaces are of no shared NodePool and have none of the labels of its template, such as
    `nvidia.com/mig.config`: what NodeProfiles say of the nodes of one NodePool, they do not say of these.
    """

    name: str
    """Spelling of a NodePool, else the catalog, else a node."""
    written: tuple[str, ...]
    """Spellings that do not depend on nodes: the catalog's, else a NodePool's; and in lower case."""
    cloud: str
    kind: InstanceType | None
    """Its figures; None where only a NodePool or a node without GFD labels names it."""
    devices: int | None
    """Devices of the extended resource on most live nodes; more than GPUs where GPUs are shared."""
    claimable: int | None
    """Devices that a NodeClaim may request: whole GPUs, because Karpenter does not know how they will be shared."""
    pools: tuple[NodePool, ...]
    """NodePools that allow the type: those that name it, then those that name none; highest weight first."""
    warnings: tuple[str, ...] = ()
    claimed: Claimable | None = None
    """Its GPUs where pods get these by claims, as far as nodes and NodeProfiles say. A NodeClaim that requests an
    extended resource is never initialized there."""

    @property
    def resource(self) -> str:
        """The extended resource of its whole GPUs, where they are AMD's or Intel's, and pods do not claim them; empty
        elsewhere."""
        return self.kind.resource if self.kind is not None and self.claimed is None else ""

    def __str__(self) -> str:
        return self.name if self.kind is None else f"{self.name} ({self.kind.describe_gpus()})"

    @property
    def gpus(self) -> Device | None:
        """None where they, or the memory of one, are not known."""
        return None if self.kind is None else self.kind.node_gpus

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
        self._aws_region = snapshot.environment.spec.catalog.aws_region
        self._currency = snapshot.environment.spec.catalog.currency
        self._index = index
        # A NodePool that Plimsoll created serves one Workspace only.
        self._pools = sorted(
            (pool for pool in snapshot.node_pools if WORKSPACE not in pool.labels and not pool.deleting),
            key=lambda pool: (-pool.weight, pool.name),
        )
        self._templates = {pool.name: NodeTemplate.by(pool) for pool in self._pools}
        self._profiles: dict[str, list[KnownNodeProfile]] = {}
        """NodeProfiles by the instance type in lower case."""
        for each in sorted(snapshot.node_profiles, key=lambda each: each.name):
            self._profiles.setdefault(each.pair[1], []).append(each)
        self._classes = snapshot.device_classes
        self._found: dict[str, OfferedType | None] = {}
        self._by_pool: dict[str, list[NodePool]] = {}
        self._on_nodes = index.spellings
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
        known = {name: price for name, price in self._prices.items() if everything.lookup(name)}
        return everything.with_own_prices(known, self._currency) if self._prices else everything

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
        on_nodes = self._on_nodes.get(folded, ())
        in_pools = self._in_pools.get(folded) or next(
            (known.spec.instance_type for known in self._profiles.get(folded, ())), None
        )
        name = in_pools or (listed.name if listed is not None else next(iter(on_nodes), None))
        if name is None:
            return None
        written = listed.name if listed is not None else in_pools or folded
        merged, differences = self._merged(folded)
        gpus = _gpus(self._usual(folded))
        cloud = listed.cloud if listed is not None else ""
        return OfferedType(
            name=name,
            written=tuple(dict.fromkeys((written, folded))),
            cloud=cloud,
            kind=merged,
            devices=gpus.announced if gpus is not None else merged.gpus if merged is not None else None,
            claimable=listed.gpus if listed is not None else merged.gpus if merged is not None else None,
            pools=self._allowing(name, cloud, listed),
            warnings=tuple(map(str, differences)),
            claimed=self._claimed(folded, listed or merged),
        )

    def _unlisted(self, name: str) -> OfferedType | None:
        """A type of Azure of which only the name is known, where a NodePool there allows it."""
        pools = self._allowing(name, "azure", None) if unlisted_azure(name) else ()
        if not any(CLOUDS.get(pool.node_class_group) == "azure" for pool in pools):
            return None
        written = (name, name.casefold())
        return OfferedType(name, written, "azure", kind=None, devices=None, claimable=None, pools=pools)

    def _allowing(self, name: str, cloud: str, listed: InstanceType | None) -> tuple[NodePool, ...]:
        """The NodePools that allow a type; see `OfferedType.pools`."""
        pools = (*self._by_pool.get(name.casefold(), ()), *(pool for pool in self._pools if not pool.instance_types))
        return tuple(pool for pool in pools if self._allows(pool, name, cloud, listed))

    def _allows(self, pool: NodePool, name: str, cloud: str, listed: InstanceType | None) -> bool:
        return allows_type(pool, self._templates[pool.name].requirements, name, cloud, listed)

    def _merged(self, folded: str) -> tuple[InstanceType | None, tuple[Difference, ...]]:
        """The effective figures and the contradictions between sources; None where there are none."""
        listed = self.declared.lookup(folded)
        sources = (self._by_pools(folded), *self._by_profiles(folded), self._by_nodes(folded))
        reported = [each for each in sources if each is not None]
        found = Catalog([] if listed is None else [listed]).with_types(reported)
        earlier = (each for each in self.declared.differences if each.live.name.casefold() == folded)
        return found.lookup(folded), (*earlier, *found.differences)

    def _usual(self, folded: str) -> Discovery | None:
        usual = self._index.usual(folded)
        return usual[1] if usual is not None else None

    def _claimed(self, folded: str, kind: InstanceType | None) -> Claimable | None:
        """The device that pods get by claims on its nodes; None: they do not, as far as nodes and NodeProfiles say."""
        usual = self._usual(folded)
        if usual is not None:
            return usual.claimed.claimable if usual.gpus is None and usual.claimed is not None else None
        for known in self._profiles.get(folded, ()):
            learned = self._learned(known)
            if learned is not None and learned.claim_devices is not None:
                return served(learned.claim_devices.claimable, self._classes)
            declared = known.spec.claim_devices
            if declared is not None:
                claimable = declared.claimable if kind is None else catalogued(declared.claimable, kind)
                return served(claimable, self._classes)
        return None

    def _by_nodes(self, folded: str) -> InstanceType | None:
        gpus = _gpus(self._usual(folded))
        if gpus is None:
            return None
        return _as_type(self._on_nodes[folded][0], gpus, NODES)

    def _by_pools(self, folded: str) -> InstanceType | None:
        """The GPUs that the labels of a NodePool's template declare."""
        for pool in self._by_pool.get(folded, ()):
            gpus = _gpus(read_discovery(self._templates[pool.name].labels, {}))
            if gpus is not None:
                return _as_type(self._in_pools[folded], gpus, f"NodePool {pool.name}")
        return None

    def _by_profiles(self, folded: str) -> Iterator[InstanceType]:
        """The GPUs that NodeProfiles declare, then those that they learned."""
        for learned in (False, True):
            for known in self._profiles.get(folded, ()):
                said = self._learned(known) if learned else known.spec
                if said is None:
                    continue
                published = said.claim_devices.published if said.claim_devices is not None else ()
                found = read_discovery(said.labels, {}, published=published)
                gpus = _gpus(found if found.devices else read_discovery(said.labels, said.allocatable))
                if gpus is not None:
                    yield _as_type(known.spec.instance_type, gpus, f"NodeProfile {known.name}")

    def _learned(self, known: KnownNodeProfile) -> LearnedProfile | None:
        """What was learned, unless the NodePool's template declares other labels since."""
        learned, template = known.status.learned, self._templates.get(known.spec.node_pool)
        return None if learned is None or (template is not None and template.contradicts(learned.labels)) else learned

    def spelled(self, name: str) -> tuple[str, ...]:
        """The spellings of a type's name on nodes, case-insensitive, sorted."""
        return self._on_nodes.get(name.strip().casefold(), ())

    def nodes_of(self, name: str) -> list[Node]:
        """Nodes of the type, case-insensitive, sorted by the spelling of their label, then by name."""
        return [node for each in self.spelled(name) for node in self._index.with_label(INSTANCE_TYPE, each)]

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
        return any(self._allows(pool, each.name, each.cloud, each) for each in known)

    def clouds(self, environment: EnvironmentSpec) -> frozenset[str]:
        """The clouds of the environment, from its node classes, else its nodes; empty where they are not known."""
        declared = environment.node_claims.node_class_ref
        groups = [declared.group] if declared is not None else [pool.node_class_group for pool in self._pools]
        clouds = {cloud for group in groups if (cloud := CLOUDS.get(group))}
        if not clouds:
            provider = next((node.provider_id for node in self._index.nodes if node.provider_id), "")
            clouds = {cloud for scheme, cloud in _PROVIDER_IDS.items() if provider.startswith(f"{scheme}://")}
        return frozenset(clouds)

    def how_to_know(self, name: str, pool: NodePool | None = None) -> str:
        """What makes the GPUs of a type known that is in no source, or in a NodeProfile in part."""
        for known in self._profiles.get(name.casefold(), ()):
            if known.spec.claim_devices is not None and (pool is None or known.spec.node_pool == pool.name):
                return f"say count and capacity.memory in spec.claimDevices of NodeProfile {known.name}"
        attached = ", ".join(each.name.partition("+")[2] for each in Catalog.builtin().attached_to(name))
        why = f"they are attached to the machine type, such as {attached}; " if attached else ""
        where = f"NodePool {pool.name}" if pool is not None else "a NodePool that allows the type"
        labels = f"{why}set the labels {', '.join((GPU_PRODUCT, GPU_COUNT, GPU_MEMORY))} in the template of {where}"
        labels += ", or declare them in a NodeProfile"
        aws = AWS_NAME.fullmatch(name) is not None and not self._aws_region
        return f"{labels}, or set catalog.awsRegion of the Environment" if aws else labels

    def _observed_names(self) -> dict[str, str]:
        return {folded: names[0] for folded, names in self._on_nodes.items()} | self._in_pools

    def node_class_ref(
        self, offered: OfferedType, environment: EnvironmentSpec, access: NamespaceAccess | None, wanted: Wanted = ANY
    ) -> NodeClassRef | None:
        """The node class for a NodeClaim: the Environment's, else that of a NodePool that allows the type, else the
        cloud's."""
        if environment.node_claims.node_class_ref is not None:
            return environment.node_claims.node_class_ref
        pool = self.pool(offered, access, wanted)
        return NODE_CLASSES.get(offered.cloud) if pool is None else NodeClassRef.model_validate(pool.node_class_ref)

    def pool(self, offered: OfferedType, access: NamespaceAccess | None, wanted: Wanted = ANY) -> NodePool | None:
        """The first NodePool with a node class that allows the type, and one of the wanted values of each label, Ready
        or not: NodeClaims of the type are like its nodes and count against its limits, and neither may change
        from one moment to the next."""
        allowed = (pool for pool in offered.pools if access is None or access.allows_pool(pool.name))
        return next((each for each in allowed if each.node_class_ref is not None and not each.forbids(wanted)), None)


def _gpus(found: Discovery | None) -> Device | None:
    """The GPUs, where they are not partitioned by MIG; of AMD and Intel, where their device plugins do not share
    them."""
    if found is None or found.mig.active or not found.complete:
        return None
    gpus = found.gpus or found.claimed or found.of_vendor
    if gpus is None or (gpus.resource in VENDOR_RESOURCES and gpus.division is Division.WHOLE):
        return gpus
    return gpus if gpus.memory_mib else None


def _as_type(name: str, gpus: Device, source: str) -> InstanceType:
    seen, product = Evidence.OBSERVED, undivided(gpus.product) or gpus.resource
    announced = gpus.resource if gpus.resource in VENDOR_RESOURCES else ""
    return InstanceType(name, "", gpus.count, gpus.memory_mib, product, seen, seen, announced=announced, source=source)


def unlisted_azure(name: str) -> bool:
    """Whether the name is of Azure's families N and D, which KAITO accepts without knowing the type."""
    return _AZURE_NAME.fullmatch(name) is not None


def claim_gpus(claim: NodeClaim, resource: str, types: OfferedTypes) -> int:
    """GPU devices of a NodeClaim, of any vendor: those that it requests, else those of the launched instance type;
    before the launch, of the largest that it allows."""
    requests = claim.requests
    amount = next((requests[each] for each in (resource, *VENDOR_RESOURCES) if each in requests), None)
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
