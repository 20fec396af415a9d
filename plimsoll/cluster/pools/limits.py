"""What is left under the limits of NodePools while nodes are planned from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.cluster.profiles import NodeProfile
from plimsoll.model.cluster import VENDOR_RESOURCES
from plimsoll.model.karpenter import NodePool
from plimsoll.packing import UNBOUNDED
from plimsoll.packing.nodes import Limit
from plimsoll.quantity import parse_cpu_milli, parse_devices, parse_memory_mib

_PARSERS: Final = {"cpu": parse_cpu_milli, "memory": parse_memory_mib}
"""Other resources are whole devices."""

Amounts = dict[str, int]
"""By resource: millicores, MiB, devices, nodes."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that one more node would exceed."""

    node_pool: str
    """Empty: of the Environment."""
    resource: str
    limit: str

    def __str__(self) -> str:
        if not self.node_pool:
            return (
                f"limits.{self.resource} of the Environment is {self.limit}, and one more node would exceed it, with "
                "those of Workspaces and of other demand: raise the limit"
            )
        return (
            f"limits.{self.resource} of NodePool {self.node_pool} is {self.limit}, and one more node would exceed it: "
            "raise the limit, or allow another NodePool for the pods"
        )


@dataclass(frozen=True)
class Room:
    """What the limits of the Environment leave for demand: `gpus` devices and `nodes`, where they are limited."""

    limits: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)

    def minus(self, gpus: int, nodes: int) -> "Room":
        """What is left beside these."""
        used = {"gpus": gpus, "nodes": nodes}
        return Room(self.limits, {key: left - used[key] for key, left in self.left.items()})

    def fitting(self, nodes: int, gpus: int) -> tuple[int, Excess | None]:
        """How many of these nodes with `gpus` devices each have room, and the limit that leaves none for more."""
        least, excess = nodes, None
        for key, amount in (("gpus", gpus), ("nodes", 1)):
            if key in self.left and (most := max(0, self.left[key] // amount)) < least:
                least, excess = most, Excess("", key, str(self.limits[key]))
        return least, excess


class PoolLimits:
    """What is left under each NodePool's limits, and under the Environment's.

    Karpenter skips instance types that would exceed a limit of their NodePool, so they are not planned either.
    """

    def __init__(self, pools: Sequence[NodePool], gpu_resource: str, room: Room | None = None) -> None:
        self._room = room or Room()
        self._environment = dict(self._room.left)
        self._resource = gpu_resource
        self._limits = {pool.name: pool.limits for pool in pools if pool.limits}
        self._left: dict[str, Amounts] = {
            pool.name: {
                key: _amount(key, value) - _amount(key, pool.used.get(key, 0)) for key, value in readable.items()
            }
            for pool in pools
            if (readable := {key: value for key, value in pool.limits.items() if _readable(key, value)})
        }

    def subtract(self, shape: NodeProfile) -> None:
        """Subtracts the resources of one node of the shape."""
        of_pool = self._left.get(shape.node_pool, {})
        for left, needed in ((of_pool, self._needed(shape)), (self._environment, _of_environment(shape))):
            for key, amount in needed.items():
                if key in left:
                    left[key] -= amount

    def excess(self, shape: NodeProfile) -> Excess | None:
        """The limit that one more node would exceed; None if there is none."""
        for key, amount in _of_environment(shape).items():
            if amount > self._environment.get(key, amount):
                return Excess("", key, str(self._room.limits[key]))
        left = self._left.get(shape.node_pool)
        if left is None:
            return None
        for key, amount in self._needed(shape).items():
            if amount > left.get(key, amount):
                return Excess(shape.node_pool, key, str(self._limits[shape.node_pool][key]))
        return None

    def tightest(self, shape: NodeProfile, nodes: int) -> Excess | None:
        """The limit that leaves room for the fewest such nodes; None if all have room for this number of nodes."""
        bounds = [
            (self._environment[key] // amount, Excess("", key, str(self._room.limits[key])))
            for key, amount in _of_environment(shape).items()
            if key in self._environment
        ]
        left = self._left.get(shape.node_pool, {})
        bounds += [
            (left[key] // max(1, amount), Excess(shape.node_pool, key, str(self._limits[shape.node_pool][key])))
            for key, amount in self._needed(shape).items()
            if key in left
        ]
        bounds = [bound for bound in bounds if bound[0] < nodes]
        return min(bounds, key=lambda bound: bound[0])[1] if bounds else None

    def packing_limits(self, shapes: Mapping[str, NodeProfile]) -> list[Limit]:
        """The limits for packing onto these shapes, by name."""
        bounds = [
            Limit(left, {name: needed[key] for name, shape in shapes.items() if (needed := _of_environment(shape))})
            for key, left in self._environment.items()
        ]
        for pool, amounts in self._left.items():
            needs = {name: self._needed(shape) for name, shape in shapes.items() if shape.node_pool == pool}
            bounds += [
                Limit(left, uses)
                for key, left in amounts.items()
                if (uses := {name: needed[key] for name, needed in needs.items() if key in needed})
            ]
        return bounds

    def _needed(self, shape: NodeProfile) -> Amounts:
        known = {
            "cpu": max(shape.capacity_cpu_milli, shape.node_cpu_milli),
            "memory": max(shape.capacity_memory_mib, shape.node_memory_mib),
        }
        return {
            shape.device.resource if shape.device.resource in VENDOR_RESOURCES else self._resource: shape.gpus,
            "nodes": 1,
            **{key: value for key, value in known.items() if value < UNBOUNDED},
        }


def _of_environment(shape: NodeProfile) -> Amounts:
    return {"gpus": shape.gpus, "nodes": 1}


def _readable(resource: str, value: str | int | float) -> bool:
    try:
        _PARSERS.get(resource, parse_devices)(value)
    except ValueError:
        return False
    return True


def _amount(resource: str, value: str | int | float) -> int:
    return _PARSERS.get(resource, parse_devices)(value) if _readable(resource, value) else 0
