"""Rows of nodes: each with its GPUs as bars, its state, owners and price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from plimsoll.cluster.ledger import GpuAccount, PartDevices, SnapshotAccounts
from plimsoll.cluster.pods import PodShare, bound_pods, is_reservation, read_shares
from plimsoll.cluster.queues import queue_of
from plimsoll.cost import NodeCost, Prices, node_cost
from plimsoll.labels import NODEPOOL, WORKSPACE, WORKSPACE_NAMESPACE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import NAMESPACES
from plimsoll.packing import GPU_MILLI
from plimsoll.ui.view.segments import Bar, Use, gpu_bars, summed


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    pool: str
    """NodePool; empty without one."""
    shard: str
    """KAI's node pool; empty for that of the scheduler without a shard."""
    instance_type: str
    product: str
    state: str
    """`Ready`, `NotReady`, `Cordoned` or `Deleting`."""
    bars: tuple[Bar, ...]
    amounts: Mapping[tuple[Use, str], int]
    """Thousandths of GPUs by use and queue."""
    used: float
    """GPUs in use by pods."""
    pods: tuple[PodShare, ...]
    """Bound pods that request GPUs."""
    queues: frozenset[str]
    namespaces: frozenset[str]
    workspaces: tuple[str, ...]
    """Workspaces that the node was created for, or is allocated to, as `namespace/name`."""
    cost: NodeCost | None
    devices: tuple[PartDevices, ...] = ()
    """Shared devices and MIG slices, which are in no bar."""
    problems: tuple[str, ...] = ()
    """Contradictions between the objects on the node."""

    @property
    def usable(self) -> bool:
        return self.state == "Ready"

    @property
    def gpus(self) -> int:
        return len(self.bars)


class _Kept(NamedTuple):
    """A row, and the values from which it was computed."""

    account: GpuAccount
    owners: tuple[str, ...]
    row: NodeRow


class NodeRows:
    """The rows of one cluster. A row is computed again only when its node, its pods or its owners change, and all of
    them when the prices, the scheduler of queues or the label of its node pools do."""

    def __init__(self) -> None:
        self._accounts = SnapshotAccounts()
        self._settings: tuple[Prices, str, str] = (Prices({}), "", "")
        self._rows: dict[str, _Kept] = {}

    def update(self, snapshot: Snapshot, prices: Prices) -> tuple[NodeRow, ...]:
        """Nodes with GPUs, shared devices or MIG slices, by name."""
        spec = snapshot.environment.spec
        settings = (prices, spec.queue_scheduler, spec.node_pool_label_key)
        if settings != self._settings:
            self._settings, self._rows = settings, {}
        pods, owners = bound_pods(snapshot.pods), _owners(snapshot)
        rows = {}
        for _, account in sorted(self._accounts.of(snapshot).items()):
            if not account.has_gpus:
                continue
            name = account.node.name
            kept, owned = self._rows.get(name), owners.get(name, ())
            if kept is None or kept.account is not account or kept.owners != owned:
                kept = _Kept(account, owned, _row(account, pods.get(name, ()), snapshot, owned, prices))
            rows[name] = kept
        self._rows = rows
        return tuple(kept.row for kept in rows.values())


def _owners(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for workspace in snapshot.workspaces:
        for name in workspace.status.worker_nodes:
            found.setdefault(name, set()).add(str(workspace.ref))
    for node in snapshot.nodes:
        if WORKSPACE in node.labels:
            owner = f"{node.labels.get(WORKSPACE_NAMESPACE, '')}/{node.labels[WORKSPACE]}"
            found.setdefault(node.name, set()).add(owner)
    return {name: tuple(sorted(owners)) for name, owners in found.items()}


def _row(
    account: GpuAccount, pods: Sequence[Pod], snapshot: Snapshot, owners: tuple[str, ...], prices: Prices
) -> NodeRow:
    environment, node = snapshot.environment.spec, account.node
    using = [pod for pod in pods if not is_reservation(pod, NAMESPACES)]
    shares = read_shares(using, environment.gpu_resource).found
    claiming = {f"{pod.namespace}/{pod.name}": pod for pod in using if pod.resource_claims}
    bars = gpu_bars(account, shares, claiming, environment, bool(owners))
    amounts = summed(bars)
    of_parts = {name for each in account.devices for name in each.pods}
    sharing = [pod for pod in using if f"{pod.namespace}/{pod.name}" in of_parts]
    queues = {queue_of(pod, environment) for pod in sharing}
    queues |= {segment.queue for bar in bars for segment in bar}
    return NodeRow(
        name=node.name,
        pool=node.labels.get(NODEPOOL, ""),
        shard=environment.node_pool_label.of(node.labels),
        instance_type=node.instance_type,
        product=account.kind,
        state=_state(node),
        bars=bars,
        amounts=amounts,
        used=sum(milli for (use, _), milli in amounts.items() if use in (Use.QUEUE, Use.OTHER)) / GPU_MILLI,
        pods=shares,
        queues=frozenset(queues - {""}),
        namespaces=frozenset(each.pod.namespace for each in shares)
        | {claim.partition("/")[0] for claim, _, _ in account.claims}
        | {pod.namespace for pod in sharing}
        | {owner.partition("/")[0] for owner in owners},
        workspaces=owners,
        cost=node_cost(account, prices),
        devices=account.devices,
        problems=tuple(f"{each.reason.value}: {each.message}" for each in account.discrepancies),
    )


def _state(node: Node) -> str:
    if node.deleting:
        return "Deleting"
    if node.ready is False:
        return "NotReady"
    return "Cordoned" if node.unschedulable else "Ready"
