"""The plan for one class, and for all classes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import FilledNode, NodePacking, PodNeed
from plimsoll.plan.classes import ClassMembers, DemandClass, Kinds
from plimsoll.plan.demand.demand import PlannedNode
from plimsoll.plan.demand.packer import PackedClass
from plimsoll.plan.pools import PoolShape
from plimsoll.plan.queues import NO_LOAD, QueueLoad


def planned_nodes(
    nodes: Iterable[FilledNode], shapes: Sequence[PoolShape], needs: Mapping[str, PodNeed]
) -> tuple[PlannedNode, ...]:
    """In a stable order."""
    by_name = {shape.name: shape for shape in shapes}
    found = []
    for node in nodes:
        shape = by_name[node.shape or ""]
        pods = [needs[name] for name in node.pods]
        cpu_milli = sum(need.cpu_milli for need in pods)
        memory_mib = sum(need.memory_mib for need in pods)
        others = (
            other.instance_type
            for other in shapes
            if other.node_pool == shape.node_pool
            and other.instance_type != shape.instance_type
            and other.gpus == shape.gpus
            and other.cpu_milli >= cpu_milli
            and other.memory_mib >= memory_mib
            and other.pods >= len(pods)
            and _hold(node, other.kind, needs)
        )
        found.append(
            PlannedNode(
                instance_type=shape.instance_type,
                node_pool=shape.node_pool,
                gpus=shape.gpus,
                kind=shape.kind,
                held=tuple(sorted((held for held in node.gpus if held), key=lambda held: (-len(held), held))),
                cpu_milli=cpu_milli,
                memory_mib=memory_mib,
                alternatives=tuple(sorted(others)),
            )
        )
    return tuple(sorted(found, key=lambda node: (node.node_pool, node.instance_type, node.held)))


def _hold(node: FilledNode, kind: str, needs: Mapping[str, PodNeed]) -> bool:
    """Whether GPUs of that kind hold what is planned for each of the node's."""
    return all(
        all(kind in needs[name].milli for name in held) and sum(needs[name].milli[kind] for name in held) <= GPU_MILLI
        for held in node.gpus
    )


@dataclass
class PlannedClass:
    of: DemandClass
    members: ClassMembers
    shapes: tuple[PoolShape, ...] = ()
    needs: dict[str, PodNeed] = field(default_factory=dict)
    """By UID."""
    load: QueueLoad = NO_LOAD
    """What all of these would take of the queue."""
    refused: dict[str, str] = field(default_factory=dict)
    """UID to why the pod is left out."""
    nameless: dict[str, str] = field(default_factory=dict)
    """The same without names, of those whose reason has some."""
    by_queue: dict[str, str] = field(default_factory=dict)
    """The part of `refused` that the queue does not admit."""
    kept_out: dict[str, str] = field(default_factory=dict)
    """UID to why the queue does not admit a pod with whole GPUs."""
    kinds: Kinds = field(default_factory=dict)
    needed: dict[str, PodNeed] = field(default_factory=dict)
    """The part of `needs` that is not refused."""
    recalled: PackedClass | None = None
    """Its packing as an engine before this one left it."""
    packed: PackedClass = field(default_factory=lambda: PackedClass(NodePacking()))
    warnings: tuple[str, ...] = ()

    def placed(self, uid: str) -> bool:
        return uid not in self.refused and uid not in self.packed.unplaced
