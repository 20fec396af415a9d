"""Groups pods with equal needs into items, and finds the nodes that can serve them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from plimsoll.packing.gpus import size_on
from plimsoll.packing.nodes.need import FreeNode, Item, NodeShape, PodNeed
from plimsoll.packing.units import GPU_MILLI, Milli

_Room = tuple[int, int, int, int]
"""Devices, CPU, memory, storage."""


def items_of(
    needs: Iterable[PodNeed], shapes: Sequence[NodeShape], nodes: Sequence[FreeNode]
) -> tuple[list[Item], list[str]]:
    """The items, and the names of pods that fit no node even if it were empty."""
    numbers: dict[tuple[tuple[str, Milli], ...], int] = {}
    """Of different sizes by kind."""
    number_of: dict[int, int] = {}
    """By the identity of the mapping, as most pods share one: fractions are slow to hash."""
    grouped: defaultdict[tuple[int, int, tuple[int, int, int], str], list[str]] = defaultdict(list)
    pods = tuple(needs)  # all exist at once, so that identities differ
    for need in pods:
        number = number_of.get(id(need.milli))
        if number is None:
            sizes = tuple(sorted(need.milli.items()))
            number = number_of[id(need.milli)] = numbers.setdefault(sizes, len(numbers))
        amounts = need.cpu_milli, need.memory_mib, need.storage_mib
        grouped[number, need.devices, amounts, need.scheduler].append(need.name)
    holders = _roomiest(shapes, nodes)
    wanted = [dict(sizes) for sizes in numbers]
    items, unfit = list[Item](), list[str]()
    for key, names in sorted(grouped.items(), key=lambda each: min(each[1])):
        number, devices, (cpu_milli, memory_mib, storage_mib), scheduler = key
        able = {
            kind: size
            for kind, rooms in holders.items()
            if 0 < (size := size_on(wanted[number], kind)) <= GPU_MILLI
            and any(
                most >= devices and cpu >= cpu_milli and memory >= memory_mib and storage >= storage_mib
                for most, cpu, memory, storage in rooms
            )
        }
        if able:
            sizes = tuple(sorted(able.items()))
            items.append(Item(sizes, devices, cpu_milli, memory_mib, tuple(sorted(names)), scheduler, storage_mib))
        else:
            unfit += names
    return items, unfit


def _roomiest(shapes: Sequence[NodeShape], nodes: Sequence[FreeNode]) -> Mapping[str, set[_Room]]:
    """The largest amounts that a node of each kind has: those of each shape, and the maximum of each resource over free
    nodes."""
    found: defaultdict[str, set[_Room]] = defaultdict(set)
    most: dict[str, _Room] = {}
    for node in nodes:
        devices, cpu, memory, storage = most.get(node.kind, (0, 0, 0, 0))
        most[node.kind] = (
            max(devices, len(node.devices)),
            max(cpu, node.cpu_milli),
            max(memory, node.memory_mib),
            max(storage, node.storage_mib),
        )
    for kind, room in most.items():
        found[kind].add(room)
    for shape in shapes:
        found[shape.kind].add((shape.devices, shape.cpu_milli, shape.memory_mib, shape.storage_mib))
    return found


def useful(items: Sequence[Item], nodes: Iterable[FreeNode]) -> Iterator[FreeNode]:
    """The nodes that could take one of the pods while no other pod uses them, judged by each resource on its own."""
    least: dict[str, Milli] = {}
    for item in items:
        for kind, size in item.milli:
            least[kind] = min(size, least.get(kind, size))
    cpu = min((item.cpu_milli for item in items), default=0)
    memory = min((item.memory_mib for item in items), default=0)
    storage = min((item.storage_mib for item in items), default=0)
    for node in nodes:
        roomy = node.cpu_milli >= cpu and node.memory_mib >= memory and node.storage_mib >= storage
        if roomy and node.kind in least and node.devices and node.free[-1] >= least[node.kind]:
            yield node
