"""Refusals for the nodes that a selector matches. Messages keep KAITO's known phrases."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from plimsoll.cluster.nodes.pod_gpus import PodDevices, Unusable
from plimsoll.cluster.profiles import ALL_DISABLED, InvalidGpuLabel, discovery_of
from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRESENT, GPU_PRODUCT, MIG_CONFIG, MIG_PREFIX, ZONE
from plimsoll.model import Reason, Refusal
from plimsoll.model.cluster import NVIDIA, Node
from plimsoll.text import SHOWN, counted, shortlist

SHARED: Final = ".shared"
"""Suffix of the resource where the device plugin's time-slicing has `renameByDefault`."""


class GpuRequest(NamedTuple):
    """What a Workspace requests of a node. The advice of a refusal depends on it."""

    resource: str
    partition: str
    """Mode of `resource.partition`; empty: whole nodes."""
    template: bool
    devices: int = 0
    """Devices that the template requests of the resource; 0: as many as the node has."""


PCI_PRESENT: Final = "feature.node.kubernetes.io/pci-10de.present"
"""NVIDIA's charts run their DaemonSets where this label or `nvidia.com/gpu.present` is `true`."""


def none_matches(selector: str, nodes: int, deleting: list[str]) -> Refusal:
    zoned = " or resource.zones" if ZONE in selector else ""
    going = f", except nodes that are being deleted: {shortlist(deleting)}" if deleting else ""
    return Refusal(
        Reason.NO_MATCHING_NODES,
        f"No nodes found matching the specified label selector {selector!r}{going} (of {counted(nodes, 'node')}): "
        f"label the nodes, or change resource.labelSelector{zoned}",
    )


def invalid_labels(invalid: list[tuple[Node, InvalidGpuLabel]]) -> Refusal:
    node, problem = invalid[0]
    more = f"; the same on {shortlist([each.name for each, _ in invalid[1:]])}" if len(invalid) > 1 else ""
    unseen = not {PCI_PRESENT, GPU_PRESENT} & node.labels.keys()
    hint = (
        f"; the node has neither label {PCI_PRESENT} nor {GPU_PRESENT}, and NVIDIA's charts need one of them"
        if unseen
        else ""
    )
    advice = f"run GPU Feature Discovery on it, or narrow resource.labelSelector{hint}"
    if problem.label.startswith(MIG_PREFIX):
        advice = f"divide its GPUs (label {MIG_CONFIG}), or remove resource.partition"
    return Refusal(
        Reason.GPU_LABELS_INVALID,
        f"Failed to get GPU config from nvidia labels on node {node.name}: {problem}{more}: {advice}",
    )


def undiscovered(nodes: list[Node]) -> Refusal:
    names = shortlist([node.name for node in nodes])
    unseen = [node.name for node in nodes if not {PCI_PRESENT, GPU_PRESENT} & node.labels.keys()]
    hint = (
        f"; without label {PCI_PRESENT} or {GPU_PRESENT}, of which NVIDIA's charts need one: {shortlist(unseen)}"
        if unseen
        else ""
    )
    return Refusal(
        Reason.GPU_LABELS_INVALID,
        f"Failed to get GPU config from nvidia labels on node {names}: GPU Feature Discovery has not run there yet: "
        f"wait until it has, or install it{hint}",
    )


def not_uniform(selector: str, groups: dict[PodDevices, list[Node]]) -> Refusal:
    """Names nodes and values of each group, largest first, which is most likely the intended one."""
    alike: dict[tuple[str, int, int], list[str]] = {}
    for offer, nodes in groups.items():
        alike.setdefault(offer.uniformity, []).extend(node.name for node in nodes)
    offers = {offer.uniformity: offer for offer in groups}
    by_size = sorted(alike.items(), key=lambda item: (-len(item[1]), item[0]))
    described = [f"{_described(offers[values])} on {shortlist(sorted(names))}" for values, names in by_size]
    differing = [
        name
        for name, values in zip(("product", "count", "memory"), zip(*alike, strict=True), strict=True)
        if len(set(values)) > 1
    ]
    parts = " and ".join(filter(None, (", ".join(differing[:-1]), differing[-1])))
    return Refusal(
        Reason.NON_UNIFORM_NODES,
        f"Non-uniform GPU product/count/memory: the nodes that labelSelector {selector!r} matches differ in "
        f"{parts}: {'; '.join(described[:SHOWN])}"
        + (f"; and {len(described) - SHOWN} more kinds" if len(described) > SHOWN else "")
        + ": narrow resource.labelSelector to one of them",
    )


