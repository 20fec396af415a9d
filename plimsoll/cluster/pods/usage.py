"""Pods that use the GPUs of each node, and where the pods of each Workspace run."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from plimsoll.cluster.pods.indexed import bound_pods, marked_pods
from plimsoll.cluster.pods.request import read_request
from plimsoll.labels import WORKSPACE, WORKSPACE_NAMESPACE, as_label_value
from plimsoll.model.api import Workspace, WorkspaceRef
from plimsoll.model.cluster import Pod

_REPLICA: Final = ("leaderworkerset.sigs.k8s.io/group-index", "apps.kubernetes.io/pod-index")
"""Labels with the number of a pod's replica. A LeaderWorkerSet or StatefulSet that scales down deletes the highest."""

Owner = tuple[str, str]
"""(namespace, name) of a Workspace, as labels spell them."""


def own_pods(pods: tuple[Pod, ...]) -> dict[Owner, tuple[Pod, ...]]:
    """The bound pods of each Workspace that are not finished, terminating ones included."""
    found: dict[Owner, list[Pod]] = {}
    for pod in marked_pods(pods):
        owner = _owner(pod)
        if owner is not None and pod.node_name and not pod.finished:
            found.setdefault(owner, []).append(pod)
    return {owner: tuple(own) for owner, own in found.items()}


def with_waiting_pods(pods: tuple[Pod, ...]) -> frozenset[Owner]:
    """The Workspaces with a pod that is on no node, and not terminating."""
    waiting = (pod for pod in marked_pods(pods) if not (pod.node_name or pod.finished or pod.deleting))
    return frozenset(owner for owner in map(_owner, waiting) if owner is not None)


class PodPlaces:
    """Where the pods of Workspaces are that are not terminating."""

    def __init__(self, own: Mapping[Owner, Iterable[Pod]], waiting: Container[Owner] = ()) -> None:
        """`own` as from `own_pods`, `waiting` as from `with_waiting_pods`."""
        self._by_owner = {owner: [pod for pod in pods if not pod.deleting] for owner, pods in own.items()}
        self._waiting = waiting

    def nodes_of(self, owner: WorkspaceRef, replicas: int) -> frozenset[str]:
        """Names of the nodes with pods of the Workspace, except for pods of replicas beyond those that it declares."""
        return frozenset(pod.node_name for pod in self._of(owner) if _replica(pod) < replicas)

    def serving(self, owner: WorkspaceRef) -> frozenset[str]:
        """Names of the nodes with Ready pods of the Workspace."""
        return frozenset(pod.node_name for pod in self._of(owner) if pod.ready)

    def waiting(self, owner: WorkspaceRef) -> bool:
        """Whether a pod of the Workspace is on no node yet."""
        return workspace_key(owner) in self._waiting

    def on(self, nodes: Container[str], owner: WorkspaceRef) -> list[Pod]:
        """The Workspace's pods on these nodes, by name."""
        return sorted((pod for pod in self._of(owner) if pod.node_name in nodes), key=lambda pod: pod.name)

    def has_pod(self, node: str, owner: Owner) -> bool:
        """Whether a pod of the Workspace, by its label values, is on the node."""
        return any(pod.node_name == node for pod in self._by_owner.get(owner, ()))

    def _of(self, owner: WorkspaceRef) -> list[Pod]:
        return self._by_owner.get(workspace_key(owner), [])


def _replica(pod: Pod) -> int:
    """The number of the pod's replica; -1 if replicas are not numbered."""
    number = next((pod.labels[label] for label in _REPLICA if label in pod.labels), "")
    return int(number) if number.isdecimal() else -1


class Use(NamedTuple):
    """One pod on a node."""

    pod: str
    owner: Owner | None
    """The Workspace that the pod belongs to."""
    devices: int


class NodeUsage:
    """The pods on some nodes; their requests are read on demand."""

    def __init__(self, own: Mapping[Owner, Iterable[Pod]], bound: Mapping[str, Sequence[Pod]]) -> None:
        """`own` as from `own_pods`, `bound` the pods of each of the nodes as from `bound_pods`."""
        self._pods = bound
        self._own = {owner: dict(Counter(pod.node_name for pod in pods)) for owner, pods in own.items()}

    def own(self, workspace: Workspace) -> dict[str, int]:
        """Number of the Workspace's pods on each node."""
        return self._own.get(workspace_key(workspace), {})

    def devices(self, workspace: Workspace, resource: str) -> int:
        """Devices of that resource that the Workspace's pods request."""
        owner = workspace_key(workspace)
        pods = (pod for node in self.own(workspace) for pod in self._pods.get(node, ()) if _owner(pod) == owner)
        return sum(_devices(pod, resource) for pod in pods)

    def others(self, node: str, workspace: Workspace, resource: str) -> list[Use]:
        """Other pods on the node that use that resource, or belong to another Workspace; by name."""
        pods = self._pods.get(node)
        if not pods:
            return []
        own = workspace_key(workspace)
        uses = [Use(f"{pod.namespace}/{pod.name}", _owner(pod), _devices(pod, resource)) for pod in pods]
        found = [use for use in uses if use.owner != own and (use.devices or use.owner is not None)]
        return sorted(found, key=lambda use: use.pod)

    def occupied(self, resource: str) -> frozenset[str]:
        """The nodes with pods that use that resource, or belong to a Workspace."""
        return frozenset(
            node
            for node, pods in self._pods.items()
            if any(pod.labels.get(WORKSPACE) or _devices(pod, resource) for pod in pods)
        )


def nodes_in_use(pods: tuple[Pod, ...], nodes: Iterable[str], resource: str) -> set[str]:
    """The nodes that have pods with devices of that resource, with GPU shares, or with parts of GPUs as devices."""
    bound = bound_pods(pods)
    return {node for node in nodes if any(read_request(pod, resource).uses_gpus for pod in bound.get(node, ()))}


def workspace_key(workspace: Workspace | WorkspaceRef) -> Owner:
    """As labels spell it."""
    return (as_label_value(workspace.namespace), as_label_value(workspace.name))


def _owner(pod: Pod) -> Owner | None:
    """The Workspace in its labels, if that is of the pod's namespace."""
    name, namespace = pod.labels.get(WORKSPACE), pod.labels.get(WORKSPACE_NAMESPACE, "")
    return (namespace, name) if name and namespace == as_label_value(pod.namespace) else None


def _devices(pod: Pod, resource: str) -> int:
    """A GPU share counts as one device, and so does a request that cannot be read."""
    request = read_request(pod, resource)
    return max(request.count_of(resource), int(request.shares_gpus), request.claimed_gpus)
