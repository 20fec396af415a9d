"""What demand holds of the limits of an environment: nodes that an autoscaler made, and those that are asked for."""

from dataclasses import dataclass

from plimsoll.labels import INSTANCE_TYPE, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import DemandProvisioner
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.catalog import OfferedTypes, claim_gpus
from plimsoll.plan.pools import coming_claims
from plimsoll.plan.requests import AskedObjects
from plimsoll.plan.view import ClusterView


@dataclass(frozen=True)
class DemandHolding:
    nodes: int = 0
    gpus: int = 0
    """Of NodeClaims that an autoscaler made: which pod it made one for it does not say, so all with GPUs count."""
    asked_nodes: int = 0
    asked_gpus: int = 0
    """Of nodes that are asked for and have no NodeClaim yet."""

    @classmethod
    def of(cls, view: ClusterView) -> "DemandHolding":
        """Nothing where no limit bounds it, or demand asks for nothing."""
        snapshot = view.observed
        limits, settings = snapshot.environment.spec.limits, snapshot.environment.spec.demand
        if settings.provisioner is DemandProvisioner.NONE or (limits.gpus is None and limits.nodes is None):
            return cls()
        resource = snapshot.environment.spec.gpu_resource
        made = [_gpus(claim, resource, view.types) for claim in snapshot.node_claims if WORKSPACE not in claim.labels]
        nodes, gpus = 0, 0
        for each, number in _unclaimed(snapshot, view.requests):
            nodes, gpus = nodes + number, gpus + number * each
        return cls(sum(map(bool, made)), sum(made), nodes, gpus)


def _gpus(claim: NodeClaim, resource: str, types: OfferedTypes) -> int:
    """Of the type that it was launched as, else what it asks for."""
    launched = types.find(claim.labels.get(INSTANCE_TYPE, ""))
    known = launched.claimable if launched is not None else None
    return known if known is not None else claim_gpus(claim, resource, types)


def _unclaimed(snapshot: Snapshot, asked: AskedObjects) -> list[tuple[int, int]]:
    """(GPUs of a node, nodes)."""
    coming = coming_claims(snapshot)
    unclaimed = []
    for each in asked.found:
        outstanding = each.outstanding - len(asked.came.get(each.name, ()))
        claimed = min(outstanding, coming[each.ask.node_pool])
        coming[each.ask.node_pool] -= claimed
        unclaimed.append((each.ask.gpus, outstanding - claimed))
    return unclaimed
