"""Whether the pods of a Workspace can be placed on a node now: taints, conditions, devices."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from plimsoll.cluster.nodes.gpu_offer import Offer
from plimsoll.cluster.nodes.index import gpu_devices
from plimsoll.model.api import SPOT, EnvironmentSpec, Workspace
from plimsoll.model.cluster import Node
from plimsoll.model.meta import Toleration, dig, untolerated


def tolerations(
    environment: EnvironmentSpec, template: Mapping[str, Any] | None, *, spot: bool = False
) -> list[dict[str, Any]]:
    """The template's tolerations, then those for GPU nodes (NVIDIA's, KAITO's), for the Environment's taints, and for
    spot nodes where they are chosen (AKS)."""
    found: list[dict[str, Any]] = list(dig(template, "spec.tolerations") or [])
    ours: list[dict[str, Any]] = [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    ]
    for taint in environment.node_claims.taints:
        ours.append({"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect})
    if spot:
        ours.append({"key": "kubernetes.azure.com/scalesetpriority", "operator": "Equal", "value": "spot"})
    for each in ours:
        if each not in found:
            found.append(each)
    return found


class Tolerance:
    """The tolerations of a Workspace's pods, applied to nodes."""

    def __init__(
        self, environment: EnvironmentSpec, template: Mapping[str, Any] | None = None, *, spot: bool = False
    ) -> None:
        read = (_read(each) for each in tolerations(environment, template, spot=spot))
        self._tolerations = [each for each in read if each is not None]
        self.key = str(self._tolerations)
        """Equal for Workspaces with equal tolerations."""

    def untolerated_taints(self, node: Node) -> list[str]:
        """Taints that are not tolerated, as `key=value:effect`."""
        return [str(taint) for taint in untolerated(node.taints, self._tolerations)] if node.taints else []


class Tolerances:
    """The tolerance of each Workspace; shared by those whose templates have no tolerations."""

    def __init__(self, environment: EnvironmentSpec) -> None:
        self._environment = environment
        self._plain = Tolerance(environment)

    def of(self, workspace: Workspace) -> Tolerance:
        template = workspace.template
        spot = may_be_spot(workspace, self._environment)
        plain = not spot and not dig(template, "spec.tolerations")
        return self._plain if plain else Tolerance(self._environment, template, spot=spot)


def may_be_spot(workspace: Workspace, environment: EnvironmentSpec) -> bool:
    """Whether the Workspace's nodes may be spot instances by its own choice or the Environment's."""
    return (workspace.spec.resource.capacity_type or environment.node_claims.capacity_type) in SPOT


def _read(toleration: Any) -> Toleration | None:
    """None for a toleration that the apiserver would reject: it tolerates nothing."""
    try:
        return Toleration.model_validate(toleration)
    except ValidationError:
        return None


def why_unusable(node: Node, tolerance: Tolerance) -> str:
    """Why no pod with these tolerations can be placed on the node now; empty if it can."""
    if node.deleting:
        return "being deleted"
    if node.ready is False:
        return "not Ready"
    if node.unschedulable:
        return "cordoned"
    taints = tolerance.untolerated_taints(node)
    return f"tainted {' '.join(taints)}" if taints else ""


def short_of_devices(node: Node, offer: Offer, devices: int, gpu_resource: str) -> str:
    """How many devices the node lacks for one pod; empty if it has them, or reports nothing.

    `gpu_resource` is that of the Environment, for offers without their own.
    """
    if not node.allocatable:
        return ""
    resource = offer.resource or gpu_resource
    amount = gpu_devices(node, resource) or 0
    return "" if amount >= devices else f"{amount} {resource} allocatable, {devices} requested"
