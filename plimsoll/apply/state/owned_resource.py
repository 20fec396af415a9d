"""What capacity stacks own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from plimsoll.apply.state.state import State
from plimsoll.model.plan import ObjectKey
from plimsoll.provider.identity import Kind

OWNED_KINDS: Final = (
    Kind("karpenter.sh", "v1", "NodeClaim"),
    Kind("karpenter.sh", "v1", "NodePool"),
    Kind("apps", "v1", "Deployment"),
    Kind("apps", "v1", "StatefulSet"),
    Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
    Kind("", "v1", "Pod"),
    Kind("", "v1", "PodTemplate"),
    Kind("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer"),
    Kind("autoscaling.x-k8s.io", "v1", "ProvisioningRequest"),
)
"""What a Plan creates: looked for in the cluster when a state was lost."""


@dataclass(frozen=True)
class OwnedResource:
    """An object that a capacity stack owns."""

    stack: str
    key: ObjectKey
    uid: str
    urn: str


def owned(states: Iterable[State]) -> list[OwnedResource]:
    """By stack, in the order of the states, then by key."""
    return [
        OwnedResource(state.stack, each.key, each.uid, each.urn)
        for state in states
        for each in sorted(state.resources.values(), key=lambda resource: str(resource.key))
    ]
