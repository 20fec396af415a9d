"""A driver of Dynamic Resource Allocation: it publishes the devices of KWOK's nodes, which have no kubelet and no
driver."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.claims.objects import divided
from tests.e2e.cluster.kube import Kube, Manifest

SLICE = ("resource.k8s.io/v1", "ResourceSlice")
DRIVER = "gpu.nvidia.com"


class Devices(NamedTuple):
    """What each node of an instance type, or of a NodePool, has."""

    number: int
    attributes: Mapping[str, Any]
    memory: str
    slices: int = 1
    """Slices over which the devices are spread."""
    mig: str = ""
    """A recorded GPU, of which each device is one that claims may have whole, or in slices of MIG."""
    shared: bool = False
    """Whether several claims may have parts of a device."""


class DraDriver:
    """Publishes the slices of each node of the given instance types and NodePools, once it is registered.

    A node's pool is first published without its last slice, in an older generation with one device more, which count
    for nothing: whoever reads it must wait for the pool to be complete.
    """

    def __init__(self, kubeconfig: Path, devices: Mapping[str, Devices]) -> None:
        self._cluster = Kube(kubeconfig)
        self._devices = devices
        self._published: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dra driver", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(timeout=10)
        self._cluster.close()

    def _run(self) -> None:
        while not self._ended.wait(0.3):
            nodes = self._cluster.list("v1", "Node")
            self._published &= {node["metadata"]["uid"] for node in nodes}
            for node in nodes:
                labels = node["metadata"]["labels"]
                names = (labels.get("node.kubernetes.io/instance-type"), labels.get("karpenter.sh/nodepool"))
                devices = next((self._devices[name] for name in names if name in self._devices), None)
                if devices is not None and node["metadata"]["uid"] not in self._published and _registered(node):
                    self._publish(node, devices)
                    self._published.add(node["metadata"]["uid"])

    def _publish(self, node: Manifest, devices: Devices) -> None:
        if devices.mig:
            for each in divided(node["metadata"]["name"], devices.number, devices.mig):
                each["metadata"]["ownerReferences"] = [_owner(node)]
                self._cluster.apply(each)
            return
        *older, _ = slices_of(node, devices._replace(number=devices.number + 1), generation=1)
        for each in older:
            self._cluster.apply(each)
        for each in slices_of(node, devices, generation=2):
            self._cluster.apply(each)


def _registered(node: Manifest) -> bool:
    taints = {taint["key"] for taint in node["spec"].get("taints", ())}
    return not taints & {"karpenter.sh/unregistered", "node.kubernetes.io/not-ready"}


def slices_of(node: Manifest, devices: Devices, *, generation: int) -> Iterator[Manifest]:
    """The slices of the node's pool."""
    name = node["metadata"]["name"]
    made = [_device(index, devices) for index in range(devices.number)]
    for number in range(devices.slices):
        pool = {"name": name, "generation": generation, "resourceSliceCount": devices.slices}
        yield {
            "apiVersion": SLICE[0],
            "kind": SLICE[1],
            "metadata": {"name": f"{name}-{number}", "ownerReferences": [_owner(node)]},
            "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": made[number :: devices.slices]},
        }


def _owner(node: Manifest) -> Manifest:
    return {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}


def _device(index: int, devices: Devices) -> Manifest:
    attributes = {name: {"string": value} for name, value in devices.attributes.items()}
    attributes["uuid"] = {"string": f"GPU-{index}"}
    device = {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": devices.memory}}}
    return device | ({"allowMultipleAllocations": True} if devices.shared else {})


@contextmanager
def dra_driver(kubeconfig: Path, devices: Mapping[str, Devices]) -> Iterator[None]:
    """Runs the driver until the context ends."""
    running = DraDriver(kubeconfig, devices)
    running.start()
    try:
        yield
    finally:
        running.stop()
