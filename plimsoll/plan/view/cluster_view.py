"""ClusterView: a Snapshot with everything that is derived from it."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from plimsoll.cluster.catalog import OfferedTypes
from plimsoll.cluster.nodes import NodeIndex, index_of
from plimsoll.cluster.pods import NodeUsage, Owner, PodPlaces, bound_pods, own_pods, with_waiting_pods, workspace_key
from plimsoll.cluster.queues import is_sharded
from plimsoll.cluster.volumes import Storage
from plimsoll.labels import as_label_value
from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec, Workspace, WorkspaceRef
from plimsoll.model.cluster import Pod
from plimsoll.plan.known import Known
from plimsoll.plan.owned import ClaimProgress, Owned, Ownership, by_age, created_objects
from plimsoll.plan.requests import CapacityRequests
from plimsoll.plan.view.autoscaling import autoscaled, scaled
from plimsoll.plan.view.holding import Holding
from plimsoll.presets import ModelCatalog, catalog_of


class ClusterView:
    """One Snapshot with the indexes that validation, planning, explanations and reports read.

    The loop creates one for each round, so each part is computed at most once a round, and only when it is needed. What
    is the same as in the view before, by `known`, is the same object.
    """

    def __init__(self, observed: Snapshot, known: Known | None = None) -> None:
        """`known` has the results of earlier views; it changes no part of this one."""
        self.observed = observed
        """The snapshot as observed."""
        self.known = Known() if known is None else known

    @classmethod
    def of(cls, observed: "Snapshot | ClusterView") -> "ClusterView":
        """The view of a Snapshot; returns a view unchanged."""
        return observed if isinstance(observed, ClusterView) else cls(observed)

    @cached_property
    def settings(self) -> EnvironmentSpec:
        """The spec of the Environment, whose status changes with each round that applies something."""
        spec = self.observed.environment.spec
        return self.known.result("settings", (spec,), lambda: spec)

    @cached_property
    def ownership(self) -> Ownership:
        seen = self.observed
        objects = (seen.node_claims, seen.node_pools, seen.workloads, seen.resource_claim_templates)
        arguments = (seen.workspaces, seen.invalid_workspaces, *objects, seen.environment.name, seen.recorded)
        return self.known.result("ownership", arguments, lambda: Ownership(seen))

    @cached_property
    def created(self) -> Mapping[tuple[str, str], Sequence[Owned]]:
        """Every object that the controller created, by the label values of its owner, existing or not."""
        seen = self.observed
        objects = (seen.node_claims, seen.node_pools, seen.workloads, seen.resource_claim_templates)
        arguments = (*objects, seen.environment.name, seen.recorded)
        return self.known.result("created", arguments, lambda: created_objects(seen))

    def created_for(self, ref: WorkspaceRef) -> list[Owned]:
        """The objects that the controller created for the Workspace, without those of an earlier one of its name."""
        created = self.created.get(workspace_key(ref), ())
        return [obj for obj in created if obj.owner[2] in ("", as_label_value(ref.uid))]

    @cached_property
    def snapshot(self) -> Snapshot:
        """The Snapshot with the replicas that HorizontalPodAutoscalers set; planning uses this one."""
        seen = self.observed
        workspaces = self.known.result(
            "scaled",
            (seen.workspaces, seen.autoscalers, seen.workloads, self.ownership),
            lambda: scaled(seen, self.ownership),
        )
        return seen if workspaces is seen.workspaces else seen.model_copy(update={"workspaces": workspaces})

    @cached_property
    def autoscaled(self) -> frozenset[tuple[str, str, str, str]]:
        """(API group, kind, namespace, name) of each workload whose replicas an autoscaler sets."""
        found = autoscaled(self.observed)
        return self.known.result("autoscaled", (found,), lambda: found)

    @cached_property
    def rolling(self) -> frozenset[tuple[str, str]]:
        """The Workspaces that have pods of an earlier template besides those of the new one."""
        workspaces = self.observed.workspaces
        found = frozenset(each.key for each in workspaces if each.surge and self.ownership.rolling_out(each))
        return self.known.result("rolling", (found,), lambda: found)

    @cached_property
    def by_age(self) -> tuple[Workspace, ...]:
        """The Workspaces, oldest first."""
        workspaces = self.snapshot.workspaces
        return self.known.result("by age", (workspaces,), lambda: tuple(sorted(workspaces, key=by_age)))

    @cached_property
    def holdings(self) -> Mapping[tuple[str, str], Holding]:
        """What each Workspace has, by namespace and name; oldest Workspace first."""
        arguments = (self.by_age, self.observed.workspaces, self.ownership, self.observed.nodes, self._own_pods)
        return self.known.result("holdings", arguments, self._find_holdings)

    def _find_holdings(self) -> Mapping[tuple[str, str], Holding]:
        declared = {workspace.key: workspace for workspace in self.observed.workspaces}
        return {each.key: self._holding(each, declared[each.key]) for each in self.by_age}

    def _holding(self, workspace: Workspace, declared: Workspace) -> Holding:
        own, claims = self.ownership, tuple(self.ownership.claims_of(workspace))
        pods = self._own_pods.get(workspace_key(workspace), ())
        return Holding(
            workspace=workspace,
            declared=declared,
            claims=claims,
            nodes=tuple(map(self.progress.node_of, claims)),
            pools=tuple(own.pools_of(workspace)),
            workloads=tuple(own.workloads_of(workspace)),
            services=tuple(own.services_of(workspace)),
            claim_templates=tuple(own.claim_templates_of(workspace)),
            pods=pods,
            hosts=tuple(self.index.by_name.get(pod.node_name) for pod in pods),
        )

    @cached_property
    def index(self) -> NodeIndex:
        return index_of(self.observed.nodes)

    @cached_property
    def types(self) -> OfferedTypes:
        seen = self.observed
        arguments = (
            seen.instance_types,
            self.settings,
            seen.node_pools,
            seen.node_profiles,
            seen.device_classes,
            self.index,
        )
        return self.known.result("types", arguments, lambda: OfferedTypes(seen, self.index))

    @cached_property
    def sharded(self) -> bool:
        """Whether a queue, a NodePool or a node belongs to a node pool of KAI."""
        return is_sharded(self.observed)

    @cached_property
    def storage(self) -> Storage:
        seen = self.observed
        arguments = (seen.volume_claims, seen.volumes, seen.storage_classes)
        return self.known.result("storage", arguments, lambda: Storage(seen))

    @cached_property
    def models(self) -> ModelCatalog:
        """The models that are known by name."""
        declared, refused = (*self.observed.hub_models, *self.settings.presets), self.observed.hub_refusals
        return self.known.result("models", (declared, refused), lambda: catalog_of(declared, refused))

    @cached_property
    def progress(self) -> ClaimProgress:
        nodes, settings, places = self.observed.nodes, self.settings, self.places
        arguments = (nodes, settings, places)
        return self.known.result("progress", arguments, lambda: ClaimProgress(nodes, settings, places))

    @cached_property
    def requests(self) -> CapacityRequests:
        return CapacityRequests(self.observed, self.known)

    @cached_property
    def _own_pods(self) -> Mapping[Owner, tuple[Pod, ...]]:
        found = own_pods(self.observed.pods)
        return self.known.result("own pods", (found,), lambda: found)

    @cached_property
    def places(self) -> PodPlaces:
        own, waiting = self._own_pods, with_waiting_pods(self.observed.pods)
        return self.known.result("places", (own, waiting), lambda: PodPlaces(own, waiting))

    @cached_property
    def usage(self) -> NodeUsage:
        """The pods on the nodes that Workspaces have or may have."""
        own, all_bound = self._own_pods, bound_pods(self.observed.pods)
        arguments = (self.by_age, self.ownership, self.index, own, self.settings)
        names = self.known.result("nodes of Workspaces", arguments, self._nodes_of_workspaces)
        bound = tuple(all_bound.get(name, ()) for name in names)
        return self.known.result(
            "usage", (own, names, bound), lambda: NodeUsage(own, dict(zip(names, bound, strict=True)))
        )

    def _nodes_of_workspaces(self) -> tuple[str, ...]:
        selectors = [workspace.spec.resource.selector for workspace in self.by_age]
        if not self.settings.auto_provisioning and any(selector.empty for selector in selectors):
            return tuple(self.index.by_name)  # it may have any of them
        chosen = {str(selector): selector for selector in selectors if not selector.empty}.values()
        names = {node.name for selector in chosen for node in self.index.matching(selector)}
        names |= {claim.node_name for claim in self.ownership.claims}
        names |= {pod.node_name for pods in self._own_pods.values() for pod in pods}
        return tuple(sorted(names))
