"""The ledger of GPUs: used and free parts of every GPU, by node, from the pods and nodes of a snapshot.

It has no other state. An update reads only nodes whose pods changed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from plimsoll.cluster.ledger.account import Discrepancy, GpuAccount
from plimsoll.cluster.ledger.pod_use import PodReader, PodUse
from plimsoll.cluster.ledger.reading import Accounting
from plimsoll.cluster.pods import PodChanges, waits
from plimsoll.cluster.pools import DaemonOverhead
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import IDLE, HostLoad, Node, Pod
from plimsoll.model.kai import NAMESPACES
from plimsoll.packing import Milli
from plimsoll.packing.nodes import FreeNode

V = TypeVar("V")
Key = tuple[str, str]
"""(namespace, name)"""


class GpuLedger:
    """Accounts of the GPUs of all nodes.

    A bound pod counts on its node. A pod that is being bound counts on its selected node (SELECTED_NODE), else on the
    node of its group's reservation, unless it `waits`: then the caller places it. Finished pods do not count. Not
    thread-safe.
    """

    def __init__(
        self,
        gpu_resource: str = GPU_RESOURCE,
        reservation_namespaces: Collection[str] = NAMESPACES,
        waits: Callable[[Pod], bool] = lambda _: False,
        tflops: Mapping[str, float] | None = None,
        device_resources: Collection[str] = (),
    ) -> None:
        """`device_resources` are those of devices that are parts of GPUs."""
        self._reader = PodReader(gpu_resource, reservation_namespaces)
        self._accounting = Accounting(gpu_resource, tflops, device_resources)
        self._waits = waits
        self._nodes: dict[str, Node] = {}
        self._pods: dict[Key, PodUse] = {}
        self._placed: dict[str, dict[Key, PodUse]] = {}
        self._unplaced: dict[str, dict[Key, PodUse]] = {}
        """Pods with a group and without a node, by group."""
        self._reserved_on: dict[str, dict[Key, str]] = {}
        """Nodes of the reservations of each group."""
        self._loads: Mapping[str, HostLoad] = {}
        self._daemons = DaemonOverhead()
        self._accounts: dict[str, GpuAccount] = {}
        """Accounts of nodes that did not change since they were read."""

    def update(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        """Takes the state of a whole snapshot. Unchanged objects cost one comparison."""
        gone_nodes, gone_pods = set(self._nodes), set(self._pods)
        for node in nodes:
            gone_nodes.discard(node.name)
            if self._nodes.get(node.name) is not node:
                self.put_node(node)
        for pod in pods:
            gone_pods.discard(pod.key)
            self.put_pod(pod)
        for name in gone_nodes:
            self.drop_node(name)
        for key in gone_pods:
            self.drop_pod(key)

    def put_node(self, node: Node) -> None:
        self._nodes[node.name] = node
        self._accounts.pop(node.name, None)

    def drop_node(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._accounts.pop(name, None)

    def put_pod(self, pod: Pod) -> None:
        """Adds a pod, or replaces the one of the same name."""
        key = pod.key
        old = self._pods.get(key)
        if old is not None:
            if old.pod is pod:
                return
            self.drop_pod(key)
        if not pod.finished:
            self._pods[key] = use = self._reader.use(pod)
            self._place(key, use, use)

    def apply_changes(self, changes: PodChanges) -> None:
        """Applies the changes between two snapshots."""
        kept = {pod.key for pod in changes.new}
        for pod in changes.gone:
            if pod.key not in kept:
                self.drop_pod(pod.key)
        for pod in changes.new:
            self.put_pod(pod)

    def drop_pod(self, key: Key) -> None:
        use = self._pods.pop(key, None)
        if use is not None:
            self._place(key, use, None)

    def set_other_loads(self, loads: Mapping[str, HostLoad], daemons: DaemonOverhead) -> None:
        """Sets what pods without GPUs use of nodes, by node name, and the DaemonSets that will add pods."""
        if daemons is not self._daemons:
            self._accounts.clear()
        elif loads is not self._loads:
            for name in loads.keys() | self._loads.keys():
                old, new = self._loads.get(name), loads.get(name)
                if old is not new and old != new:
                    self._accounts.pop(name, None)
        self._loads, self._daemons = loads, daemons

    def account(self, node: str) -> GpuAccount | None:
        """The node's account; None if there is no such node."""
        found = self._accounts.get(node)
        if found is None and node in self._nodes:
            found = self._accounts[node] = self._read(node)
        return found

    def requested(self, node: str, resource: str) -> int:
        """What pods that are bound to the node, or being bound, request of a resource that is not of `Pod.host`."""
        return sum(use.pod.other_requests.get(resource, 0) for use in self._placed.get(node, {}).values())

    def unread(self) -> set[str]:
        """Names of nodes whose account has not been read since they changed."""
        return self._nodes.keys() - self._accounts.keys()

    def accounts(self) -> Iterator[GpuAccount]:
        """Accounts of all nodes, by name."""
        for name in sorted(self._nodes):
            account = self.account(name)
            if account is not None:
                yield account

    def discrepancies(self) -> tuple[Discrepancy, ...]:
        """Contradictions between objects, by node."""
        return tuple(each for account in self.accounts() for each in account.discrepancies)

    def _read(self, name: str) -> GpuAccount:
        pods = self._placed.get(name, {})
        if self._unplaced:
            held = {group for use in pods.values() if use.reserves for group in use.groups}
            unbound = {key: use for group in held for key, use in self._unplaced.get(group, {}).items()}
            pods = pods | unbound if unbound else pods
        node, load = self._nodes[name], self._loads.get(name, IDLE)
        return self._accounting.account(node, pods.values(), (load, self._daemons.missing_from(node, load)))

    def _place(self, key: Key, use: PodUse, entry: PodUse | None) -> None:
        """Adds the pod where it counts, or removes it (None)."""
        node = use.node
        if node:
            _set(self._placed, node, key, entry)
            self._accounts.pop(node, None)
            if not use.reserves:
                return
        for group in use.groups:
            if node:
                _set(self._reserved_on, group, key, node if entry else None)
            elif not self._waits(use.pod):
                _set(self._unplaced, group, key, entry)
            for node_name in self._reserved_on.get(group, {}).values():
                self._accounts.pop(node_name, None)


