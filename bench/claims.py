"""Pods that claim GPUs (Dynamic Resource Allocation) beside as many that share them: the first plan, and the next one
after one more pod waits.

    python -m bench.claims [--nodes 1000] [--claims 10000] [--waiting 1000] [--changes 9] [--output json]

Both clusters have the same nodes of 8 GPUs, a running pod for each GPU but on every 50th node, where half of them are
free, and the same number of waiting pods in 20 queues. Claims that no pod has complete `--claims`. Objects are values
in memory; what is measured is joining nodes and pods with slices and claims, as the observer does, and the plan of
their demand. The aim is twice the time of shares, in the same run.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from bench.command import grid, run_benchmark
from bench.large_cluster import GPUS, Situation, a_cluster, queue_name, waiting_pod
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.cluster.claims import ClaimObjects, Joining
from plimsoll.errors import PlimsollError
from plimsoll.labels import REQUEST
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.dra import DeviceClass, ResourceClaim, ResourceSlice
from plimsoll.model.karpenter import NodePool
from plimsoll.plan.demand import DemandPlanner

CLASSES: Final = 20
AIM: Final = 2.0
_DRIVER: Final = "gpu.nvidia.com"
_TYPE: Final = "g6.48xlarge"
_ATTRIBUTES: Final = {"type": "gpu", "productName": "NVIDIA L4", "architecture": "Ada Lovelace"}


@dataclass(frozen=True)
class Cluster:
    """What a plan is made of, before nodes and pods are joined with their claims."""

    snapshot: Snapshot
    objects: ClaimObjects = field(default_factory=ClaimObjects)
    joining: Joining = field(default_factory=Joining)

    def joined(self) -> Snapshot:
        nodes = self.joining.nodes(self.snapshot.nodes, self.objects)
        pods = self.joining.pods(self.snapshot.pods, self.objects)
        return self.snapshot.model_copy(
            update={
                "nodes": nodes,
                "pods": pods,
                "resource_slices": self.objects.slices,
                "device_classes": self.objects.classes,
                "resource_claims": self.objects.claims,
            }
        )

    def with_pod(self, pod: Pod, claim: ResourceClaim | None = None) -> "Cluster":
        snapshot = self.snapshot.model_copy(update={"pods": (*self.snapshot.pods, pod)})
        claims = self.objects.claims if claim is None else (*self.objects.claims, claim)
        return replace(self, snapshot=snapshot, objects=replace(self.objects, claims=claims))


def of_claims(nodes: int, claims: int, waiting: int) -> Cluster:
    """Raises PlimsollError if there are fewer claims than pods."""
    places = [(node, gpu) for node in range(nodes) for gpu in range(GPUS // 2 if node % 50 == 0 else GPUS)]
    unused = claims - len(places) - waiting
    if unused < 0:
        raise PlimsollError(f"{claims} claims are fewer than the pods.", f"Give --claims at least {claims - unused}.")
    names = [f"waiting-{number}" for number in range(waiting)] + [f"unused-{number}" for number in range(unused)]
    running = [(f"running-{node}-{gpu}", node, gpu) for node, gpu in places]
    snapshot = Snapshot.model_construct(
        environment=Environment.default(),
        nodes=tuple(Node.read(_node(number)) for number in range(nodes)),
        node_pools=(NodePool.read(_node_pool()),),
        pods=(
            *(Pod.read(_pod(name, 0, f"node-{node:05}")) for name, node, _ in running),
            *(Pod.read(_pod(name, number)) for number, name in enumerate(names[:waiting])),
        ),
    )
    objects = ClaimObjects(
        tuple(ResourceSlice.read(_slice(number)) for number in range(nodes)),
        (DeviceClass.read(_device_class()),),
        (
            *(ResourceClaim.read(_claim(name, f"node-{node:05}", gpu)) for name, node, gpu in running),
            *(ResourceClaim.read(_claim(name)) for name in names),
        ),
    )
    return Cluster(snapshot, objects)


def of_shares(nodes: int, waiting: int) -> Cluster:
    return Cluster(a_cluster(nodes, nodes * GPUS + waiting, waiting, Situation(classes=CLASSES)))


def measured(cluster: Cluster, more: Callable[[Cluster, int], Cluster], changes: int) -> tuple[float, float]:
    """Seconds of the first plan, and of one after one more pod waits (median)."""
    planner = DemandPlanner()
    gc.collect()
    gc.freeze()
    start = time.thread_time()
    planner.plan(cluster.joined())
    first, later = time.thread_time() - start, []
    for number in range(changes):
        cluster = more(cluster, number)
        start = time.thread_time()
        planner.plan(cluster.joined())
        later.append(time.thread_time() - start)
    return first, statistics.median(later)


def one_more_share(cluster: Cluster, number: int) -> Cluster:
    return cluster.with_pod(waiting_pod(10_000_000 + number, number % CLASSES))


def one_more_claim(cluster: Cluster, number: int) -> Cluster:
    name = f"more-{number}"
    return cluster.with_pod(Pod.read(_pod(name, number)), ResourceClaim.read(_claim(name)))


def _meta(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": f"uid-{name}", **({"namespace": namespace} if namespace else {}), **more}


def _pod(name: str, number: int, node: str = "") -> dict[str, Any]:
    """A pod with a claim of its name, which runs on the node, or waits."""
    container = {"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}}}
    waits = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    statuses = [{"name": "gpu", "resourceClaimName": name}]
    return {
        "metadata": _meta(name, "team", labels={"kai.scheduler/queue": queue_name(number % CLASSES)}),
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [container],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"resourceClaimStatuses": statuses, **({"phase": "Running"} if node else waits)},
    }


def _claim(name: str, node: str = "", gpu: int = 0) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": _DRIVER, "allocationMode": "ExactCount", "count": 1}}
    result = {"request": "gpu", "driver": _DRIVER, "pool": node, "device": f"gpu-{gpu}"}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [{"resource": "pods", "name": name}]}
    return {
        "metadata": _meta(name, "team"),
        "spec": {"devices": {"requests": [request]}},
        **({"status": status} if node else {}),
    }


def _slice(number: int) -> dict[str, Any]:
    node = f"node-{number:05}"
    return {
        "metadata": _meta(f"{node}-gpus"),
        "spec": {
            "driver": _DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": list(_devices(number)),
        },
    }


def _devices(number: int) -> Iterator[dict[str, Any]]:
    for gpu in range(GPUS):
        attributes = {**_ATTRIBUTES, "uuid": f"GPU-{number}-{gpu}"}
        yield {
            "name": f"gpu-{gpu}",
            "attributes": {name: {"string": value} for name, value in attributes.items()},
            "capacity": {"memory": {"value": "23034Mi"}},
        }


def _device_class() -> dict[str, Any]:
    expression = f"device.driver == '{_DRIVER}' && device.attributes['{_DRIVER}'].type == 'gpu'"
    return {"metadata": _meta(_DRIVER), "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def _node(number: int) -> dict[str, Any]:
    labels = {"node.kubernetes.io/instance-type": _TYPE, "karpenter.sh/nodepool": "gpus"}
    return {
        "metadata": _meta(f"node-{number:05}", labels=labels),
        "status": {
            "allocatable": {"cpu": "95", "memory": "1100Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _node_pool() -> dict[str, Any]:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [_TYPE]},
        {"key": REQUEST, "operator": "Exists"},
    ]
    template = {"spec": {"requirements": requirements, "nodeClassRef": {"group": "example.com"}}}
    return {"metadata": _meta("gpus"), "spec": {"template": template}}


def main(
    nodes: Annotated[int, typer.Option(help="nodes with 8 GPUs", min=1)] = 1_000,
    claims: Annotated[int, typer.Option(help="claims in all", min=1)] = 10_000,
    waiting: Annotated[int, typer.Option(help="pods that wait for a GPU", min=1)] = 1_000,
    changes: Annotated[int, typer.Option(help="plans after one more pod waits", min=1)] = 9,
    output: Output = Format.TEXT,
) -> None:
    """Pods that claim GPUs beside as many that share them: the first plan, and the next after one more pod waits."""
    # What both import and compile once.
    measured(of_claims(1, GPUS, 1), one_more_claim, 1)
    measured(of_shares(1, 1), one_more_share, 1)
    first, later = measured(of_claims(nodes, claims, waiting), one_more_claim, changes)
    first_of_shares, later_of_shares = measured(of_shares(nodes, waiting), one_more_share, changes)
    row = {
        "nodes": nodes,
        "claims": claims,
        "waiting": waiting,
        "planMs": round(first * 1000, 1),
        "planMsOfShares": round(first_of_shares * 1000, 1),
        "planRatio": round(first / first_of_shares, 2),
        "updateMs": round(later * 1000, 1),
        "updateMsOfShares": round(later_of_shares * 1000, 1),
        "updateRatio": round(later / later_of_shares, 2),
        "aim": AIM,
    }
    if output is Format.JSON:
        print_json(row)
        return
    Console().print(grid(row))


if __name__ == "__main__":
    run_benchmark(main)
