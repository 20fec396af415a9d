"""The pods of a snapshot that wait for GPUs, by namespace and class."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

from plimsoll.cluster.catalog import Catalog
from plimsoll.cluster.claims import may_serve_gpus
from plimsoll.cluster.pods import (
    KnownParts,
    PodChanges,
    PodShare,
    RequestRefusal,
    ShareRefusal,
    device_resources_of,
    gated,
    is_ours,
    read_request,
    value_changes,
    waits,
)
from plimsoll.cluster.pools import planned_vendors
from plimsoll.cluster.queues import is_sharded, node_pool_of, placed_in_shard, queue_of
from plimsoll.cluster.volumes import NoVolume, Storage
from plimsoll.labels import INSTANCE_TYPE, NODEPOOL
from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec, barred_from
from plimsoll.model.cluster import VENDOR_RESOURCES, Pod
from plimsoll.model.dra import DeviceClass
from plimsoll.model.kai import NODE_POOL_LABEL, POD_GROUP_NAME, NodePoolLabel, PodGroup, group_key
from plimsoll.model.meta import ANYWHERE, NodeRequirement, Placement
from plimsoll.plan.classes.demand_class import DemandClass
from plimsoll.plan.classes.gang import gang_key, gang_levels
from plimsoll.plan.classes.refusal import Refusal, RefusalReason

REQUESTED_DRIVERS: Final = "karpenter.sh/requested-dra-drivers"
"""Annotation of the NodeClaims that Karpenter makes for claims where it plans these (`--ignore-dra-requests=false`)."""
CLAIMS_HINT: Final = "set demand.claims to plan, and let Karpenter ignore claims, if Plimsoll is to plan them"
_MOST_CONDITIONS: Final = 1_000
"""Conditions on nodes, with their values, of a pod that is planned for: each is compared with each node."""
_TOO_MANY: Final = RequestRefusal(
    f"its node selector, node affinity and tolerations have more than {_MOST_CONDITIONS} conditions and values",
    "name fewer, such as by a label that these nodes have in common",
)
PodGroups = Mapping[tuple[str, str], PodGroup]
"""By (namespace, name)."""


@dataclass(frozen=True)
class ClassMembers:
    """Pods of a class by UID; the same object while neither they nor their PodGroups change."""

    shares: dict[str, PodShare] = field(default_factory=dict)
    whole: dict[str, PodShare] = field(default_factory=dict)
    unreadable: dict[str, tuple[Pod, Refusal]] = field(default_factory=dict)
    """Pods whose request cannot be read."""
    groups: PodGroups = field(default_factory=dict)
    """Their PodGroups."""
    label: NodePoolLabel = NODE_POOL_LABEL

    @cached_property
    def in_gangs(self) -> Mapping[str, Pod]:
        """Those with shares that may belong to a gang."""
        return {uid: each.pod for uid, each in self.shares.items() if gang_key(each.pod, self.groups) is not None}

    @cached_property
    def ruled(self) -> Mapping[str, Pod]:
        """Those with shares that have rules about other pods, or whose gang has."""
        pods = {uid: each.pod for uid, each in self.shares.items()}
        return {uid: pod for uid, pod in pods.items() if pod.rules or gang_levels(pod, self._group_of(pod))}

    @cached_property
    def node_pools(self) -> Mapping[str, str]:
        """KAI's node pool of those with shares that are in one."""
        pools = {uid: node_pool_of(each.pod, self.label, self._group_of(each.pod)) for uid, each in self.shares.items()}
        return {uid: pool for uid, pool in pools.items() if pool}

    def _group_of(self, pod: Pod) -> PodGroup | None:
        return self.groups.get(group_key(pod))

    @cached_property
    def of_gangs(self) -> tuple[Pod, ...]:
        """All that may belong to a gang."""
        return tuple(pod for pod in self.pods.values() if gang_key(pod, self.groups) is not None)

    @cached_property
    def priority(self) -> int:
        """The highest priority of the pods."""
        return max((each.pod.priority for each in (*self.shares.values(), *self.whole.values())), default=0)

    @cached_property
    def rank(self) -> tuple[int, str, str]:
        """Sort key of the classes of one namespace: highest priority first, then the oldest pod."""
        return min((-pod.priority, pod.creation_timestamp, uid) for uid, pod in self.pods.items())

    @cached_property
    def pods(self) -> dict[str, Pod]:
        """Every pod, by UID."""
        readable = {uid: each.pod for uid, each in (*self.shares.items(), *self.whole.items())}
        return readable | {uid: pod for uid, (pod, _) in self.unreadable.items()}

    @classmethod
    def together(cls, parts: Sequence["ClassMembers"]) -> "ClassMembers":
        """The pods of all parts; the part itself if it is one."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            dict(sorted(item for each in parts for item in each.shares.items())),
            dict(sorted(item for each in parts for item in each.whole.items())),
            dict(sorted(item for each in parts for item in each.unreadable.items())),
            {key: group for each in parts for key, group in each.groups.items()},
            parts[0].label if parts else NODE_POOL_LABEL,
        )


@dataclass(frozen=True)
class NamespaceClasses:
    """The waiting pods of one namespace; the same value while none of them changes."""

    name: str
    classes: Mapping[DemandClass, ClassMembers]
    pods: Mapping[str, Pod]
    """By UID."""


class Classes:
    """Keeps the classes from one snapshot to the next; only changed pods are read again."""

    def __init__(self) -> None:
        self._depends: tuple[object, ...] = ()
        self.sharded = False
        """Whether anything of the last snapshot, pods apart, belongs to a node pool of KAI."""
        self._groups: dict[tuple[str, str], PodGroup] = {}
        self._label = NODE_POOL_LABEL
        self._of_shards: set[tuple[str, str]] = set()
        """Keys of the PodGroups of node pools of KAI."""
        self._given_groups: tuple[PodGroup, ...] = ()
        self._storage: Storage | None = None
        self._without_volume: dict[str, Refusal] = {}
        self._places: dict[str, tuple[str, DemandClass]] = {}
        """Namespace and class, by UID."""
        self._members: dict[str, dict[DemandClass, dict[str, PodShare | ShareRefusal]]] = {}
        """By namespace, class and UID."""
        self._pods: dict[str, dict[str, Pod]] = {}
        """By namespace and UID."""
        self._of_group: dict[tuple[str, str], set[str]] = {}
        """UIDs of the pods that name a PodGroup."""
        self._changed: dict[str, set[DemandClass]] = {}
        """Classes whose pods changed, by namespace."""
        self._found: dict[str, NamespaceClasses] = {}

    def update(self, snapshot: Snapshot, changes: PodChanges | None) -> Mapping[str, NamespaceClasses]:
        """The classes by namespace. `changes` None: reads all pods."""
        environment = snapshot.environment.spec
        if environment.node_pool_label != self._label:
            self._label = environment.node_pool_label
            self._of_shards = {key for key, group in self._groups.items() if self._label.key in group.labels}
        regrouped = self._take_groups(snapshot.pod_groups)
        self.sharded = bool(self._of_shards) or is_sharded(snapshot)
        overlaid = frozenset[str]().union(*(overlay.resources for overlay in snapshot.node_overlays))
        of_environment = (environment.demand, environment.gpu_resource, environment.queue_scheduler, environment.access)
        claims_why = why_claims_are_left(snapshot)
        vendors = planned_vendors(snapshot)
        classes = snapshot.device_classes
        depends = (*of_environment, self._label, overlaid, vendors, self.sharded, claims_why, classes)
        if changes is None or depends != self._depends:
            changes, self._depends = PodChanges((), snapshot.pods), depends
            self._members, self._pods, self._places, self._of_group = {}, {}, {}, {}
            self._changed, self._found, self._without_volume = {}, {}, {}
        for pod in changes.gone:
            self._leave(uid_of(pod))
        for member in self._of_groups(regrouped):
            self._enter(member, environment)
        self._relocate(snapshot, environment)
        for member in _waiting(changes.new, environment, KnownParts(vendors, overlaid), claims_why, classes):
            self._enter(member, environment)
        self._found = {**self._found, **self._refreshed()}
        self._found = {name: each for name, each in self._found.items() if name in self._members}
        self._changed = {}
        return MappingProxyType(self._found)

    def _refreshed(self) -> dict[str, NamespaceClasses]:
        """The namespaces that changed. Classes that did not are the same objects."""
        found = {}
        for namespace, changed in self._changed.items():
            members, before = self._members.get(namespace, {}), self._found.get(namespace)
            classes = dict(before.classes) if before is not None else {}
            for demand_class in changed:
                classes.pop(demand_class, None)
                if demand_class in members:
                    classes[demand_class] = _members_of(members[demand_class].values(), self._groups, self._label)
            found[namespace] = NamespaceClasses(namespace, classes, dict(self._pods.get(namespace, {})))
        return found

    @property
    def without_volume(self) -> Mapping[str, Refusal]:
        """Why pods cannot be placed before their claims are bound, by UID."""
        return MappingProxyType(self._without_volume)

    def _relocate(self, snapshot: Snapshot, environment: EnvironmentSpec) -> None:
        """Updates the pods with claims if any claim, volume or StorageClass changed."""
        if self._storage is not None and self._storage.is_of(snapshot):
            return
        self._storage = Storage(snapshot)
        places = [(uid, *place) for uid, place in self._places.items() if self._pods[place[0]][uid].mounted]
        for uid, namespace, demand_class in places:
            self._enter(self._members[namespace][demand_class][uid], environment)

    @property
    def groups(self) -> PodGroups:
        """The PodGroups of the last snapshot."""
        return MappingProxyType(self._groups)

    def _take_groups(self, groups: tuple[PodGroup, ...]) -> set[tuple[str, str]]:
        """Stores the PodGroups. Returns the keys of those that changed."""
        if groups is self._given_groups:
            return set()
        gone, new = value_changes(self._given_groups, groups)
        self._given_groups = groups
        for group in gone:
            self._groups.pop(group.key, None)
            self._of_shards.discard(group.key)
        self._groups |= {group.key: group for group in new}
        self._of_shards |= {group.key for group in new if self._label.key in group.labels}
        return {group.key for group in (*gone, *new)}

    def _of_groups(self, groups: Collection[tuple[str, str]]) -> list[PodShare | ShareRefusal]:
        """The pods of PodGroups with these keys."""
        places = ((uid, self._places[uid]) for key in groups for uid in self._of_group.get(key, ()))
        return [self._members[namespace][demand_class][uid] for uid, (namespace, demand_class) in places]

    def _enter(self, member: PodShare | ShareRefusal, environment: EnvironmentSpec) -> None:
        pod, uid = member.pod, uid_of(member.pod)
        self._leave(uid)
        demand_class = self._class_for(pod, environment)
        self._members.setdefault(pod.namespace, {}).setdefault(demand_class, {})[uid] = member
        self._pods.setdefault(pod.namespace, {})[uid] = pod
        self._places[uid] = pod.namespace, demand_class
        self._changed.setdefault(pod.namespace, set()).add(demand_class)
        if POD_GROUP_NAME in pod.annotations:
            self._of_group.setdefault(group_key(pod), set()).add(uid)

    def _class_for(self, pod: Pod, environment: EnvironmentSpec) -> DemandClass:
        """The pod's class. Its queue is that of its PodGroup, which KAI never changes, else the one that KAI will
        use; its nodes are those that KAI's scheduler of its node pool sees."""
        if pod.placement.conditions > _MOST_CONDITIONS:  # it is refused, whatever its class
            return DemandClass(ANYWHERE, scheduler=pod.scheduler_name)
        group = self._groups.get(group_key(pod)) if self._groups else None
        placement = placed_in_shard(pod, group, environment, sharded=self.sharded)
        if environment.access:
            placement = _allowed(placement, pod.namespace, environment)
        if pod.mounted and self._storage is not None:
            placed = self._storage.narrowed(placement, pod.namespace, pod.volume_claims)
            if isinstance(placed, NoVolume):
                self._without_volume[uid_of(pod)] = _no_volume(placed)
            else:
                placement = placed
        claims = pod.claimed.requests if pod.claimed is not None else ()
        ordered = claims if any(claim.has_alternatives for claim in claims) else ()
        return DemandClass(placement, queue_of(pod, environment, group), pod.scheduler_name, ordered)

    def _leave(self, uid: str) -> None:
        self._without_volume.pop(uid, None)
        if uid not in self._places:
            return
        namespace, demand_class = self._places.pop(uid)
        classes = self._members[namespace]
        pod = self._pods[namespace].pop(uid)
        del classes[demand_class][uid]
        if not classes[demand_class]:
            del classes[demand_class]
        if not classes:
            del self._members[namespace], self._pods[namespace]
        self._changed.setdefault(namespace, set()).add(demand_class)
        if POD_GROUP_NAME in pod.annotations:
            of_group = self._of_group[group_key(pod)]
            of_group.discard(uid)
            if not of_group:
                del self._of_group[group_key(pod)]


