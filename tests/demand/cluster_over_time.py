"""A cluster that a provisioner and a scheduler change: pods are created, bound and deleted, nodes register or fail."""

from dataclasses import replace

from plimsoll.cluster.pools import allocatable_cpu_milli
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import Queue
from plimsoll.packing import Milli
from plimsoll.plan.demand import DemandPlan, DemandPlanner, RequestedNode
from tests.builders import a_gpu_node, a_node_pool, a_snapshot
from tests.demand.plans import requests_of
from tests.demand.test_properties import MEMORY, TYPES, check, devices_of, milli_of

VCPUS = {"g6.xlarge": 4, "g6.12xlarge": 48, "g5.xlarge": 4, "g5.48xlarge": 192}


class Cluster:
    """A simulated cluster. Nodes in `roomy` have more CPU than was assumed for their instance type."""

    def __init__(self, nodes: list[Node], limit: int | None, queues: list[Queue], roomy: bool) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.waiting: dict[str, Pod] = {}
        self.bound: list[Pod] = []
        self.requested: list[RequestedNode] = []
        self.blocked: set[tuple[str, str]] = set()
        self.planner = DemandPlanner()
        self.found = DemandPlan()
        self._limit, self._queues, self._roomy = limit, queues, roomy
        self._taken: dict[str, list[Milli]] = {
            name: [0] * int(node.allocatable["nvidia.com/gpu"]) for name, node in self.nodes.items()
        }
        self._made = 0

    @property
    def snapshot(self) -> Snapshot:
        of_pool = [name for name, node in self.nodes.items() if "karpenter.sh/nodepool" in node.labels]
        used = sum(len(self._taken[name]) for name in of_pool)
        limits = {"nvidia.com/gpu": self._limit} if self._limit is not None else None
        pool = a_node_pool("pool", TYPES, limits=limits, used={"nvidia.com/gpu": used})
        return a_snapshot(*self.waiting.values(), *self.bound, *self.nodes.values(), *self._queues, pool)

    def planned(self) -> DemandPlan:
        """The plan of the current cluster; asserts that a planner with caches and a new one have the same plan."""
        plan = self.planner.plan(self.snapshot, self.requested, self.blocked)
        assert plan == DemandPlanner().plan(self.snapshot, self.requested, self.blocked)
        check(plan, self.waiting.values(), self.free, self.requested)
        return plan

    @property
    def free(self) -> dict[str, Milli]:
        """Thousandths of GPUs by node."""
        return {name: sum(1000 - taken for taken in gpus) for name, gpus in self._taken.items()}

    def plan(self) -> list[RequestedNode]:
        """Plans, withdraws requests that no pod needs, and requests new nodes, which it returns."""
        self.found = self.planned()
        self.requested = [node for node in self.requested if node.name in self.found.needed]
        self._made += 1
        new = requests_of(self.found.nodes, f"trigger-{self._made:03}")
        self.requested += new
        return new

    def come(self, node: RequestedNode, instance_type: str) -> None:
        self.requested.remove(node)
        name = f"new-{node.name}"
        self.nodes[name] = a_gpu_node(
            name,
            "NVIDIA-L4" if instance_type.startswith("g6") else "NVIDIA-A10G",
            gpus=node.gpus,
            memory=MEMORY,
            cpu="512" if self._roomy else f"{allocatable_cpu_milli(VCPUS[instance_type] * 1000)}m",
            instance_type=instance_type,
            more_labels={"karpenter.sh/nodepool": node.node_pool},
        )
        self._taken[name] = [0] * node.gpus

    def claim(self, node: RequestedNode) -> None:
        """The autoscaler creates a NodeClaim for the request."""
        self.requested[self.requested.index(node)] = replace(node, claimed=True)

    def fail(self, node: RequestedNode) -> None:
        self.requested.remove(node)
        self.blocked |= {(each, node.node_pool) for each in node.instance_types}

    def bind(self, uid: str, node: str) -> bool:
        """Binds the pod to the first GPUs with room, as a scheduler might. Returns False if there are not enough."""
        pod, taken = self.waiting[uid], self._taken[node]
        milli = milli_of(pod)
        gpus = [gpu for gpu, used in enumerate(taken) if used + milli <= 1000][: devices_of(pod)]
        if len(gpus) < devices_of(pod) or not self._allows(pod, node):
            return False
        del self.waiting[uid]
        labels = dict(pod.labels)
        for gpu in gpus:
            taken[gpu] += milli
            labels[f"runai-gpu-group/{node}-{gpu}"] = f"{node}-{gpu}"
        self.bound.append(
            pod.model_copy(update={"node_name": node, "phase": "Running", "conditions": (), "labels": labels})
        )
        return True

    def _allows(self, pod: Pod, node: str) -> bool:
        """Whether labels and CPU allow the pod on the node."""
        used = sum(each.host.cpu_milli for each in self.bound if each.node_name == node)
        there = self.nodes[node]
        cpu = str(there.allocatable["cpu"])
        room = int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
        return pod.placement.allows(there.labels, node) and used + pod.host.cpu_milli <= room
