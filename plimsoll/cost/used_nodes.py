"""Nodes that are examined for savings and those that are not, and the needs of their pods for packing."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from plimsoll.cluster.ledger import GpuAccount, free_node, gpu_ledger
from plimsoll.cluster.pods import (
    KindSizes,
    PodShare,
    bound_pods,
    is_reservation,
    read_request,
    size_by_kind,
)
from plimsoll.cluster.queues import is_sharded, placed_in_shard
from plimsoll.cluster.volumes import NoVolume, Storage
from plimsoll.cost.claimed_devices import ClaimedDevices
from plimsoll.cost.prices import Prices
from plimsoll.labels import DO_NOT_DISRUPT, NODEPOOL, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import VENDOR_RESOURCES, Device, Division, Pod
from plimsoll.model.kai import NAMESPACES, group_key
from plimsoll.model.meta import Placement
from plimsoll.packing import GPU_MILLI, UNBOUNDED, Milli
from plimsoll.packing.nodes import HOST, FreeNode, PodNeed
from plimsoll.plan.owned import request_objects


@dataclass(frozen=True, slots=True)
class UsedNode:
    """A usable node with whole GPUs, and the pods on it that use them."""

    name: str
    instance_type: str
    node_pool: str
    product: str
    price: float | None
    """Hourly price; None if not known."""
    free: FreeNode
    """Its kind identifies the GPUs and the pods that may be placed there."""
    needs: tuple[PodNeed, ...]
    pods: tuple[Pod, ...]
    """In the order of `needs`."""
    stays: str
    """Why the node cannot be removed; empty if it could be."""
    reserved: bool
    """Whether its free GPUs are reserved for a Workspace."""

    @property
    def gpus(self) -> int:
        return len(self.free.devices)

    @property
    def used_milli(self) -> Milli:
        return self.gpus * GPU_MILLI - sum(self.free.devices)

    @property
    def emptied(self) -> FreeNode:
        """The node without these pods."""
        free, needs = self.free, self.needs
        return replace(
            free,
            devices=(GPU_MILLI,) * self.gpus,
            cpu_milli=free.cpu_milli + sum(need.cpu_milli for need in needs),
            memory_mib=free.memory_mib + sum(need.memory_mib for need in needs),
            storage_mib=free.storage_mib + sum(need.storage_mib for need in needs),
            pods=free.pods if free.pods >= UNBOUNDED else free.pods + len(needs),
        )


def gpu_accounts(snapshot: Snapshot) -> tuple[GpuAccount, ...]:
    """Accounts of all nodes with GPUs, by name."""
    return tuple(account for account in gpu_ledger(snapshot).accounts() if account.gpus)


def used_nodes(
    snapshot: Snapshot, all_accounts: Iterable[GpuAccount], prices: Prices, *, any_gpu: bool
) -> tuple[UsedNode, ...]:
    """The nodes of these accounts that are examined, in their order. Unless `any_gpu`, pods need GPUs of the product
    that they have now."""
    resource = snapshot.environment.spec.gpu_resource
    pods = bound_pods(snapshot.pods)
    accounts = [account for account in all_accounts if not _why_left_out(account)]
    where, claims = _Where(snapshot), ClaimedDevices(snapshot)
    on_nodes = {
        account.node.name: _on_node(pods.get(account.node.name, ()), where, claims, resource) for account in accounts
    }
    kinds = _Kinds(accounts, {each.pod.placement for of_node in on_nodes.values() for each in of_node.found})
    owned = {name for each in snapshot.workspaces for name in each.status.worker_nodes}
    found = []
    for account in accounts:
        node, of = account.node, on_nodes[account.node.name]
        needs = tuple(kinds.need(each, account, any_gpu=any_gpu) for each in of.found)
        stays = _stays(account, [each.pod for each in of.found], needs, kinds.of(account), owned) or of.stays
        stays = stays or claims.keeps(account, needs)
        found.append(
            UsedNode(
                name=node.name,
                instance_type=node.instance_type,
                node_pool=node.labels.get(NODEPOOL, ""),
                product=account.kind or account.vendor_resource,
                price=prices.of_type(node.instance_type),
                free=replace(kinds.renamed(account), devices=_devices(account, needs, stays, claims)),
                needs=needs,
                pods=tuple(each.pod for each in of.found),
                stays=stays,
                reserved=_is_owned(account, owned),
            )
        )
    return tuple(found)


class _OnNode(NamedTuple):
    found: tuple[PodShare, ...]
    """Pods with the GPUs that they would request again."""
    stays: str
    """Why pods keep the node: it is not known where they could go; empty if none does."""


def _on_node(pods: Iterable[Pod], where: "_Where", claims: ClaimedDevices, resource: str) -> _OnNode:
    found, stays = list[PodShare](), ""
    for pod in pods:
        request = read_request(pod, resource)
        if request.has_claims and not request.has_parts and not request.uncertain:
            again = claims.again(pod)
            problem = again.refusal.problem if again.refusal is not None else "what it claims is not known to be GPUs"
            if again.share is None:
                stays = stays or f"Pod {pod.namespace}/{pod.name}: {problem}"
            else:
                found.append(PodShare(where.limited(pod), again.share))
        elif request.has_parts:
            stays = stays or "a pod on it has devices that are parts of GPUs"
        elif is_reservation(pod, NAMESPACES):
            continue
        elif request.uncertain:
            stays = "a pod on it has an unknown GPU request"
        elif request.has_others:
            stays = stays or f"Pod {pod.namespace}/{pod.name} has accelerators of another vendor, and is not moved"
        elif request.held is not None:
            found.append(PodShare(where.limited(pod), request.held))
    return _OnNode(tuple(found), stays)


def _devices(account: GpuAccount, needs: Iterable[PodNeed], stays: str, claims: ClaimedDevices) -> tuple[Milli, ...]:
    """Free thousandths of each device. Of devices that pods claim, one with a taint is neither free nor in use."""
    if claims.differ(account):
        return ()
    if account.driver and not stays:
        return (GPU_MILLI,) * account.free_gpus + (0,) * sum(need.devices for need in needs)
    return account.free_milli


def left_out_nodes(accounts: Iterable[GpuAccount]) -> dict[str, str]:
    """Why nodes are not examined, by name."""
    return {account.node.name: why for account in accounts if (why := _why_left_out(account))}


def pending_pods(snapshot: Snapshot) -> int:
    """Number of pods that request GPUs and are not bound, without those that request nodes from an autoscaler."""
    own = {id(each) for each in request_objects(snapshot)}
    pods = (pod for pod in snapshot.pods if not (pod.node_name or pod.finished or pod.deleting or id(pod) in own))
    requests = (read_request(pod, snapshot.environment.spec.gpu_resource) for pod in pods)
    return sum(each.held is not None or each.share is not None for each in requests)


def _why_left_out(account: GpuAccount) -> str:
    """Empty if it is examined."""
    if not account.node.usable:
        return "not ready, cordoned or being deleted"
    if account.vendor_resource:
        whole = account.vendor_resource in VENDOR_RESOURCES and account.device.division is Division.WHOLE
        return "" if whole else f"with {account.device}, for which no capacity is planned"
    if not account.kind:
        return "without a label of the GPU product"
    return "" if account.shareable or account.driver else "with devices that are parts of GPUs"


def _stays(
    account: GpuAccount, pods: Iterable[Pod], needs: Iterable[PodNeed], kind: str, owned: Collection[str]
) -> str:
    if _is_owned(account, owned):
        return "it belongs to a Workspace"
    if account.discrepancies:
        return "its GPU usage is inconsistent (`plimsoll gpus`)"
    if any(pod.annotations.get(DO_NOT_DISRUPT) == "true" for pod in pods):
        return f"a pod on it has {DO_NOT_DISRUPT}"
    if any(kind not in need.milli for need in needs):
        return "a pod on it could not be placed there again"
    return ""


def _is_owned(account: GpuAccount, owned: Collection[str]) -> bool:
    return WORKSPACE in account.node.labels or account.node.name in owned


class _Where:
    """Where pods may be besides what they ask for: in their node pool of KAI, and where their volumes are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._groups = {group.key: group for group in snapshot.pod_groups}
        self._environment = snapshot.environment.spec
        self._sharded = is_sharded(snapshot)
        self._storage = Storage(snapshot)

    def limited(self, pod: Pod) -> Pod:
        """The pod with that placement."""
        group = self._groups.get(group_key(pod))
        placement = placed_in_shard(pod, group, self._environment, sharded=self._sharded)
        placed = self._storage.narrowed(placement, pod.namespace, pod.volume_claims)
        placement = placement if isinstance(placed, NoVolume) else placed
        return pod if placement == pod.placement else pod.model_copy(update={"placement": placement})


