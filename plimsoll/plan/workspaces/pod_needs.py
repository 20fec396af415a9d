"""What a pod of a Workspace needs of its node besides GPUs: CPU, memory, and disk for the model's files."""

import math
from typing import Any

from plimsoll.cluster.nodes import CPU, DISK, MEMORY, Amounts, lacking, said
from plimsoll.estimating import preset_of
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import EnvironmentSpec, Inference, Provisioner, Workspace
from plimsoll.model.cluster import MIB_PER_GIB, InstanceType
from plimsoll.model.karpenter import NodeClass
from plimsoll.model.meta import HostRequest
from plimsoll.presets import DISK_HEADROOM_GIB, ModelCatalog, ModelPreset
from plimsoll.serving import resources_of, settings_of


def host_need(workspace: Workspace, environment: EnvironmentSpec, models: ModelCatalog) -> Amounts | Refusal:
    """What the template requests; for a preset, what the settings of its pods request, and room for its files where
    they are kept on the node's disk or in its memory."""
    inference = workspace.spec.inference
    if inference is None:
        return {}
    if inference.template is not None:
        try:
            return _requested(inference.template["spec"])
        except ValueError as error:
            return Refusal(Reason.INVALID_SPEC, f"inference.template: {error}: correct the quantity")
    known, kept = preset_of(inference, models), _kept(inference, environment)
    settings = settings_of(inference, environment).resources
    needed = {} if settings is None else _requested({"containers": [{"resources": resources_of(settings, {})}]})
    if not isinstance(known, ModelPreset) or not kept:
        return needed
    return {**needed, kept: max(math.ceil(known.size_gib * MIB_PER_GIB), needed.get(kept, 0))}


def _kept(inference: Inference, environment: EnvironmentSpec) -> str:
    """The resource of the node that keeps a preset's files; empty where they are on a volume."""
    weights = inference.weights or environment.weights
    source = {"emptyDir": {}} if weights is None else weights.volume_source
    if "emptyDir" not in source:
        return ""
    return MEMORY if (source["emptyDir"] or {}).get("medium") == "Memory" else DISK


def _requested(spec: dict[str, Any]) -> dict[str, int]:
    host = HostRequest.read(spec)
    needed = {CPU: host.cpu_milli, MEMORY: host.memory_mib, DISK: host.storage_mib}
    return {resource: amount for resource, amount in needed.items() if amount}


def beyond_type(workspace: Workspace, needed: Amounts, has: Amounts, instance_type: str) -> Refusal | None:
    """A refusal of pods that need more than any node of the instance type is known to have."""
    resource = lacking(needed, has)
    if not resource:
        return None
    node = f"a node of instance type {instance_type!r} has {said(resource, has[resource])} allocatable"
    known = "or say in a NodeProfile what such nodes have"
    if workspace.template is not None:
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.template requests {said(resource, needed[resource])}, and {node}: lower the request, change "
            f"resource.instanceType, {known}",
        )
    advice = {
        CPU: "",
        MEMORY: "keep the files on a volume (inference.weights) if they are in memory, ",
        DISK: "keep the files on a volume (inference.weights), use a node class with a larger disk, ",
    }
    return Refusal(
        Reason.INVALID_SPEC,
        f"the preset's pods take {said(resource, needed[resource])}, and {node}: {advice[resource]}lower "
        f"pods.resources, change resource.instanceType, {known}",
    )


def requested_disk_gib(workspace: Workspace, known: ModelPreset | None, environment: EnvironmentSpec) -> int | None:
    """Disk that a NodeClaim requests, GiB; None for none. Karpenter launches no node that lacks it."""
    if known is None or workspace.spec.inference is None:
        return environment.node_claims.storage_gib
    return known.disk_gib if _kept(workspace.spec.inference, environment) == DISK else DISK_HEADROOM_GIB


def disk_of_new_node(workspace: Workspace, needed: Amounts, environment: EnvironmentSpec, models: ModelCatalog) -> int:
    """Disk that a new node must have, MiB: for the pod, and for what the NodeClaim requests where there is one."""
    least = needed.get(DISK, 0)
    if environment.effective_provisioner is not Provisioner.NODECLAIM:
        return least
    known = preset_of(workspace.spec.inference, models) if workspace.spec.inference is not None else None
    requested = requested_disk_gib(workspace, known if isinstance(known, ModelPreset) else None, environment)
    return max(least, (requested or 0) * MIB_PER_GIB)


def beyond_node_class(least: int, listed: InstanceType | None, node_class: NodeClass) -> Refusal | None:
    """A refusal of nodes that need more disk, MiB, than the node class gives nodes of the type, where it says how
    much."""
    nvme = None if listed is None else listed.disk_gib
    disk = node_class.disk_mib(nvme)
    if disk is None or disk >= least:
        return None
    larger = node_class.larger_disk(nvme, least)
    if disk >= DISK_HEADROOM_GIB * MIB_PER_GIB:
        larger += ", keep the files on a volume (inference.weights)"
    return Refusal(
        Reason.INVALID_SPEC,
        f"a new node needs {said(DISK, least)}, for files, images and caches, and by {node_class.kind} "
        f"{node_class.name} it has {said(DISK, disk)} allocatable, so that Karpenter would launch none: {larger}, or "
        "change resource.instanceType",
    )
