"""A cluster that a provisioner and a scheduler change: pods are created, bound and deleted, nodes register or fail."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from plimsoll.labels import GPU_GROUP_PREFIX, VISIBLE_DEVICES
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import POD_GROUP_NAME, PodGroup, Queue
from plimsoll.packing import Milli
from plimsoll.plan.demand import DemandPlan, DemandPlanner, RequestedNode
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod
from tests.demand.plans import requests_of
from tests.demand.test_properties import MEMORY, TYPES, check, cpu_of, devices_of, milli_of

WAITING = a_waiting_pod().conditions
"""Of a pod that is Unschedulable."""


class Cluster:
    """A simulated cluster. Nodes in `roomy` have more CPU than was assumed for their instance type."""

    def __init__(self, nodes: list[Node], limit: int | None, queues: list[Queue], roomy: bool) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.waiting: dict[str, Pod] = {}
        self.bound: list[Pod] = []
        self.groups: dict[str, PodGroup] = {}
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
        objects = (*self.bound, *self.nodes.values(), *self._queues, *self.groups.values())
        return a_snapshot(*self.waiting.values(), *objects, pool)

    def planned(self, compared: bool = True) -> DemandPlan:
        """The plan of the current cluster. If compared, asserts that a planner with caches and a new one have the same
        plan."""
        plan = self.planner.plan(self.snapshot, self.requested, self.blocked)
        if compared:
            assert plan == DemandPlanner().plan(self.snapshot, self.requested, self.blocked)
        check(plan, self.waiting.values(), self.free, self.requested)
        return plan

    @property
    def free(self) -> dict[str, Milli]:
        """Thousandths of GPUs by node."""
        return {name: sum(1000 - taken for taken in gpus) for name, gpus in self._taken.items()}

    def plan(self, most: int | None = None, compared: bool = True) -> list[RequestedNode]:
        """Plans, withdraws requests that no pod needs, and requests new nodes, which it returns. An engine that is
        killed has made `most` of the requests."""
        self.found = self.planned(compared)
        self.requested = [node for node in self.requested if node.name in self.found.needed]
        self._made += 1
        new = requests_of(self.found.nodes, f"trigger-{self._made:03}")
        self.requested += new[:most]
        return new

    def restart(self) -> None:
        self.planner = DemandPlanner()

    def come(self, node: RequestedNode, instance_type: str) -> None:
        self.requested.remove(node)
        name = f"new-{node.name}"
        self.nodes[name] = a_gpu_node(
            name,
            "NVIDIA-L4" if instance_type.startswith("g6") else "NVIDIA-A10G",
            gpus=node.gpus,
            memory=MEMORY,
            cpu="512" if self._roomy else cpu_of(instance_type),
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

    def lose(self, name: str) -> None:
        """The node fails. Its pods are created again."""
        del self.nodes[name], self._taken[name]
        lost = [pod for pod in self.bound if pod.node_name == name]
        self.bound = [pod for pod in self.bound if pod.node_name != name]
        for pod in lost:
            labels = {key: value for key, value in pod.labels.items() if not key.startswith(GPU_GROUP_PREFIX)}
            annotations = {key: value for key, value in pod.annotations.items() if key != VISIBLE_DEVICES}
            again = {"uid": f"{pod.uid}-again", "node_name": "", "phase": "Pending", "conditions": WAITING}
            self.waiting[f"{pod.uid}-again"] = pod.model_copy(
                update=again | {"labels": labels, "annotations": annotations}
            )

    def bind(self, uids: Iterable[str], choose: Callable[[list[str]], str]) -> bool:
        """Binds the pods, each to a node that is chosen from those with room. Binds none, and returns False, if a
        PodGroup would have fewer pods than start together."""
        waiting, bound, taken = dict(self.waiting), list(self.bound), {name: [*of] for name, of in self._taken.items()}
        for uid in uids:
            if names := [name for name in sorted(self.nodes) if self._gpus_for(self.waiting[uid], name)]:
                self._bind(uid, choose(names))
        if not self._started_below(bound):
            return True
        self.waiting, self.bound, self._taken = waiting, bound, taken
        return False

    def _started_below(self, before: Collection[Pod]) -> bool:
        """Whether a PodGroup with newly bound pods has fewer bound ones than it needs."""
        for name in {group_of(pod) for pod in self.bound[len(before) :]} & self.groups.keys():
            running = sum(group_of(pod) == name for pod in self.bound)
            known = running + sum(group_of(pod) == name for pod in self.waiting.values())
            if running < min(self.groups[name].min_member, known):
                return True
        return False

    def _bind(self, uid: str, node: str) -> None:
        """Binds the pod to the first GPUs with room, as a scheduler might."""
        pod = self.waiting.pop(uid)
        labels = dict(pod.labels)
        gpus = self._gpus_for(pod, node)
        for gpu in gpus:
            self._taken[node][gpu] += milli_of(pod)
            labels[f"{GPU_GROUP_PREFIX}{node}-{gpu}"] = f"{node}-{gpu}"
        # Without its UUIDs, or a reservation, nobody placed it: it would count for nothing.
        told = {VISIBLE_DEVICES: ",".join(f"{node}-{gpu}" for gpu in gpus)}
        bound = {"node_name": node, "phase": "Running", "conditions": (), "labels": labels}
        self.bound.append(pod.model_copy(update=bound | {"annotations": {**pod.annotations, **told}}))

    def _gpus_for(self, pod: Pod, node: str) -> list[int]:
        """The first GPUs of the node with room for the pod; none if there are not enough."""
        gpus = [gpu for gpu, used in enumerate(self._taken[node]) if used + milli_of(pod) <= 1000][: devices_of(pod)]
        return gpus if len(gpus) == devices_of(pod) and self._allows(pod, node) else []

    def _allows(self, pod: Pod, node: str) -> bool:
        """Whether labels, CPU and the scheduler of the pods that share its GPUs allow the pod on the node."""
        others = [each for each in self.bound if each.node_name == node]
        used = sum(each.host.cpu_milli for each in others)
        there = self.nodes[node]
        cpu = str(there.allocatable["cpu"])
        room = int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
        own = all(each.scheduler_name == pod.scheduler_name for each in others)
        return own and pod.placement.allows(there.labels, node) and used + pod.host.cpu_milli <= room


def group_of(pod: Pod) -> str:
    return pod.annotations.get(POD_GROUP_NAME, "")
