"""What pods take of a node."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.packing.nodes.need import UNBOUNDED, FreeNode, PodNeed


@dataclass(frozen=True, slots=True)
class NodeUse:
    node: str
    gpus: tuple[int, ...]
    """Thousandths of each GPU."""
    cpu_milli: int
    memory_mib: int
    pods: int

    @classmethod
    def of(cls, node: FreeNode, held: Sequence[Collection[str]], needs: Mapping[str, PodNeed]) -> "NodeUse | None":
        """What pods take that lie so on the GPUs of a node; None where one of them may not be on that kind of GPU."""
        kind, cpu_milli, memory_mib = node.kind, 0, 0
        gpus = []
        for names in held:
            milli = 0
            for name in names:
                size = needs[name].milli.get(kind)
                if not size:
                    return None
                milli += size
            gpus.append(milli)
        pods = {name for names in held for name in names}
        for name in pods:
            cpu_milli += needs[name].cpu_milli
            memory_mib += needs[name].memory_mib
        return cls(node.name, tuple(gpus), cpu_milli, memory_mib, len(pods))

    def fits(self, node: FreeNode) -> bool:
        """Whether the node has so much free."""
        return (
            len(self.gpus) == len(node.gpus)
            and self.cpu_milli <= node.cpu_milli
            and self.memory_mib <= node.memory_mib
            and self.pods <= node.pods
            and all(asked <= free for asked, free in zip(self.gpus, node.gpus, strict=True))
        )

    def taken_from(self, node: FreeNode, times: int = 1) -> FreeNode:
        """What is left of the node; what is free once it is given back, where `times` is -1."""
        gpus = tuple(free - times * asked for free, asked in zip(node.gpus, self.gpus, strict=True))
        return FreeNode(
            node.name,
            node.kind,
            gpus,
            node.cpu_milli - times * self.cpu_milli,
            node.memory_mib - times * self.memory_mib,
            node.pods if node.pods >= UNBOUNDED else node.pods - times * self.pods,
        )