def _waiting(
    pods: Iterable[Pod],
    environment: EnvironmentSpec,
    known: KnownParts,
    claims_why: str,
    classes: tuple[DeviceClass, ...],
) -> Iterator[PodShare | ShareRefusal]:
    """The pods that wait for GPUs: for shares, which autoscalers ignore, devices that are parts of GPUs, or whole GPUs,
    for which autoscalers provide nodes by themselves. For those that request resources that NodeOverlays list
    (`known.provided`), Karpenter does, too. `known.declared` are those of other vendors, for which capacity is planned.
    `claims_why` is why claims get no capacity; empty if they do."""
    settings = environment.demand
    for pod in pods:
        if pod.node_name:
            continue
        planned = waits(pod, settings) and not (settings.claims == "off" and pod.claimed is not None)
        member = _read(pod, environment, known, claims_why) if planned else None
        if member is None and gated(pod) and not pod.deleting and not pod.finished:
            member = _uncounted(pod, environment, classes)
        if member is not None:
            yield member


def _read(pod: Pod, environment: EnvironmentSpec, known: KnownParts, claims_why: str) -> PodShare | ShareRefusal | None:
    gpu_resource = environment.gpu_resource
    declared = known.declared.union(device_resources_of(pod, environment.demand, gpu_resource))
    request = read_request(pod, gpu_resource, known._replace(declared=declared))
    if request.refusal is not None:
        return ShareRefusal.of(pod, request.refusal)
    if request.share is None:
        return None
    if pod.placement.conditions > _MOST_CONDITIONS:
        return ShareRefusal.of(pod, _TOO_MANY)
    if request.share.claims and claims_why:
        return ShareRefusal.of(pod, RequestRefusal(f"claims {request.share}, {claims_why}", CLAIMS_HINT, True))
    return PodShare(pod, request.share)


