"""The ledger of GPUs: what is taken and what is free of every GPU, by node, from the pods and nodes of a snapshot.

Nothing of it is kept anywhere but in the cluster. An update reads again only the nodes whose pods changed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from plimsoll.labels import GPU_RESOURCE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import IDLE, HostLoad, Node, Pod
from plimsoll.model.kai import NAMESPACES, WHOLE_MILLI
from plimsoll.packing.nodes import FreeNode, less
from plimsoll.plan.ledger.account import Discrepancy, GpuAccount
from plimsoll.plan.ledger.reading import Accounting
from plimsoll.plan.pods import PodChanges, gpu_groups, is_reservation, node_of
from plimsoll.plan.pools import DaemonOverhead

V = TypeVar("V")
Key = tuple[str, str]
"""(namespace, name)"""


class GpuLedger:
    """Accounts of the GPUs of all nodes. A pod counts where it is bound; one that is about to be, where it says
    (SELECTED_NODE), else where its group's reservation is, unless it `waits`: then whoever asks finds it a place.
    Finished pods count nowhere.

    Not safe to share between threads.
    """

    def __init__(
        self,
        gpu_resource: str = GPU_RESOURCE,
        reservation_namespaces: Collection[str] = NAMESPACES,
        waits: Callable[[Pod], bool] = lambda _: False,
    ) -> None:
        self._accounting = Accounting(gpu_resource, reservation_namespaces)
        self._waits = waits
        self._nodes: dict[str, Node] = {}
        self._pods: dict[Key, Pod] = {}
        self._placed: dict[str, dict[Key, Pod]] = {}
        self._unplaced: dict[str, dict[Key, Pod]] = {}
        """Pods that name a group and no node, by group."""
        self._reserved_on: dict[str, dict[Key, str]] = {}
        """Nodes of the reservations of each group."""
        self._loads: Mapping[str, HostLoad] = {}
        self._daemons = DaemonOverhead()
        self._accounts: dict[str, GpuAccount] = {}
        """Of nodes that did not change since they were read."""

    def update(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        """Takes the state of a whole snapshot. Objects that are the same as before cost one look."""
        gone_nodes, gone_pods = set(self._nodes), set(self._pods)
        for node in nodes:
            gone_nodes.discard(node.name)
            if self._nodes.get(node.name) is not node:
                self.put_node(node)
        for pod in pods:
            key = (pod.namespace, pod.name)
            gone_pods.discard(key)
            if self._pods.get(key) is not pod:
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
        """Takes a pod, in place of the one of its name."""
        key = (pod.namespace, pod.name)
        old = self._pods.get(key)
        if old is not None:
            self._place(key, old, None)
        self._pods[key] = pod
        self._place(key, pod, pod)

    def take(self, changes: PodChanges) -> None:
        """Follows the pods from one snapshot to the next."""
        kept = {pod.key for pod in changes.new}
        for pod in changes.gone:
            if pod.key not in kept:
                self.drop_pod(pod.key)
        for pod in changes.new:
            self.put_pod(pod)

    def drop_pod(self, key: Key) -> None:
        pod = self._pods.pop(key, None)
        if pod is not None:
            self._place(key, pod, None)

    def put_beside(self, loads: Mapping[str, HostLoad], daemons: DaemonOverhead) -> None:
        """Takes what pods that ask for no GPU take of nodes, by name, and what DaemonSets will take."""
        if daemons is not self._daemons:
            self._accounts.clear()
        elif loads is not self._loads:
            for name in loads.keys() | self._loads.keys():
                old, new = self._loads.get(name), loads.get(name)
                if old is not new and old != new:
                    self._accounts.pop(name, None)
        self._loads, self._daemons = loads, daemons

    def account(self, node: str) -> GpuAccount | None:
        """None where there is no such node."""
        found = self._accounts.get(node)
        if found is None and node in self._nodes:
            found = self._accounts[node] = self._read(node)
        return found

    @property
    def names(self) -> Collection[str]:
        """Of all nodes."""
        return self._nodes.keys()

    def unread(self) -> set[str]:
        """Names of nodes of which no account was asked for since they, or what is on them, changed."""
        return self._nodes.keys() - self._accounts.keys()

    def accounts(self) -> Iterator[GpuAccount]:
        """Of all nodes, by name."""
        for name in sorted(self._nodes):
            account = self.account(name)
            if account is not None:
                yield account

    def discrepancies(self) -> tuple[Discrepancy, ...]:
        """Where the cluster contradicts itself, by node."""
        return tuple(each for account in self.accounts() for each in account.discrepancies)

    def _read(self, name: str) -> GpuAccount:
        pods = self._placed.get(name, {})
        groups = {group for pod in pods.values() if self._reserves(pod) for group in gpu_groups(pod)}
        unbound = {key: pod for group in groups for key, pod in self._unplaced.get(group, {}).items()}
        node, load = self._nodes[name], self._loads.get(name, IDLE)
        beside = (load, self._daemons.missing_from(node, load))
        return self._accounting.account(node, (pods | unbound).values() if unbound else pods.values(), beside)

    def _place(self, key: Key, pod: Pod, entry: Pod | None) -> None:
        """Enters the pod where it counts, or takes it out (None)."""
        if pod.finished:
            return
        node = node_of(pod)
        reserves = self._reserves(pod)
        if node:
            _set(self._placed, node, key, entry)
            self._accounts.pop(node, None)
        for group in gpu_groups(pod) if reserves or not node else ():
            if reserves and node:
                _set(self._reserved_on, group, key, node if entry else None)
            elif not self._waits(pod):
                _set(self._unplaced, group, key, entry)
            for node_name in self._reserved_on.get(group, {}).values():
                self._accounts.pop(node_name, None)

    def _reserves(self, pod: Pod) -> bool:
        return is_reservation(pod, self._accounting.namespaces)


def gpu_ledger(snapshot: Snapshot) -> GpuLedger:
    """The ledger of one snapshot."""
    ledger = GpuLedger(snapshot.environment.spec.gpu_resource)
    ledger.update(snapshot.nodes, snapshot.pods)
    ledger.put_beside(snapshot.host_loads, DaemonOverhead(snapshot.daemon_sets))
    return ledger


def free_nodes(ledger: GpuLedger) -> tuple[FreeNode, ...]:
    """What is free on usable nodes that have something free, by name; the kind is the GPU product.

    What terminating pods still hold is not free. Nodes whose devices are no whole GPUs offer nothing, as do those
    without a product's label.
    """
    return tuple(
        free_node(account, free)
        for account in ledger.accounts()
        if account.node.usable and account.shareable and account.kind and any(free := account.free_milli)
    )


def free_node(account: GpuAccount, milli: tuple[int, ...]) -> FreeNode:
    """What is free there, with free thousandths of its GPUs. A GPU that nobody shares yet will have a reservation,
    which is a pod too."""
    return FreeNode(
        account.node.name,
        account.kind,
        milli,
        account.cpu_milli,
        account.host_memory_mib,
        less(account.pod_room, milli.count(WHOLE_MILLI)),
    )


def _set(table: dict[str, dict[Key, V]], name: str, key: Key, value: V | None) -> None:
    """Enters a value in the table's entry of that name, or takes it out (None); an empty entry goes."""
    if value is not None:
        table.setdefault(name, {})[key] = value
        return
    entry = table.get(name)
    if entry is not None:
        entry.pop(key, None)
        if not entry:
            del table[name]
