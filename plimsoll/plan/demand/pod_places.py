"""Where the pods of a demand are planned, for the status of its GPUDemand; pods with equal requests are equal."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from plimsoll.model.api import MAX_HELD, MAX_LISTED, DemandPlace
from plimsoll.packing.nodes import FilledNode
from plimsoll.plan.demand.demand import Demand
from plimsoll.plan.demand.packer import PackedClass, PromisedNode
from plimsoll.plan.pods import PodShare

_Holds = tuple[tuple[str, ...], ...]
"""What is asked of each GPU."""


def nodes_with_pods(packed: PackedClass, promised: Iterable[PromisedNode]) -> tuple[FilledNode, ...]:
    """As `places` of a Demand. What was asked for is told by no name, the same as before it was."""
    coming = {each.free.name: f"{each.node_pool}/{each.instance_types[0]}" for each in promised}
    asked = (
        replace(each, node=None, shape=coming[name]) if name in coming else replace(each, node=name, shape=None)
        for name, each in packed.on_promises.items()
    )
    return (*packed.on_nodes, *asked, *packed.new)


def requests_of(pods: Mapping[str, PodShare]) -> dict[str, str]:
    """By UID all that a packing looks at, for people."""
    found, known = dict[str, str](), dict[tuple[object, ...], str]()
    for uid, each in pods.items():
        share, host = each.share, each.pod.host
        key = (share.milli, share.memory_mib, share.devices, host.cpu_milli, host.memory_mib)
        request = known.get(key)
        if request is None:
            request = known[key] = f"{share}, {host.cpu_milli}m CPU, {host.memory_mib} MiB"
        found[uid] = request
    return found


def places(demand: Demand) -> tuple[tuple[str, ...], tuple[DemandPlace, ...]]:
    """The requests and places of a status: nodes that are there first, as they cannot be asked for again."""
    found, requests, shares = list[tuple[DemandPlace, _Holds]](), set[str](), 0
    for place, holds in _all(demand):
        more = {name for gpu in holds for name in gpu} - requests
        shares += sum(map(len, holds))
        if len(found) == MAX_LISTED or len(requests) + len(more) > MAX_LISTED or shares > MAX_HELD:
            break
        found.append((place, holds))
        requests |= more
    numbers = {request: number for number, request in enumerate(sorted(requests))}
    numbered = (
        place.model_copy(update={"holds": tuple(tuple(sorted(numbers[name] for name in gpu)) for gpu in holds)})
        for place, holds in found
    )
    return tuple(numbers), tuple(numbered)


def _all(demand: Demand) -> Iterator[tuple[DemandPlace, _Holds]]:
    requests = requests_of(demand.pods)
    there = {each.node: each for each in demand.places if each.node is not None}
    for name in sorted(there):
        yield DemandPlace(node=name, holds=()), _holds(there[name], requests)
    coming = Counter(
        (each.shape or "", tuple(sorted(_holds(each, requests), reverse=True)))
        for each in demand.places
        if each.node is None
    )
    for (shape, holds), nodes in sorted(coming.items(), key=lambda each: (-each[1], each[0])):
        pool, _, instance_type = shape.partition("/")
        yield DemandPlace(node_pool=pool, instance_type=instance_type, nodes=nodes, holds=()), holds


def _holds(node: FilledNode, requests: Mapping[str, str]) -> _Holds:
    return tuple(tuple(sorted(requests[uid] for uid in held)) for held in node.gpus)
