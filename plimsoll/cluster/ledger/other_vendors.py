"""Accelerators that device plugins announce beside the GPUs in a node's account: they are shown, and no capacity is
planned for them."""

from collections.abc import Iterator
from typing import NamedTuple

from plimsoll.cluster.pods import DeviceUse, bound_pods, device_name, read_request
from plimsoll.cluster.profiles import discovery_of, parts_of, vendor_product
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from plimsoll.quantity import parse_devices


class OtherAccelerators(NamedTuple):
    """The devices of one resource of a node."""

    node: str
    vendor: str
    resource: str
    product: str
    """Empty where no label says it."""
    allocatable: int
    used: int
    pods: tuple[str, ...]
    """`namespace/name` of those that use them, sorted."""

    @property
    def free(self) -> int:
        return max(0, self.allocatable - self.used)


def other_accelerators(snapshot: Snapshot) -> tuple[OtherAccelerators, ...]:
    """By node and resource, sorted."""
    bound, gpu_resource = bound_pods(snapshot.pods), snapshot.environment.spec.gpu_resource
    found = (
        each
        for node in snapshot.nodes
        for each in _of_node(node, [pod for pod in bound.get(node.name, ()) if not pod.finished], gpu_resource)
    )
    return tuple(sorted(found))


def _of_node(node: Node, pods: list[Pod], gpu_resource: str) -> Iterator[OtherAccelerators]:
    counted = {gpu_resource, *(each.resource for each in discovery_of(node, gpu_resource).devices)}
    counted |= {part for resource in counted for part in parts_of(resource)}
    for resource, amount in node.allocatable.items():
        known = device_name(resource) if resource not in counted else None
        if known is None or known.use is not DeviceUse.DEVICE or known.owner == "NVIDIA":
            continue
        try:
            allocatable = max(0, parse_devices(amount))
        except ValueError:
            continue
        users = {
            f"{pod.namespace}/{pod.name}": number
            for pod in pods
            if (number := read_request(pod, gpu_resource).count_of(resource))
        }
        if allocatable or users:
            used, names = sum(users.values()), tuple(sorted(users))
            of_node = (node.name, known.owner, resource, vendor_product(resource, node.labels))
            yield OtherAccelerators(*of_node, allocatable, used, names)
