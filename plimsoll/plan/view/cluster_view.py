"""ClusterView: a Snapshot with everything that is derived from it."""

from functools import cached_property

from plimsoll.cluster.catalog import OfferedTypes
from plimsoll.cluster.ledger import GpuLedger, gpu_ledger
from plimsoll.cluster.nodes import NodeIndex, index_of
from plimsoll.cluster.pods import NodeUsage, PodPlaces, marked_pods
from plimsoll.model import Snapshot
from plimsoll.plan.owned import ClaimProgress, Ownership
from plimsoll.plan.requests import CapacityRequests
from plimsoll.plan.view.autoscaling import scaled
from plimsoll.presets import ModelCatalog, catalog_of


class ClusterView:
    """One Snapshot with the indexes that validation, planning, explanations and reports read.

    The loop creates one for each round, so each part is computed at most once a round, and only when it is needed.
    """

    def __init__(self, observed: Snapshot) -> None:
        self.observed = observed
        """The snapshot as observed."""

    @classmethod
    def of(cls, observed: "Snapshot | ClusterView") -> "ClusterView":
        """The view of a Snapshot; returns a view unchanged."""
        return observed if isinstance(observed, ClusterView) else cls(observed)

    @cached_property
    def ownership(self) -> Ownership:
        return Ownership(self.observed)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The Snapshot with the replicas that HorizontalPodAutoscalers set; planning uses this one."""
        return scaled(self.observed, self.ownership)

    @cached_property
    def index(self) -> NodeIndex:
        return index_of(self.observed.nodes)

    @cached_property
    def types(self) -> OfferedTypes:
        return OfferedTypes(self.observed, self.index)

    @cached_property
    def models(self) -> ModelCatalog:
        """The models that are known by name."""
        observed = self.observed
        return catalog_of((*observed.hub_models, *observed.environment.spec.presets), observed.hub_refusals)

    @cached_property
    def progress(self) -> ClaimProgress:
        return ClaimProgress(self.observed.nodes, self.observed.environment.spec, self.places)

    @cached_property
    def requests(self) -> CapacityRequests:
        return CapacityRequests(self.observed)

    @cached_property
    def usage(self) -> NodeUsage:
        return NodeUsage(self.observed)

    @cached_property
    def places(self) -> PodPlaces:
        return PodPlaces(marked_pods(self.observed.pods))

    @cached_property
    def ledger(self) -> GpuLedger:
        return gpu_ledger(self.observed)
