"""What the NodePools of a cluster have left under their limits, while nodes are planned of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.model.node_pool import NodePool
from plimsoll.model.quantity import parse_cpu_milli, parse_devices, parse_memory_mib
from plimsoll.plan.pool_shape import UNBOUNDED, PoolShape

_PARSERS: Final = {"cpu": parse_cpu_milli, "memory": parse_memory_mib}
"""Of everything else there are whole devices."""

Amounts = dict[str, int]
"""By resource: millicores, MiB, devices, nodes."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that one more node would pass."""

    node_pool: str
    resource: str
    limit: str

    def __str__(self) -> str:
        return (
            f"limits.{self.resource} of NodePool {self.node_pool} is {self.limit}, and one more node would pass it: "
            "raise the limit, or let another NodePool serve the pods"
        )


class PoolLimits:
    """What is left of each limit. Karpenter leaves out types that would pass one, so neither are they planned."""

    def __init__(self, pools: Sequence[NodePool], gpu_resource: str) -> None:
        self._resource = gpu_resource
        self._limits = {pool.name: pool.limits for pool in pools if pool.limits}
        self._left: dict[str, Amounts] = {
            pool.name: {key: _amount(key, value) - _amount(key, pool.used.get(key, 0)) for key, value in held.items()}
            for pool in pools
            if (held := {key: value for key, value in pool.limits.items() if _readable(key, value)})
        }

    def copy(self) -> "PoolLimits":
        """The same, to be changed alone."""
        other = PoolLimits((), self._resource)
        other._limits = self._limits
        other._left = {pool: dict(left) for pool, left in self._left.items()}
        return other

    def give(self, shape: PoolShape, nodes: int = 1) -> None:
        """Makes room for so many nodes; takes it where the number is negative."""
        left = self._left.get(shape.node_pool)
        if left is not None:
            for key, amount in self._asked(shape).items():
                if key in left:
                    left[key] += nodes * amount

    def excess(self, shape: PoolShape) -> Excess | None:
        """The limit that one more node would pass; None where none."""
        left = self._left.get(shape.node_pool)
        if left is None:
            return None
        for key, amount in self._asked(shape).items():
            if amount > left.get(key, amount):
                return Excess(shape.node_pool, key, str(self._limits[shape.node_pool][key]))
        return None

    def state(self) -> tuple[object, ...]:
        """A value that is the same for the same room."""
        return tuple((pool, *left.items()) for pool, left in sorted(self._left.items()))

    def _asked(self, shape: PoolShape) -> Amounts:
        known = {"cpu": shape.node_cpu_milli, "memory": shape.node_memory_mib}
        return {
            self._resource: shape.gpus,
            "nodes": 1,
            **{key: value for key, value in known.items() if value < UNBOUNDED},
        }


def _readable(resource: str, value: str | int | float) -> bool:
    try:
        _PARSERS.get(resource, parse_devices)(value)
    except ValueError:
        return False
    return True


def _amount(resource: str, value: str | int | float) -> int:
    return _PARSERS.get(resource, parse_devices)(value) if _readable(resource, value) else 0
