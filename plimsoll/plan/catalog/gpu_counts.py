"""How many GPU devices a NodeClaim stands for."""

from collections.abc import Iterable

from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.catalog.offered import OfferedTypes
from plimsoll.quantity import parse_devices


def claim_gpus(claim: NodeClaim, resource: str, types: OfferedTypes) -> int:
    """GPU devices that a NodeClaim stands for: those it requests, else those of its instance type."""
    resources = claim.spec.get("resources")
    requests = resources.get("requests") if isinstance(resources, dict) else None
    amount = requests.get(resource) if isinstance(requests, dict) else None
    if amount is not None:
        try:
            return parse_devices(amount)
        except ValueError:
            pass
    return most_gpus(claim.instance_types, types)


def most_gpus(instance_types: Iterable[str], types: OfferedTypes) -> int:
    """GPUs of the largest of the types, as far as they are known."""
    found = [each.claimable or 0 for name in instance_types if (each := types.find(name)) is not None]
    return max(found, default=0)
