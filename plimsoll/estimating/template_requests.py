"""The GPU devices that a Workspace's template requests itself."""

from collections.abc import Mapping

from plimsoll.labels import GPU_RESOURCE, is_part_of_gpu
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import EnvironmentSpec, Workspace
from plimsoll.model.cluster import VENDOR_RESOURCES, Pod
from plimsoll.model.meta import dig


def template_gpus(workspace: Workspace, environment: EnvironmentSpec) -> dict[str, int] | Refusal:
    """GPU devices that the Workspace's template requests, by resource; without those of which it requests none."""
    template = workspace.template
    if template is None:
        return {}
    groups = [
        tuple(each for each in dig(template, f"spec.{name}") or () if isinstance(each, dict))
        for name in ("containers", "initContainers")
    ]
    named = {
        resource
        for each in (*groups[0], *groups[1])
        for part in ("requests", "limits")
        for resource in dig(each, f"resources.{part}") or ()
    }
    gpus = {environment.gpu_resource, GPU_RESOURCE, *environment.demand.device_resources, *VENDOR_RESOURCES}
    requested = sorted(each for each in named if each in gpus or is_part_of_gpu(each))
    if not requested:  # as of most Workspaces: the first container requests what the Workspace needs
        return {}
    pod = Pod.model_construct(name="", containers=groups[0], init_containers=groups[1])
    found = {}
    for resource in requested:
        try:
            found[resource] = pod.devices(resource)
        except (ValueError, AttributeError) as error:
            return Refusal(
                Reason.INVALID_SPEC,
                f"inference.template requests {resource}: {error}: set a whole number of devices",
            )
    return {resource: devices for resource, devices in found.items() if devices}


def beyond_node(
    workspace: Workspace, environment: EnvironmentSpec, devices: int | None, instance_type: str, resource: str
) -> Refusal | None:
    """A refusal of a template that requests GPUs of another vendor than a node has, or more than its `devices` of the
    `resource`; None where these are not known."""
    requested = template_gpus(workspace, environment)
    if isinstance(requested, Refusal):
        return requested
    nvidia = {environment.gpu_resource, GPU_RESOURCE}
    others = {*VENDOR_RESOURCES, *(nvidia if resource in VENDOR_RESOURCES else ())} - {resource}
    if other := next((each for each in sorted(requested) if each in others), ""):
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.template requests {other}, and a node of instance type {instance_type!r} has {resource}: "
            "remove the request, and its first container requests the GPUs of its node, or change "
            "resource.instanceType",
        )
    if devices is None or requested.get(resource, 0) <= devices:
        return None
    return Refusal(
        Reason.INVALID_SPEC,
        f"inference.template requests {requested[resource]} {resource}, and a node of instance type {instance_type!r} "
        f"has {devices}: lower the request, or change resource.instanceType",
    )


def not_of_partition(requested: Mapping[str, int], resource: str, devices: int) -> Refusal | None:
    """A refusal of a template that requests something else than the devices of the partition."""
    others = [f"{number} x {name}" for name, number in requested.items() if (name, number) != (resource, devices)]
    if not others:
        return None
    return Refusal(
        Reason.INVALID_SPEC,
        f"inference.template requests {', '.join(others)}, and resource.partition {devices} x {resource}: remove the "
        "template's request, and its first container requests the partition",
    )
