"""The accounts of the newest of several snapshots, from the changes between them."""

from collections.abc import Mapping

from plimsoll.cluster.ledger.account import GpuAccount
from plimsoll.cluster.ledger.ledger import GpuLedger, empty_ledger
from plimsoll.cluster.pods import pod_changes, value_changes
from plimsoll.cluster.pools import DaemonOverhead
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod


class SnapshotAccounts:
    """Accounts of unchanged nodes are the same values from one snapshot to the next. Not thread-safe."""

    def __init__(self) -> None:
        self._counted_by: object = None
        """What the ledger reads of the Environment."""
        self._ledger = GpuLedger()
        self._pods: tuple[Pod, ...] = ()
        self._nodes: tuple[Node, ...] = ()
        self._daemons: tuple[object, DaemonOverhead] = ((), DaemonOverhead())
        self._accounts: Mapping[str, GpuAccount] = {}

    def of(self, snapshot: Snapshot) -> Mapping[str, GpuAccount]:
        """The accounts by the name of their node. The mapping does not change; it is the same one if no account
        changed."""
        spec = snapshot.environment.spec
        counted_by = (spec.gpu_resource, spec.demand)
        if counted_by != self._counted_by:
            self._counted_by, self._ledger, self._pods, self._nodes = counted_by, empty_ledger(spec), (), ()
            self._accounts = {}
        ledger = self._ledger
        gone, new = value_changes(self._nodes, snapshot.nodes)
        dropped = {node.name for node in gone}.difference(node.name for node in new)
        for name in dropped:
            ledger.drop_node(name)
        for node in new:
            ledger.put_node(node)
        ledger.apply_changes(pod_changes(self._pods, snapshot.pods))
        self._nodes, self._pods = snapshot.nodes, snapshot.pods
        if self._daemons[0] is not snapshot.daemon_sets:
            self._daemons = (snapshot.daemon_sets, DaemonOverhead(snapshot.daemon_sets))
        ledger.set_other_loads(snapshot.host_loads, self._daemons[1])
        changed = ((name, ledger.account(name)) for name in ledger.unread())
        new_accounts = {name: account for name, account in changed if account is not None}
        if dropped or new_accounts:
            self._accounts = {**self._accounts, **new_accounts}
        if dropped:
            self._accounts = {name: account for name, account in self._accounts.items() if name not in dropped}
        return self._accounts
