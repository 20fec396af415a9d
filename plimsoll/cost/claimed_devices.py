"""Claims that have devices of nodes, and what their pods would claim on other nodes."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from plimsoll.cluster.claims import PodClaims
from plimsoll.cluster.ledger import GpuAccount
from plimsoll.cluster.pods import PodRequest, read_request
from plimsoll.cluster.profiles import discovery_of
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.dra import ResourceClaim
from plimsoll.packing.nodes import PodNeed


class ClaimedDevices:
    """The devices that claims have, by node."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._resource = snapshot.environment.spec.gpu_resource
        claiming = [pod for pod in snapshot.pods if pod.resource_claims]
        objects = snapshot.device_classes, snapshot.resource_claims, snapshot.resource_claim_templates
        self._pods = PodClaims(*objects, claiming)
        self._on_node = _holders(snapshot)

    def again(self, pod: Pod) -> PodRequest:
        """What a pod that runs would request if it were created again."""
        return read_request(pod.model_copy(update={"claimed": self._pods.again(pod)}), self._resource)

    def differ(self, account: GpuAccount) -> bool:
        """Whether the devices that pods claim of the node are not whole GPUs that are alike."""
        return bool(account.driver) and discovery_of(account.node, self._resource).claimed is None

    def keeps(self, account: GpuAccount, needs: Iterable[PodNeed]) -> str:
        """Why claims keep the node, whose pods need that of another one; empty if they do not."""
        holders = self._on_node.get(account.node.name, ())
        claimable = account.device.claimable
        in_parts = claimable is not None and bool(claimable.shared or claimable.parts or claimable.special)
        if self.differ(account) or (holders and in_parts):
            return "pods claim parts of its GPUs, or unlike ones"
        asked = {need.name: need.devices for need in needs}
        held = Counter[str]()
        for claim, devices in holders:
            user = f"{claim.namespace}/{claim.pods[0]}" if len(claim.pods) == 1 else ""
            if user not in asked:
                return (
                    f"ResourceClaim {claim.namespace}/{claim.name} has devices of it, and no pod that could move has it"
                )
            held[user] += devices
        other = next((name for name, number in asked.items() if account.driver and held[name] != number), "")
        return f"Pod {other} has another number of devices than it would claim again" if other else ""


def _holders(snapshot: Snapshot) -> dict[str, list[tuple[ResourceClaim, int]]]:
    """The claims with the number of devices that they have of each node. By the pools of its slices, whether these are
    complete or not."""
    pools = {(each.driver, each.pool): each.node_name for each in snapshot.resource_slices if each.node_name}
    found = defaultdict[str, list[tuple[ResourceClaim, int]]](list)
    for claim in snapshot.resource_claims:
        of_nodes = Counter(pools.get((each.driver, each.pool), "") for each in claim.devices)
        for node, devices in of_nodes.items():
            found[node].append((claim, devices))
    return found
