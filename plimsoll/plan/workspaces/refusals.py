"""Refusals for the nodes that a selector matches. Messages keep KAITO's known phrases."""

from typing import Final

from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRESENT, GPU_PRODUCT
from plimsoll.model import Reason, Refusal
from plimsoll.model.cluster import Node
from plimsoll.plan.nodes import ALL_DISABLED, MIG_CONFIG, InvalidGpuLabel, Offer, Unusable
from plimsoll.text import SHOWN, counted, shortlist

PCI_PRESENT: Final = "feature.node.kubernetes.io/pci-10de.present"
"""NVIDIA's charts run their DaemonSets where this label or `nvidia.com/gpu.present` is `true`."""


def none_matches(selector: str, nodes: int, deleting: list[str]) -> Refusal:
    going = f" but {shortlist(deleting)}, which are being deleted" if deleting else ""
    return Refusal(
        Reason.NO_MATCHING_NODES,
        f"No nodes found matching the specified label selector {selector!r}{going} (of {counted(nodes, 'node')}): "
        "label the nodes, or change resource.labelSelector",
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
    return Refusal(
        Reason.GPU_LABELS_INVALID,
        f"Failed to get GPU config from nvidia labels on node {node.name}: {problem}{more}: run GPU Feature Discovery "
        f"on it, or narrow resource.labelSelector{hint}",
    )


def not_uniform(selector: str, groups: dict[Offer, list[Node]]) -> Refusal:
    """Names nodes and values of each group, largest first, which is most likely the intended one."""
    alike: dict[tuple[str, int, int], list[str]] = {}
    for offer, nodes in groups.items():
        alike.setdefault(offer.uniformity, []).extend(node.name for node in nodes)
    by_size = sorted(alike.items(), key=lambda item: (-len(item[1]), item[0]))
    described = [f"{_labels(*values)} on {shortlist(sorted(names))}" for values, names in by_size]
    differing = [
        name
        for name, values in zip(("product", "count", "memory"), zip(*alike, strict=True), strict=True)
        if len(set(values)) > 1
    ]
    return Refusal(
        Reason.NON_UNIFORM_NODES,
        f"Non-uniform GPU product/count/memory: the nodes that labelSelector {selector!r} matches differ in "
        f"{' and '.join(differing)}: {'; '.join(described[:SHOWN])}"
        + (f"; and {len(described) - SHOWN} more kinds" if len(described) > SHOWN else "")
        + ": narrow resource.labelSelector to one of them",
    )


def _labels(product: str, count: int, memory_mib: int) -> str:
    counted_as = f"{GPU_COUNT}={count}, " if count else ""
    return f"{GPU_PRODUCT}={product}, {counted_as}{GPU_MEMORY}={memory_mib} MiB"


def none_usable(selector: str, nodes: int, unusable: list[str], offers: list[Unusable], partitioned: bool) -> Refusal:
    """`offers` are those of nodes whose MIG slices are not what the Workspace requests."""
    profiles = sorted({profile for offer in offers for profile in offer.profiles})
    advice = "make one Ready and schedulable, or tolerate its taints"
    if profiles and partitioned:
        advice = f"set resource.partition.profile to one that the nodes have ({shortlist(profiles)})"
    elif profiles:
        advice = (
            f"set resource.partition to mode mig with a profile that the nodes have ({shortlist(profiles)}), or "
            f"{MIG_CONFIG}={ALL_DISABLED} on a node"
        )
    elif offers:
        advice = "wait until the node has the slices of its MIG configuration, or change that or resource.partition"
    return Refusal(
        Reason.NO_USABLE_NODES,
        f"None of the {counted(nodes, 'node')} that labelSelector {selector!r} matches can be used: "
        f"{shortlist(unusable)}; {advice}",
    )
