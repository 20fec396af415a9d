"""The ledger of the newest of several snapshots, from the changes between them."""

from plimsoll.cluster.ledger.ledger import GpuLedger, empty_ledger
from plimsoll.cluster.pods import pod_changes, value_changes
from plimsoll.cluster.pools import DaemonOverhead
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod


class IncrementalLedger:
    """Accounts of unchanged nodes are the same values from one snapshot to the next. Not thread-safe."""

    def __init__(self) -> None:
        self._counted_by: object = None
        """What the ledger reads of the Environment."""
        self._ledger = GpuLedger()
        self._pods: tuple[Pod, ...] = ()
        self._nodes: tuple[Node, ...] = ()
        self._daemons: tuple[object, DaemonOverhead] = ((), DaemonOverhead())

    def of(self, snapshot: Snapshot) -> GpuLedger:
        """The ledger of the snapshot; it changes with the next one."""
        spec = snapshot.environment.spec
        counted_by = (spec.gpu_resource, spec.demand.gpu_tflops, spec.demand.device_resources)
        if counted_by != self._counted_by:
            self._counted_by, self._ledger, self._pods, self._nodes = counted_by, empty_ledger(spec), (), ()
        ledger = self._ledger
        gone, new = value_changes(self._nodes, snapshot.nodes)
        kept = {node.name for node in new}
        for node in gone:
            if node.name not in kept:
                ledger.drop_node(node.name)
        for node in new:
            ledger.put_node(node)
        ledger.apply_changes(pod_changes(self._pods, snapshot.pods))
        self._nodes, self._pods = snapshot.nodes, snapshot.pods
        if self._daemons[0] is not snapshot.daemon_sets:
            self._daemons = (snapshot.daemon_sets, DaemonOverhead(snapshot.daemon_sets))
        ledger.set_other_loads(snapshot.host_loads, self._daemons[1])
        return ledger
