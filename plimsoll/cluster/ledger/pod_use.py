"""What a pod uses of GPUs, as far as its own fields tell. Each pod is read once, when the ledger takes it."""

from collections.abc import Collection
from typing import NamedTuple

from plimsoll.cluster.pods import PodRequest, gpu_groups, is_reservation, node_of, read_request
from plimsoll.labels import VISIBLE_DEVICES
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import HostRequest
from plimsoll.model.tensor_fusion import GPU_IDS


class PodUse(NamedTuple):
    """A pod that counts somewhere, and what it requests."""

    pod: Pod
    node: str
    """The node that it is bound to, or is being bound to; empty: none."""
    groups: tuple[str, ...]
    """Names of its GPU groups, sorted."""
    reserves: bool
    """Whether it is a reservation pod, which holds a GPU for the first of its groups."""
    request: PodRequest
    """That of a reservation pod is for the GPU that it holds."""
    unreserved: bool
    """Whether its groups are GPUs that TensorFusion chose, which needs no reservations."""
    told: bool
    """Whether a binder told it the UUIDs of its GPUs, so that its groups count without reservations."""
    bound: bool
    """Whether it is bound to the node."""
    host: HostRequest
    """CPU, memory and ephemeral storage of the node."""


class PodReader:
    """Reads what pods use."""

    def __init__(self, gpu_resource: str, reservation_namespaces: Collection[str]) -> None:
        self._gpu_resource = gpu_resource
        self._namespaces = frozenset(reservation_namespaces)

    def use(self, pod: Pod) -> PodUse:
        reserves = is_reservation(pod, self._namespaces)
        request = read_request(pod, self._gpu_resource)
        unreserved, bound = GPU_IDS in pod.annotations, bool(pod.node_name)
        told = unreserved or VISIBLE_DEVICES in pod.annotations
        return PodUse(pod, node_of(pod), gpu_groups(pod), reserves, request, unreserved, told, bound, pod.host)
