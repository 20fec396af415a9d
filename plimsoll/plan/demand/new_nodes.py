"""NewNodes: which of the new nodes of a packing are requested now, and for which pods."""

from collections.abc import Callable, Collection, Mapping, Sequence

from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import FilledNode, PodNeed
from plimsoll.plan.demand.class_plan import ClassPlan
from plimsoll.plan.demand.demand import PlannedNode
from plimsoll.plan.demand.hosts import ShapeOffer
from plimsoll.plan.demand.joint import Part


class NewNodes:
    """Collects the new nodes to request, part by part."""

    def __init__(
        self, offers: Mapping[str, ShapeOffer], class_of: Mapping[str, ClassPlan], needs: Mapping[str, PodNeed]
    ) -> None:
        self._offers = offers
        self._class_of = class_of
        self._needs = needs
        self._kept: list[FilledNode] = []

    def add(self, part: Part, requested: Collection[str], may_wait: Callable[[str], bool]) -> set[str]:
        """Adds the new nodes of a part to request. Returns the UIDs of the pods that wait for nodes that were requested
        before.

        While requested nodes are outstanding, new nodes are requested only up to the lower bound. The remaining pods
        may fit the requested nodes in another way, because the scheduler places pods, not the plan. `may_wait` says
        whether the pod with this UID may wait.
        """
        if not any(node.name in requested for node in part.free):
            self._kept += part.packing.new_nodes
            return set()
        fullest = sorted(part.packing.new_nodes, key=lambda node: (-self._use(node), node.shape or "", node.pods))
        waiting, gpus = set[str](), 0
        for node in fullest:
            if gpus >= part.packing.least and all(may_wait(uid) for uid in node.pods):
                waiting.update(node.pods)
            else:
                self._kept.append(node)
                gpus += self._offers[node.shape or ""].shape.gpus
        return waiting

    def planned(self) -> tuple[PlannedNode, ...]:
        """The nodes to request, sorted by NodePool, instance type and pods."""
        found = [self._planned(node) for node in self._kept]
        return tuple(sorted(found, key=lambda node: (node.node_pool, node.instance_type, node.held)))

    def _use(self, node: FilledNode) -> float:
        """Used fraction of the node's devices."""
        used = sum(self._needs[name].milli[node.kind] for held in node.devices for name in held)
        return float(used) / GPU_MILLI / len(node.devices)

    def _planned(self, node: FilledNode) -> PlannedNode:
        offer, pods = self._offers[node.shape or ""], [self._needs[name] for name in node.pods]
        cpu_milli, memory_mib = sum(each.cpu_milli for each in pods), sum(each.memory_mib for each in pods)
        placements = {self._class_of[name].demand_class.placement for name in node.pods}
        sharing, requires = offer.shape.sharing, offer.requires(placements)
        reservations = 0 if sharing.resource else len(node.devices)
        others = {
            other.shape.instance_type
            for other in self._offers.values()
            if other.shape.node_pool == offer.shape.node_pool
            and other.shape.instance_type != offer.shape.instance_type
            and other.shape.gpus == offer.shape.gpus
            and other.shape.sharing == sharing
            and other.packed.cpu_milli >= cpu_milli
            and other.packed.memory_mib >= memory_mib
            and other.packed.pods >= len(pods) + reservations
            and self._devices_fit(node, other.kind.name)
            and other.requires(placements) == requires
        }
        return PlannedNode(
            instance_type=offer.shape.instance_type,
            node_pool=offer.shape.node_pool,
            gpus=offer.shape.gpus,
            kind=offer.shape.kind,
            held=_by_gpu(node.devices, sharing.per_gpu),
            cpu_milli=cpu_milli,
            memory_mib=memory_mib,
            alternatives=tuple(sorted(others)),
            demands=tuple(sorted({self._class_of[name].demand_class.name for name in node.pods})),
            gpu_memory_mib=offer.kind.gpus.memory_mib,
            requires=requires,
            resource=sharing.resource,
            scheduler=offer.kind.scheduler,
        )

    def _devices_fit(self, node: FilledNode, kind: str) -> bool:
        """Whether devices of that kind fit the pods that are planned on each device of the node."""
        return all(
            all(kind in self._needs[name].milli for name in held)
            and sum(self._needs[name].milli[kind] for name in held) <= GPU_MILLI
            for held in node.devices
        )


def _by_gpu(devices: Sequence[tuple[str, ...]], per_gpu: int) -> tuple[tuple[str, ...], ...]:
    """The pods on each GPU that is used, as if devices were taken from one GPU after the other."""
    gpus = [{name for held in devices[at : at + per_gpu] for name in held} for at in range(0, len(devices), per_gpu)]
    return tuple(sorted((tuple(sorted(held)) for held in gpus if held), key=lambda held: (-len(held), held)))
