"""Refusals of Workspaces for what their selector finds; messages keep KAITO's known phrases."""

from typing import Final

from plimsoll.model.labels import GPU_PRESENT
from plimsoll.model.node import Node
from plimsoll.model.verdict import Reason
from plimsoll.plan.gpu_labels import GpuLabels, InvalidGpuLabel
from plimsoll.plan.refusal import Refusal
from plimsoll.plan.shortlist import SHOWN, counted, shortlist

PCI_PRESENT: Final = "feature.node.kubernetes.io/pci-10de.present"
"""NVIDIA's charts run their DaemonSets where this label or `nvidia.com/gpu.present` is `true`."""


def none_matches(selector: str, nodes: int, deleting: list[str]) -> Refusal:
    going = f" but {shortlist(deleting)}, which are being deleted" if deleting else ""
    return Refusal(
        Reason.NO_MATCHING_NODES,
        f"No nodes found matching the specified label selector {selector!r}{going} ({counted(nodes, 'node')} looked "
        "at): label the nodes so, or change resource.labelSelector",
    )


def invalid_labels(invalid: list[tuple[Node, InvalidGpuLabel]]) -> Refusal:
    node, problem = invalid[0]
    more = f"; so do {shortlist([each.name for each, _ in invalid[1:]])}" if len(invalid) > 1 else ""
    unseen = not {PCI_PRESENT, GPU_PRESENT} & node.labels.keys()
    hint = (
        f"; its node has neither {PCI_PRESENT} nor {GPU_PRESENT}, one of which NVIDIA's charts need to run there"
        if unseen
        else ""
    )
    return Refusal(
        Reason.GPU_LABELS_INVALID,
        f"Failed to get GPU config from nvidia labels on node {node.name}: {problem}{more}: run GPU Feature Discovery "
        f"there, or narrow resource.labelSelector{hint}",
    )


def not_uniform(selector: str, groups: dict[GpuLabels, list[Node]]) -> Refusal:
    """Names nodes and values of each group, the largest first: most likely the one that is meant."""
    alike: dict[tuple[str, int, int], list[str]] = {}
    for gpus, nodes in groups.items():
        alike.setdefault(gpus.uniformity, []).extend(node.name for node in nodes)
    by_size = sorted(alike.items(), key=lambda item: (-len(item[1]), item[0]))
    described = [f"{GpuLabels(*values)} on {shortlist(sorted(names))}" for values, names in by_size]
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
