"""What a pod uses of GPUs, as far as its own fields tell. Each pod is read once, when the ledger takes it."""

from collections.abc import Collection
from typing import Final, NamedTuple

from plimsoll.cluster.pods import UnreadableShareError, gpu_groups, is_reservation, node_of, read_share
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import GPUShare, is_share_annotation
from plimsoll.model.meta import HostRequest
from plimsoll.model.tensor_fusion import COMPONENT, GPU_IDS

_MOST_KINDS: Final = 4096
"""Number of different requests in the cache: anyone may write annotations."""

_Request = tuple[object, ...]


class PodUse(NamedTuple):
    """A pod that counts somewhere, and what it requests."""

    pod: Pod
    node: str
    """The node that it is bound to, or is being bound to; empty: none."""
    groups: tuple[str, ...]
    """Names of its GPU groups, sorted."""
    reserves: bool
    """Whether it is a reservation pod, which holds a GPU for the first of its groups."""
    share: GPUShare | UnreadableShareError | None
    """None: it requests no GPU, or it is a reservation pod."""
    unreserved: bool
    """Whether its groups are GPUs that TensorFusion chose, which needs no reservations."""
    bound: bool
    """Whether it is bound to the node."""
    host: HostRequest
    """CPU and memory of the node."""


class PodReader:
    """Reads what pods use; equal requests are parsed once."""

    def __init__(self, gpu_resource: str, reservation_namespaces: Collection[str]) -> None:
        self._gpu_resource = gpu_resource
        self._namespaces = frozenset(reservation_namespaces)
        self._shares: dict[_Request, GPUShare | None] = {}

    def use(self, pod: Pod) -> PodUse:
        reserves = is_reservation(pod, self._namespaces)
        share = None if reserves else self._share(pod)
        unreserved, bound = GPU_IDS in pod.annotations, bool(pod.node_name)
        return PodUse(pod, node_of(pod), gpu_groups(pod), reserves, share, unreserved, bound, pod.host)

    def _share(self, pod: Pod) -> GPUShare | UnreadableShareError | None:
        annotations = [item for item in pod.annotations.items() if is_share_annotation(item[0])]
        annotations.sort()
        request: _Request = (devices_of(pod, self._gpu_resource), *annotations)
        if annotations:
            # Annotations may name a container, and request nothing on a client of TensorFusion.
            containers = (each.get("name") for each in (*pod.containers, *pod.init_containers))
            request += (pod.labels.get(COMPONENT), *map(str, containers))
        try:
            return self._shares[request]
        except KeyError:
            pass
        try:
            share = read_share(pod, self._gpu_resource)
        except UnreadableShareError as error:
            return error
        if len(self._shares) >= _MOST_KINDS:
            self._shares.clear()
        self._shares[request] = share
        return share


def devices_of(pod: Pod, resource: str) -> int | None:
    """None if the number cannot be read; `read_share` has the reason."""
    try:
        return pod.devices(resource)
    except (ValueError, AttributeError, TypeError):
        return None
