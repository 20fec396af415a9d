"""A cluster as a provisioner and a scheduler change it: pods come, are bound and go, nodes come or fail to."""

from plimsoll.model import Snapshot
from plimsoll.model.api import GPUDemand
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import Queue
from plimsoll.plan.demand import Demand, DemandPlanner, Promise
from plimsoll.plan.pools import allocatable_cpu_milli
from plimsoll.plan.requests import figures
from tests.builders import a_gpu_node, a_node_pool, a_snapshot
from tests.demand.test_properties import MEMORY, TYPES, check, milli_of, promises_of

VCPUS = {"g6.xlarge": 4, "g6.12xlarge": 48, "g5.xlarge": 4, "g5.48xlarge": 192}


class Cluster:
    """`roomy` nodes have more CPU than was assumed of their type."""

    def __init__(self, nodes: list[Node], limit: int | None, queues: list[Queue], roomy: bool) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.waiting: dict[str, Pod] = {}
        self.bound: list[Pod] = []
        self.promises: list[Promise] = []
        self.came: dict[str, str] = {}
        self.blocked: set[tuple[str, str]] = set()
        self.planner = DemandPlanner()
        self.found: tuple[Demand, ...] = ()
        self._limit, self._queues, self._roomy = limit, queues, roomy
        self._taken = {name: [0] * int(node.allocatable["nvidia.com/gpu"]) for name, node in self.nodes.items()}
        self._made = 0
        self._told: tuple[GPUDemand, ...] = ()

    @property
    def snapshot(self) -> Snapshot:
        of_pool = [name for name, node in self.nodes.items() if "karpenter.sh/nodepool" in node.labels]
        used = sum(len(self._taken[name]) for name in of_pool)
        limits = {"nvidia.com/gpu": self._limit} if self._limit is not None else None
        pool = a_node_pool("pool", TYPES, limits=limits, used={"nvidia.com/gpu": used})
        return a_snapshot(*self.waiting.values(), *self.bound, *self.nodes.values(), *self._queues, pool, *self._told)

    def planned(self, planner: DemandPlanner) -> tuple[Demand, ...]:
        """What a planner says of the cluster as it is; every plan has to be right."""
        found = planner.demands(self.snapshot, self.promises, self.blocked, came=self.came)
        free = {name: sum(1000 - taken for taken in gpus) for name, gpus in self._taken.items()}
        check(found, self.waiting.values(), free)
        gpus = {promise.name: promise.gpus for promise in self.promises}
        for demand in found:
            for name, uids in demand.on_promises.items():
                assert sum(milli_of(self.waiting[uid]) for uid in uids) <= 1000 * gpus[name]
        return found

    def plan(self) -> list[Promise]:
        """Plans, asks for what is new, and retires what nobody is to use; what was asked for."""
        self.found = self.planned(self.planner)
        self._told = tuple(told(demand) for demand in self.found)
        wanted = {name for demand in self.found for name in demand.on_promises}
        busy = {name for demand in self.found for name in demand.on_nodes}
        self.promises = [promise for promise in self.promises if promise.name in wanted]
        self.came = {name: demand for name, demand in self.came.items() if name in busy}
        new = []
        for promise in promises_of(self.found):
            self._made += 1
            names = {field: getattr(promise, field) for field in Promise.__dataclass_fields__}
            new.append(Promise(**{**names, "name": f"trigger-{self._made:03}"}))
        self.promises += new
        return new

    def unused(self, found: tuple[Demand, ...]) -> set[str]:
        """What was asked for and nobody is to use."""
        used = {name for demand in found for name in (*demand.on_nodes, *demand.on_promises)}
        return {*self.came, *(promise.name for promise in self.promises)} - used

    def come(self, promise: Promise, instance_type: str) -> None:
        self.promises.remove(promise)
        name = f"new-{promise.name}"
        self.nodes[name] = a_gpu_node(
            name,
            "NVIDIA-L4" if instance_type.startswith("g6") else "NVIDIA-A10G",
            gpus=promise.gpus,
            memory=MEMORY,
            cpu="512" if self._roomy else f"{allocatable_cpu_milli(VCPUS[instance_type] * 1000)}m",
            instance_type=instance_type,
            more_labels={"karpenter.sh/nodepool": promise.node_pool},
        )
        self._taken[name] = [0] * promise.gpus
        self.came[name] = promise.demand

    def fail(self, promise: Promise) -> None:
        self.promises.remove(promise)
        self.blocked |= {(each, promise.node_pool) for each in promise.instance_types}

    def bind(self, uid: str, node: str) -> bool:
        """Onto the first GPU that has room, as a scheduler might; False where none has."""
        pod, taken = self.waiting[uid], self._taken[node]
        milli = milli_of(pod)
        gpu = next((gpu for gpu, used in enumerate(taken) if used + milli <= 1000), None)
        if gpu is None or pod.annotations["gpu-fraction-num-devices"] != "1":
            return False
        del self.waiting[uid]
        taken[gpu] += milli
        labels = {**pod.labels, "runai-gpu-group": f"{node}-{gpu}"}
        self.bound.append(
            pod.model_copy(update={"node_name": node, "phase": "Running", "conditions": (), "labels": labels})
        )
        return True

    def places(self) -> list[tuple[str, str]]:
        """(UID, node) of pods that the last plan puts on nodes that are there."""
        return [
            (uid, node)
            for demand in self.found
            for node, uids in demand.on_nodes.items()
            for uid in uids
            if uid in self.waiting and node in self.nodes
        ]


def told(demand: Demand) -> GPUDemand:
    """Its object, as it is read back."""
    return GPUDemand.read({"metadata": {"name": demand.name}, "status": figures(demand).as_manifest()})
