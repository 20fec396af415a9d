"""Stores: the stores of all kinds, and the Snapshot of them."""

from collections.abc import Iterable, Iterator
from typing import Any

from plimsoll.cluster.claims import ClaimObjects, Joining
from plimsoll.cluster.nodes import IndexedNodes
from plimsoll.cluster.pods import IndexedPods, with_blocking_pods
from plimsoll.errors import InvalidObjectError, PlimsollError
from plimsoll.labels import GROUP, is_device
from plimsoll.model import NO_NODES_FOR, Reason, Refusal, Snapshot
from plimsoll.model.api import TRIGGER_NAMESPACE, ConditionType, Environment, Workspace
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import ClaimEvent
from plimsoll.model.meta import condition_of
from plimsoll.observe.cluster import kinds
from plimsoll.observe.cluster.pod_store import PodStore
from plimsoll.observe.cluster.store import Store

CLAIMS_KEPT = 1000
"""Number of deleted NodeClaims that are kept. A NodeClaim without capacity exists for milliseconds, and only the object
contains what it was meant to be."""


class Stores:
    """One store for each observed kind."""

    def __init__(self) -> None:
        self.environments = Store(kinds.ENVIRONMENTS)
        self.workspaces = Store(kinds.WORKSPACES)
        self.nodes = Store(kinds.NODES)
        self.node_claims = Store(kinds.NODE_CLAIMS, removed=CLAIMS_KEPT)
        self.node_pools = Store(kinds.NODE_POOLS)
        self.node_overlays = Store(kinds.NODE_OVERLAYS)
        self.node_classes = Store(kinds.NODE_CLASSES)
        self.aks_node_classes = Store(kinds.AKS_NODE_CLASSES)
        self.claim_events = Store(kinds.CLAIM_EVENTS)
        self.pods = PodStore(kinds.PODS, self._has_devices)
        self.daemon_sets = Store(kinds.DAEMON_SETS)
        self.namespaces = Store(kinds.NAMESPACES)
        self.resource_quotas = Store(kinds.RESOURCE_QUOTAS)
        self.disruption_budgets = Store(kinds.DISRUPTION_BUDGETS)
        self.volume_claims = Store(kinds.VOLUME_CLAIMS)
        self.volumes = Store(kinds.VOLUMES)
        self.storage_classes = Store(kinds.STORAGE_CLASSES)
        self.queues = Store(kinds.QUEUES)
        self.pod_groups = Store(kinds.POD_GROUPS)
        self.topologies = Store(kinds.TOPOLOGIES)
        self.scheduling_shards = Store(kinds.SCHEDULING_SHARDS)
        self.deployments = Store(kinds.DEPLOYMENTS)
        self.stateful_sets = Store(kinds.STATEFUL_SETS)
        self.leader_worker_sets = Store(kinds.LEADER_WORKER_SETS)
        self.services = Store(kinds.SERVICES)
        self.autoscalers = Store(kinds.AUTOSCALERS)
        self.gpu_demands = Store(kinds.GPU_DEMANDS)
        self.node_profiles = Store(kinds.NODE_PROFILES)
        self.resource_slices = Store(kinds.RESOURCE_SLICES)
        self.device_classes = Store(kinds.DEVICE_CLASSES)
        self.resource_claims = Store(kinds.RESOURCE_CLAIMS)
        self.resource_claim_templates = Store(kinds.RESOURCE_CLAIM_TEMPLATES)
        self.pod_templates = Store(kinds.POD_TEMPLATES)
        self.capacity_buffers = Store(kinds.CAPACITY_BUFFERS)
        self.provisioning_requests = Store(kinds.PROVISIONING_REQUESTS)
        self.request_events = Store(kinds.request_events(TRIGGER_NAMESPACE))
        self.unread: set[str] = set()
        """Names of the kinds that the account may not list, where they are read once."""
        self._joining = Joining()
        self._last_nodes: tuple[tuple[Node, ...], IndexedNodes] | None = None
        self._last_pods: tuple[tuple[Pod, ...], IndexedPods] | None = None

    def __iter__(self) -> Iterator[Store[Any]]:
        return (each for each in vars(self).values() if isinstance(each, Store))

    @property
    def version(self) -> int:
        """Increases with every change of a store."""
        return sum(store.version for store in self)

    def locate_requests(self) -> bool:
        """Has `request_events` read in the namespace that the Environment names; returns whether it is another one."""
        found = self.environments.values()
        kind = kinds.request_events(found[0].spec.demand.namespace if len(found) == 1 else TRIGGER_NAMESPACE)
        moved = kind.path != self.request_events.kind.path
        self.request_events.kind = kind
        return moved

    def snapshot(self, warnings: tuple[str, ...] = (), stale: tuple[str, ...] = ()) -> Snapshot:
        """The Snapshot of the stores.

        Raises PlimsollError for more than one Environment, and InvalidObjectError for an Environment that cannot be
        read: planning with default settings instead would delete its capacity.
        """
        environment, notes = self._environment()
        workloads = (self.deployments, self.stateful_sets, self.leader_worker_sets, self.services)
        asking = (self.pods, self.pod_templates, self.capacity_buffers, self.provisioning_requests)
        claims = ClaimObjects(
            self.resource_slices.values(),
            self.device_classes.values(),
            self.resource_claims.values(),
            self.resource_claim_templates.values(),
        )
        made = (self.node_claims, self.node_pools, *workloads, self.resource_claim_templates, *asking)
        pods = self._indexed_pods(self._joining.pods(self.pods.values(), claims))
        node_claims, budgets = self.node_claims.values(), self.disruption_budgets.values()
        leaving = any(each.deleting for each in node_claims)
        # Every part was validated when it was read.
        return Snapshot.model_construct(
            environment=environment,
            workspaces=self.workspaces.values(),
            invalid_workspaces=self.workspaces.unreadable(),
            nodes=self._indexed_nodes(self._joining.nodes(self.nodes.values(), claims)),
            node_claims=with_blocking_pods(node_claims, pods, budgets) if leaving else node_claims,
            node_pools=self.node_pools.values(),
            node_overlays=self.node_overlays.values(),
            node_classes=(*self.node_classes.values(), *self.aks_node_classes.values()),
            claim_events=self._genuine_claim_events(),
            request_events=self.request_events.values(),
            gone_claims=self.node_claims.removed(),
            pods=pods,
            host_loads=self.pods.loads(),
            daemon_sets=self.daemon_sets.values(),
            namespaces=self.namespaces.values(),
            resource_quotas=self.resource_quotas.values(),
            disruption_budgets=budgets,
            volume_claims=self.volume_claims.values(),
            volumes=self.volumes.values(),
            storage_classes=self.storage_classes.values(),
            queues=self.queues.values(),
            pod_groups=self.pod_groups.values(),
            topologies=self.topologies.values(),
            scheduling_shards=self.scheduling_shards.values(),
            workloads=tuple(workload for store in workloads for workload in store.values()),
            autoscalers=self.autoscalers.values(),
            gpu_demands=self.gpu_demands.values(),
            node_profiles=self.node_profiles.values(),
            resource_slices=claims.slices,
            device_classes=claims.classes,
            resource_claims=claims.claims,
            resource_claim_templates=claims.templates,
            pod_templates=self.pod_templates.values(),
            capacity_buffers=self.capacity_buffers.values(),
            provisioning_requests=self.provisioning_requests.values(),
            gone=frozenset().union(*(store.gone() for store in made)),
            refused_workloads=_told_refusals(self.workspaces.values()),
            missing_kinds=tuple(store.kind.name for store in self if not store.served),
            warnings=(
                *notes,
                *(
                    f"skipped, cannot be read: {item.message}"
                    for store in self
                    if store is not self.workspaces
                    for item in store.unreadable()
                ),
                *warnings,
            ),
            stale=stale,
        )

    def _genuine_claim_events(self) -> tuple[ClaimEvent, ...]:
        """The Events, without those about a known NodeClaim whose UID is not that of the NodeClaim."""
        events = self.claim_events.values()
        if not events:
            return ()
        alive = (self.node_claims.get(("", event.claim)) for event in events)
        claims = (*self.node_claims.removed(), *(claim for claim in alive if claim is not None))
        known = {(claim.name, claim.uid) for claim in claims}
        names = {name for name, _ in known}
        return tuple(each for each in events if each.claim not in names or (each.claim, each.claim_uid) in known)

    def _has_devices(self, name: str) -> bool:
        node = self.nodes.get(("", name))
        return node is not None and (any(map(is_device, node.allocatable)) or self._joining.has_devices(name))

    def _indexed_nodes(self, nodes: tuple[Node, ...]) -> IndexedNodes:
        """The index of the nodes; the same object while no node changes."""
        last = self._last_nodes
        if last is None or last[0] is not nodes:
            last = self._last_nodes = (nodes, IndexedNodes(nodes))
        return last[1]

    def _indexed_pods(self, pods: tuple[Pod, ...]) -> IndexedPods:
        """The index of the pods, updated from that of the last snapshot, because few of many pods change."""
        last = self._last_pods
        if last is None or last[0] is not pods:
            last = self._last_pods = (pods, IndexedPods.of(pods, None if last is None else last[1]))
        return last[1]

    def _environment(self) -> tuple[Environment, tuple[str, ...]]:
        found = self.environments.values()
        broken = self.environments.unreadable()
        names = sorted([each.name for each in found] + [each.ref.name for each in broken])
        if len(names) > 1:
            raise PlimsollError(
                f"the cluster has {len(names)} Environments: {', '.join(names)}", "keep one and delete the others"
            )
        if broken:
            raise InvalidObjectError(broken[0].message, "correct the Environment; nothing is planned without it")
        if found:
            return found[0], ()
        if self.environments.kind.name in self.unread:
            return Environment.default(), ()
        missing = [store.kind.name for store in (self.environments, self.workspaces) if not store.served]
        if missing:
            kinds = f"kind{'s' if len(missing) > 1 else ''} {' and '.join(missing)}"
            note = (
                f"the cluster does not know the {kinds} of {GROUP}, and defaults are used: apply the foundation stack"
            )
        else:
            note = "the cluster has no Environment: the defaults are used (no auto-provisioning)"
        return Environment.default(), (note,)


def _told_refusals(workspaces: Iterable[Workspace]) -> dict[str, Refusal]:
    """The refusals by the apiserver that the controller told of this generation of a Workspace, by its UID: commands
    send no dry runs. The controller itself asks."""
    found = dict[str, Refusal]()
    for each in workspaces:
        said = condition_of(each.status.conditions, ConditionType.RESOURCE_READY)
        if said is not None and said.status == "False" and said.message.startswith(NO_NODES_FOR):
            reason = Reason.INVALID_SPEC if said.reason == Reason.INVALID_SPEC.value else Reason.NOT_ALLOWED
            if said.observed_generation == each.generation:
                found[each.uid] = Refusal(reason, said.message)
    return found
