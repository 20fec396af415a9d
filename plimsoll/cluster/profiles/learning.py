"""What is learned from nodes that exist, so that it is known when none of them is left."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from plimsoll.cluster.profiles.discovery import discovery_of
from plimsoll.cluster.profiles.gpu_labels import DISCOVERED
from plimsoll.cluster.profiles.vendors import LASTING, PASSING
from plimsoll.labels import GROUP, is_device
from plimsoll.model.api import ClaimDevices, LearnedProfile
from plimsoll.model.cluster import Node
from plimsoll.model.meta import EPHEMERAL_STORAGE
from plimsoll.quantity import parse_cpu_milli, parse_devices, parse_memory_mib

_OF_ONE_NODE: Final = re.compile(
    r"nvidia\.com/(cuda\.|gfd\.|gpu\.clique|gpu\.deploy\.|gpu-driver|.*uuid|vgpu\.host)"
    r"|feature\.node\.kubernetes\.io/(kernel-|system-|local-|custom-|usb-)"
)
"""Labels of discovery that say how a node runs at the moment: drivers, kernels, UUIDs, what an operator deploys."""
Amount = str | int | float
HOST: Final[Mapping[str, Callable[[Amount], int]]] = {
    "cpu": parse_cpu_milli,
    "memory": parse_memory_mib,
    "pods": parse_devices,
    EPHEMERAL_STORAGE: parse_memory_mib,
}
"""The resources of a node besides devices, with what reads an amount: thousandths of a CPU, MiB, pods, MiB."""


def learned_of(nodes: Sequence[Node], before: LearnedProfile | None = None) -> LearnedProfile:
    """What other nodes of their NodePool and instance type will offer, as far as these nodes show it, which say the
    same of their devices.

    CPU, memory, pods and ephemeral storage are the least of all of them, and of what was learned before of nodes with
    the same devices: a node that comes later may be any of these. Labels and devices are those of the first node.
    """
    first, described = nodes[0], ", ".join(map(str, discovery_of(nodes[0]).devices))
    said: list[Mapping[str, Amount]] = [node.allocatable for node in nodes]
    said += [before.allocatable] if before is not None and before.devices == described else []
    devices = {name for name in first.allocatable if is_device(name) and not name.startswith(f"{GROUP}/")}
    allocatable = {name: str(first.allocatable[name]) for name in devices}
    allocatable |= least_amounts(said)
    claimed = discovery_of(first).claimed
    of_claims = None
    if claimed is not None and claimed.claimable is not None and not claimed.claimable.special:
        of_claims = ClaimDevices.of(claimed.claimable, claimed.count)
    return LearnedProfile(
        claim_devices=of_claims,
        node=first.name,
        labels=lasting(first.labels),
        allocatable=dict(sorted(allocatable.items())),
        devices=described,
    )


def least_amounts(said: Sequence[Mapping[str, Amount]]) -> dict[str, str]:
    """The least amount of each resource of HOST, as far as these have it."""
    return {name: least for name, parse in HOST.items() if (least := _least_of(said, name, parse)) is not None}


def _least_of(said: Iterable[Mapping[str, Amount]], resource: str, parse: Callable[[Amount], int]) -> str | None:
    """The least amount of a resource above 0, as it is written there; None if none has one that can be read. A kubelet
    reports 0 until it has measured."""
    found = []
    for amount in {amounts.get(resource) for amounts in said}:
        try:
            found += [(parse(amount), str(amount))] if amount is not None and parse(amount) > 0 else []
        except ValueError:
            continue
    return min(found, default=(0, None))[1]


def lasting(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels of discovery that are the same on each node of a NodePool and instance type."""
    discovered = (key for key in sorted(labels) if key.startswith((*DISCOVERED, *LASTING)))
    return {key: labels[key] for key in discovered if not (_OF_ONE_NODE.match(key) or key.startswith(PASSING))}