def empty_ledger(spec: EnvironmentSpec) -> GpuLedger:
    """A ledger that counts as the Environment says. Pods that wait for capacity use none yet."""
    demand = spec.demand
    return GpuLedger(
        spec.gpu_resource,
        waits=partial(waits, settings=demand),
        tflops=demand.gpu_tflops,
        device_resources=demand.device_resources,
    )


def gpu_ledger(snapshot: Snapshot) -> GpuLedger:
    """The ledger of one snapshot."""
    ledger = empty_ledger(snapshot.environment.spec)
    ledger.update(snapshot.nodes, snapshot.pods)
    ledger.set_other_loads(snapshot.host_loads, DaemonOverhead(snapshot.daemon_sets))
    return ledger


def free_node(account: GpuAccount, milli: tuple[Milli, ...]) -> FreeNode:
    """Free resources of a node, with the given free thousandths of its GPUs."""
    return FreeNode(
        account.node.name,
        account.kind,
        milli,
        max(0, account.cpu_milli),
        max(0, account.host_memory_mib),
        max(0, account.pod_room),
        storage_mib=max(0, account.storage_mib),
    )


def _set(table: dict[str, dict[Key, V]], name: str, key: Key, value: V | None) -> None:
    """Sets a value in the table's entry of that name, or removes it (None); an empty entry is removed."""
    entry = table.get(name)
    if value is None:
        if entry is not None:
            entry.pop(key, None)
            if not entry:
                del table[name]
    elif entry is None:
        table[name] = {key: value}
    else:
        entry[key] = value