class UncountedPod(ShareRefusal):
    """A pod whose gate stays, as nothing counts its GPUs, of which its namespace may have a number only."""


def _uncounted(pod: Pod, environment: EnvironmentSpec, classes: tuple[DeviceClass, ...]) -> UncountedPod | None:
    if is_ours(pod, environment.demand) or not _is_bounded(pod.namespace, environment):
        return None
    listed = pod.scheduler_name in environment.demand.schedulers
    ignored = environment.demand.claims == "off"
    by_class = next((each for each in pod.extended_resources if may_serve_gpus(each, classes)), "")
    if any(map(read_request(pod, environment.gpu_resource).count_of, (environment.gpu_resource, *VENDOR_RESOURCES))):
        what, hint = "its devices are not planned for", "request the devices without these GPUs"
    elif by_class:
        what = f"it requests {by_class}"
        hint = "request them by the resource of the GPUs" if ignored else "claim the devices (spec.resourceClaims)"
    elif (listed and not (ignored and pod.claimed is not None)) or not _asks(pod, environment):
        return None
    else:
        what = "demand.claims of the Environment is off"
        hint = "request the devices by the resource of the GPUs, or set demand.claims to plan or observe"
    if not listed:
        what = f"scheduler {pod.scheduler_name!r} is not listed"
        hint = "use one of demand.schedulers of the Environment"
    problem = f"the capacity gate stays: access limits the GPUs of its namespace, and nothing counts them, as {what}"
    return UncountedPod.of(pod, RequestRefusal(problem, hint))