def _described(offer: PodDevices) -> str:
    """By NVIDIA's labels, in which the selector can be narrowed; other vendors have other ones."""
    product, count, memory_mib = offer.uniformity
    if not offer.device.profile and offer.device.vendor != NVIDIA:
        return f"{count} x {product}" + (f" of {memory_mib} MiB" if memory_mib else ", memory not known")
    counted_as = f"{GPU_COUNT}={count}, " if count else ""
    return f"{GPU_PRODUCT}={product}, {counted_as}{GPU_MEMORY}={memory_mib} MiB"


def none_usable(
    selector: str, nodes: list[Node], problems: Mapping[str, str], offers: list[Unusable], requested: GpuRequest
) -> Refusal:
    """`problems` are those of the nodes by name, `offers` those of nodes whose GPUs are not what is requested."""
    profiles = sorted({profile for offer in offers for profile in offer.profiles})
    advice = ", or ".join(dict.fromkeys(_remedies(node, problems.get(node.name, ""), requested) for node in nodes))
    if profiles and requested.partition == "mig":
        advice = f"set resource.partition.profile to one that the nodes have ({shortlist(profiles)})"
    elif profiles:
        advice = (
            f"set resource.partition to mode mig with a profile that the nodes have ({shortlist(profiles)}), or "
            f"{MIG_CONFIG}={ALL_DISABLED} on a node"
        )
    elif offers:
        advice = ", or ".join(dict.fromkeys(offer.advice for offer in offers))
    none = f"None of the {len(nodes)} nodes" if len(nodes) > 1 else "The only node"
    return Refusal(
        Reason.NO_USABLE_NODES,
        f"{none} that labelSelector {selector!r} matches {'can' if len(nodes) > 1 else 'cannot'} be used: "
        f"{shortlist([f'{name} ({problem})' for name, problem in problems.items()])}; {advice}",
    )


_REMEDIES: Final = {
    "tainted": (
        "remove the taint, or name it in nodeClaims.taints of the Environment, so that presets tolerate it",
        "tolerate the taint in inference.template",
    ),
    "unhealthy": ("repair or replace the node",) * 2,
    "too little cpu": (
        "lower pods.resources, or select nodes with more of it",
        "lower what inference.template requests, or select larger nodes",
    ),
    "too little": (
        "keep the files on a volume (inference.weights), or select nodes with more of it",
        "lower what inference.template requests, or select larger nodes",
    ),
}
"""By the beginning of the problem: what to change for a preset, and for a template."""


def _remedies(node: Node, problem: str, requested: GpuRequest) -> str:
    """What makes the node usable."""
    for beginning, (of_preset, of_template) in _REMEDIES.items():
        if problem.startswith(beginning):
            return of_template if requested.template else of_preset
    if problem == "cordoned":
        return f"uncordon it (kubectl uncordon {node.name})"
    if "allocatable" not in problem:
        return "wait until it is Ready"
    if f"{requested.resource}{SHARED}" in node.allocatable:
        return (
            f"set gpuResource of the Environment to {requested.resource}{SHARED}, as time-slicing renamed the resource"
        )
    if requested.resource not in node.allocatable:
        return "run NVIDIA's device plugin on it, which makes the GPUs allocatable"
    if requested.partition:
        return "lower resource.partition.count"
    gpus = discovery_of(node).gpus
    if gpus is not None and requested.devices > gpus.announced:
        return f"lower the GPUs that inference.template requests to {gpus.announced}, or select larger nodes"
    return "check why the device plugin reports fewer GPUs than GPU Feature Discovery"
