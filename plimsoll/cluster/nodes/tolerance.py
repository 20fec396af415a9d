"""Whether the pods of a Workspace can be placed on a node now: taints, conditions, devices."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from plimsoll.cluster.nodes.index import gpu_devices
from plimsoll.cluster.nodes.pod_gpus import PodDevices
from plimsoll.model.api import SPOT, EnvironmentSpec, Workspace
from plimsoll.model.cluster import Node
from plimsoll.model.meta import Taint, Toleration, dig, untolerated


def tolerations(
    environment: EnvironmentSpec,
    own: Iterable[dict[str, Any]],
    taints: Iterable[Taint] = (),
    *,
    spot: bool = False,
) -> list[dict[str, Any]]:
    """The pods' `own` tolerations, then those for GPU nodes (NVIDIA's, KAITO's), for the Environment's taints and
    further `taints`, and for spot nodes where they are chosen (AKS)."""
    found: list[dict[str, Any]] = list(own)
    ours: list[dict[str, Any]] = [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    ]
    for taint in (*environment.node_claims.node_taints, *taints):
        ours.append({"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect})
    if spot:
        ours.append({"key": "kubernetes.azure.com/scalesetpriority", "operator": "Equal", "value": "spot"})
    for each in ours:
        if each not in found:
            found.append(each)
    return found


class Tolerance:
    """The tolerations of a Workspace's pods, applied to nodes."""

    def __init__(self, environment: EnvironmentSpec, own: Iterable[dict[str, Any]] = (), *, spot: bool = False) -> None:
        read = (_read(each) for each in tolerations(environment, own, spot=spot))
        self.broken_by = environment.broken_by
        """Conditions by which nodes are not usable."""
        self._tolerations = [each for each in read if each is not None]
        self.key = str(self._tolerations)
        """Equal for Workspaces with equal tolerations."""

    def untolerated_taints(self, node: Node) -> list[str]:
        """Taints that are not tolerated, as `key=value:effect`."""
        return [str(taint) for taint in untolerated(node.taints, self._tolerations)] if node.taints else []


class Tolerances:
    """The tolerance of each Workspace; shared by those whose pods have the same tolerations."""

    def __init__(self, environment: EnvironmentSpec) -> None:
        self._environment = environment
        self._found: dict[tuple[str, bool], Tolerance] = {}

    def of(self, workspace: Workspace) -> Tolerance:
        own, spot = own_tolerations(workspace, self._environment), may_be_spot(workspace, self._environment)
        key = (str(own) if own else "", spot)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = Tolerance(self._environment, own, spot=spot)
        return found


def own_tolerations(workspace: Workspace, environment: EnvironmentSpec) -> list[dict[str, Any]]:
    """The tolerations that the Workspace's template has, or the settings of a preset's pods."""
    inference = workspace.spec.inference
    if inference is None:
        return []
    if inference.template is not None:
        return list(dig(inference.template, "spec.tolerations") or [])
    own = inference.pods.tolerations if inference.pods is not None else ()
    return [*environment.preset_pods.tolerations, *own]


def may_be_spot(workspace: Workspace, environment: EnvironmentSpec) -> bool:
    """Whether the Workspace's nodes may be spot instances by its own choice or the Environment's."""
    resource = workspace.spec.resource
    paid = resource.capacity_types or (resource.capacity_type or environment.node_claims.capacity_type,)
    return any(each in SPOT for each in paid)


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
    unhealthy = node.unhealthy(tolerance.broken_by)
    if unhealthy:
        return f"unhealthy: {unhealthy}"
    if node.unschedulable:
        return "cordoned"
    taints = tolerance.untolerated_taints(node)
    return f"tainted {' '.join(taints)}" if taints else ""


def short_of_devices(node: Node, offer: PodDevices, devices: int, gpu_resource: str) -> str:
    """How many devices the node lacks for one pod; empty if it has them, or reports nothing.

    `gpu_resource` is that of the Environment, for offers without their own.
    """
    if not node.allocatable:
        return ""
    resource = offer.device.resource or gpu_resource
    amount = gpu_devices(node, resource) or 0
    return "" if amount >= devices else f"{amount} {resource} allocatable, {devices} requested"