class _Kinds:
    """Names for the kinds of nodes: alike GPUs on which the same pods may be placed."""

    def __init__(self, accounts: Iterable[GpuAccount], placements: Iterable[Placement]) -> None:
        self._placements = sorted(placements, key=repr)
        self._gpus: dict[str, Device] = {}
        self._serves: dict[str, frozenset[Placement]] = {}
        self._of: dict[str, str] = {}
        self._sizes: dict[tuple[object, ...], KindSizes] = {}
        names: dict[tuple[Device, frozenset[Placement]], str] = {}
        for account in accounts:
            node = account.node
            serves = frozenset(each for each in self._placements if each.admits(node.labels, node.taints, node.name))
            gpus = account.device.one
            name = names.setdefault((gpus, serves), f"kind-{len(names)}")
            self._of[node.name], self._gpus[name], self._serves[name] = name, gpus, serves

    def of(self, account: GpuAccount) -> str:
        return self._of[account.node.name]

    def renamed(self, account: GpuAccount) -> FreeNode:
        return replace(free_node(account, account.free_milli), kind=self.of(account))

    def need(self, each: PodShare, account: GpuAccount, *, any_gpu: bool) -> PodNeed:
        share, pod = each.share, each.pod
        product = "" if any_gpu else account.kind
        key = (share, pod.placement, product)
        if key not in self._sizes:
            able = {
                name: gpus
                for name, gpus in self._gpus.items()
                if pod.placement in self._serves[name] and product in ("", gpus.product)
            }
            ends = share.claims and self._ends(each)
            self._sizes[key] = KindSizes({}) if ends else size_by_kind(share, able)
        name = f"{pod.namespace}/{pod.name}"
        host = {each: getattr(pod.host, each) for each in HOST}
        return PodNeed(name, self._sizes[key].milli, self._sizes[key].devices, **host)

    def _ends(self, each: PodShare) -> bool:
        """Whether a selector of the claims ends in an error on devices that the pod may use: then the scheduler places
        it nowhere."""
        usable = {name: gpus for name, gpus in self._gpus.items() if each.pod.placement in self._serves[name]}
        return bool(size_by_kind(each.share, usable).ends)
