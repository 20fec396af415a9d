"""Figures of a trace's pods on new nodes, with CPU and memory: best fit decreasing, Plimsoll, and the lower bound."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.trace import TracePod, read_nodes
from plimsoll.errors import PlimsollError
from plimsoll.packing.gpus import ANY, Item, pack
from plimsoll.packing.nodes import NodeShape, PodNeed, best_fit_gpus, pack_nodes


@dataclass(frozen=True, slots=True)
class OnNodes:
    """Figures of pods on new nodes."""

    pods: int
    unplaced: int
    """Number of pods that fit no shape."""
    nodes: int
    best_fit: int
    """GPUs of the nodes by best fit decreasing over GPUs, CPU and memory."""
    gpus: int
    """GPUs of the nodes by Plimsoll, including unused ones."""
    lower_bound_gpus: int
    nodes_by_shape: dict[str, int]
    solve_seconds: float


def load_solver() -> None:
    """Loads the solver, which takes a fifth of a second, so that this is part of no time that is measured."""
    pack([Item("first", {ANY: 600}), Item("second", {ANY: 500})])


def shapes_of(path: Path) -> list[NodeShape]:
    """All shapes of nodes in a file of nodes."""
    found = {(node.model, node.gpus, node.cpu_milli, node.memory_mib) for node in read_nodes(path)}
    return [
        NodeShape(f"{gpus} x {model}, {cpu / 1000:g} CPU, {memory / 1024:g} GiB", model, gpus, cpu, memory)
        for model, gpus, cpu, memory in sorted(found)
    ]


def shape_of(text: str) -> NodeShape:
    """Parses `GPUS:CPU_MILLI:MEMORY_MIB` into a shape of no particular model. Raises PlimsollError."""
    parts = text.split(":")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) <= 15 for part in parts):
        raise PlimsollError(f"--shape {text!r} is not GPUS:CPU_MILLI:MEMORY_MIB", "write it as in 8:96000:1152000")
    gpus, cpu_milli, memory_mib = (int(part) for part in parts)
    if not gpus:
        raise PlimsollError(f"--shape {text!r} has no GPUs", "give a shape with GPUs")
    return NodeShape(
        f"{gpus} GPUs, {cpu_milli / 1000:g} CPU, {memory_mib / 1024:g} GiB", ANY, gpus, cpu_milli, memory_mib
    )


def needs_of(pods: Iterable[TracePod], shapes: Sequence[NodeShape]) -> list[PodNeed]:
    """The needs of the pods on these shapes. Models do not count if the shapes have none."""
    modelled = any(shape.kind != ANY for shape in shapes)
    return [
        PodNeed(
            pod.key,
            dict.fromkeys((modelled and pod.models) or (ANY,), pod.gpu_milli),
            pod.gpus,
            pod.cpu_milli,
            pod.memory_mib,
        )
        for pod in pods
    ]


def on_nodes(pods: Iterable[TracePod], shapes: Sequence[NodeShape]) -> OnNodes:
    """Packs the pods as the planner does. Times are those of packing alone.

    Models do not count if the shapes have none.
    """
    needs = needs_of(pods, shapes)
    start = time.perf_counter()
    packing = pack_nodes(needs, shapes)
    seconds = time.perf_counter() - start
    return OnNodes(
        pods=len(needs),
        unplaced=len(packing.unplaced),
        nodes=len(packing.nodes),
        best_fit=best_fit_gpus(needs, shapes),
        gpus=packing.gpus,
        lower_bound_gpus=packing.least,
        nodes_by_shape=dict(sorted(Counter(node.shape or "" for node in packing.nodes).items())),
        solve_seconds=round(seconds, 6),
    )