def _is_bounded(namespace: str, environment: EnvironmentSpec) -> bool:
    """Whether it may have a number of GPUs only, or nothing at all."""
    if barred_from(environment, namespace):
        return True
    access = environment.access_of(namespace)
    return access is not None and access.gpus is not None


def _asks(pod: Pod, environment: EnvironmentSpec) -> bool:
    """Whether it asks for GPUs in any form: a share, a part or a claim."""
    request = read_request(pod, environment.gpu_resource)
    return request.share is not None or request.refusal is not None or request.has_parts


def why_claims_are_left(snapshot: Snapshot) -> str:
    """Why no capacity is requested for pods that claim GPUs; empty if it is."""
    if snapshot.environment.spec.demand.claims == "observe":
        return "which is only reported (spec.demand.claims of the Environment)"
    planned = next((each.name for each in snapshot.node_claims if REQUESTED_DRIVERS in each.annotations), "")
    if planned:
        return f"for which Karpenter plans nodes itself (annotation {REQUESTED_DRIVERS} on NodeClaim {planned})"
    return ""


def _members_of(members: Collection[PodShare | ShareRefusal], groups: PodGroups, label: NodePoolLabel) -> ClassMembers:
    """Sorted by UID."""
    shares: dict[str, PodShare] = {}
    whole: dict[str, PodShare] = {}
    unreadable: dict[str, tuple[Pod, Refusal]] = {}
    for member in sorted(members, key=lambda member: uid_of(member.pod)):
        uid = uid_of(member.pod)
        if isinstance(member, ShareRefusal):
            # A pod without a UID is one of a file: whoever reads the plan has its name.
            names = ((member.message.partition(": ")[0], f"Pod with UID {uid}"),) if member.pod.uid else ()
            reason = RefusalReason.CLAIM if member.of_claims else RefusalReason.UNREADABLE
            reason = RefusalReason.NOT_ALLOWED if isinstance(member, UncountedPod) else reason
            refusal = Refusal(reason, member.message, member.hint, names)
            unreadable[uid] = member.pod, refusal
        elif member.share.whole:
            whole[uid] = member
        else:
            shares[uid] = member
    keys = {group_key(member.pod) for member in members} if groups else ()
    return ClassMembers(shares, whole, unreadable, {key: groups[key] for key in keys if key in groups}, label)


def uid_of(pod: Pod) -> str:
    """The pod's UID; its namespace and name in a manifest from a file."""
    return pod.uid or f"{pod.namespace}/{pod.name}"


def _no_volume(why: NoVolume) -> Refusal:
    return Refusal(RefusalReason.NO_NODE, why.problem, why.advice, ((f" {why.claim!r}", ""),) if why.claim else ())


def _allowed(placement: Placement, namespace: str, environment: EnvironmentSpec) -> Placement:
    """The placement within the NodePools and instance types that the namespace may use. Nodes of no NodePool are
    everyone's."""
    try:
        access = environment.access_of(namespace)
    except KeyError:
        return placement
    if access is None:
        return placement
    if access.instance_types is not None:
        types = {name for each in access.instance_types for name in (each, Catalog.builtin().real_name(each))}
        placement = placement.within((NodeRequirement(INSTANCE_TYPE, "In", tuple(sorted(types))),))
    if access.node_pools is not None:
        none = NodeRequirement(NODEPOOL, "DoesNotExist")
        placement = placement.within((NodeRequirement(NODEPOOL, "In", tuple(sorted(access.node_pools))),), (none,))
    return placement
