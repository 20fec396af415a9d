"""Builders of the objects of Dynamic Resource Allocation, as manifests."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from plimsoll.model import Snapshot
from plimsoll.observe.files import snapshot_from_files

DRIVER: Final = "gpu.nvidia.com"
L4: Final = {"productName": "NVIDIA L4", "architecture": "Ada Lovelace", "type": "gpu", "brand": "Nvidia"}
"""Attributes of text that NVIDIA's driver publishes of an L4."""
VERSION: Final = "resource.k8s.io/v1"
Manifest = dict[str, Any]


def a_device(
    name: str, attributes: Mapping[str, Any] = L4, memory: str = "23034Mi", versions: Mapping[str, str] | None = None
) -> Manifest:
    """A device with attributes of text, numbers and truth values."""
    kinds = {bool: "bool", int: "int", str: "string"}
    found = {key: {kinds[type(value)]: value} for key, value in attributes.items()}
    found |= {key: {"version": value} for key, value in (versions or {"cudaComputeCapability": "8.9.0"}).items()}
    return {"name": name, "attributes": found, "capacity": {"memory": {"value": memory}}}


def a_slice(
    node: str, devices: Iterable[Manifest], *, generation: int = 1, number: int = 0, of: int = 1, driver: str = DRIVER
) -> Manifest:
    spec = {
        "driver": driver,
        "nodeName": node,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": of},
        "devices": list(devices),
    }
    name = f"{node}-{driver}-{generation}-{number}"
    return {"apiVersion": VERSION, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def gpus(number: int, attributes: Mapping[str, Any] = L4) -> list[Manifest]:
    return [a_device(f"gpu-{each}", {**attributes, "uuid": f"GPU-{each}"}) for each in range(number)]


def recorded(gpu: str) -> Manifest:
    """What NVML said of a real GPU, with its MIG profiles and their placements."""
    found: Manifest = json.loads((Path(__file__).parents[1] / "probing" / "gpus" / f"{gpu}.json").read_text())
    return found


def divided(node: str, number: int, gpu: str = "h100", **fields: Any) -> list[Manifest]:
    """The slices of a node whose GPUs are whole or in parts of MIG, as NVIDIA's driver publishes these (DynamicMIG):
    the counters of each GPU, and a device for each placement of each profile."""
    seen = recorded(gpu)
    whole = max(seen["profiles"], key=lambda each: int(each["memorySizeMB"]))
    sets, slices = list[Manifest](), list[list[Manifest]]()
    for index in range(number):
        name = f"gpu-{index}-counter-set"
        everything = _counters(whole, range(8))
        shared = {"productName": seen["name"], "architecture": "Hopper"}
        device = a_device(
            f"gpu-{index}", {**shared, "type": "gpu", "uuid": f"GPU-{index}"}, f"{whole['memorySizeMB']}Mi"
        )
        sets.append({"name": name, "counters": everything})
        devices = [device | {"consumesCounters": [{"counterSet": name, "counters": everything}]}]
        for each in seen["profiles"]:
            profile = each["name"].removeprefix("MIG ")
            attributes = {**shared, "type": "mig", "profile": profile, "parentUUID": f"GPU-{index}"}
            for start in each["starts"]:
                counters = _counters(each, range(start, start + each["size"]))
                part = a_device(f"gpu-{index}-mig-{each['id']}-{start}", attributes, f"{each['memorySizeMB']}Mi")
                devices.append(part | {"consumesCounters": [{"counterSet": name, "counters": counters}]})
        slices.append(devices)
    of = number + 1
    found = [a_slice(node, devices, number=at, of=of, **fields) for at, devices in enumerate(slices)]
    counters = a_slice(node, [], number=number, of=of, **fields)
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = sets
    return [*found, counters]


def _counters(profile: Manifest, memory_slices: Iterable[int]) -> Manifest:
    amounts = {
        "memory": f"{profile['memorySizeMB']}Mi",
        "multiprocessors": str(profile["multiprocessorCount"]),
        "media-engines": "1" if "+me" in profile["name"] or profile["sliceCount"] == 7 else "0",
        **{f"memory-slice-{each}": "1" for each in memory_slices},
    }
    return {name: {"value": amount} for name, amount in amounts.items()}


MIG: Final = "mig.nvidia.com"


def a_mig_class() -> Manifest:
    return a_class(MIG, f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'mig'")


def a_slice_of(profile: str, count: int = 1, **fields: Any) -> Manifest:
    """A request for a MIG slice."""
    return asked(count, f"device.attributes['{DRIVER}'].profile == '{profile}'", of=MIG, **fields)


def a_class(name: str = DRIVER, *expressions: str, extended_resource: str = "") -> Manifest:
    """A DeviceClass; by default of NVIDIA's whole GPUs."""
    default = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
    spec: Manifest = {"selectors": [{"cel": {"expression": each}} for each in expressions or (default,)]}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    return {"apiVersion": VERSION, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def asked(count: int = 1, *expressions: str, of: str = DRIVER, **fields: Any) -> Manifest:
    """A request for devices, without its name."""
    selectors = [{"cel": {"expression": each}} for each in expressions]
    found = {"deviceClassName": of, "allocationMode": "ExactCount", "count": count, "selectors": selectors, **fields}
    return {key: value for key, value in found.items() if value}


def claim_spec(*requests: Manifest, constraints: Iterable[Manifest] = ()) -> Manifest:
    """The spec of a claim. A request that is a list is one of alternatives (`firstAvailable`)."""
    found = [
        {"name": f"r{number}", **({"exactly": each} if "firstAvailable" not in each else each)}
        for number, each in enumerate(requests)
    ]
    return {"devices": {"requests": found, **({"constraints": list(constraints)} if constraints else {})}}


def a_template(name: str, *requests: Manifest, namespace: str = "team", **fields: Any) -> Manifest:
    return {
        "apiVersion": VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": claim_spec(*requests, **fields)},
    }


def a_claim(
    name: str,
    *requests: Manifest,
    namespace: str = "team",
    devices: Iterable[tuple[str, str]] = (),
    pods: Iterable[str] = (),
    admin: bool = False,
    **fields: Any,
) -> Manifest:
    """`devices` are those that it has, as (pool, device)."""
    results = [
        {"request": "r0", "driver": DRIVER, "pool": pool, "device": device, **({"adminAccess": True} if admin else {})}
        for pool, device in devices
    ]
    status: Manifest = {"allocation": {"devices": {"results": results}}} if results else {}
    status |= {"reservedFor": [{"resource": "pods", "name": name, "uid": name} for name in pods]} if pods else {}
    return {
        "apiVersion": VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": claim_spec(*requests, **fields),
        "status": status,
    }


def a_node(name: str, pool: str = "gpu", instance_type: str = "g6.xlarge", **amounts: str) -> Manifest:
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110", **amounts}
    labels = {
        "node.kubernetes.io/instance-type": instance_type,
        "karpenter.sh/nodepool": pool,
        "kubernetes.io/hostname": name,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_pod(
    name: str,
    template: str = "",
    claim: str = "",
    *,
    node: str = "",
    namespace: str = "team",
    cpu: str = "1",
    created: str = "2026-01-01T00:00:00Z",
    **spec: Any,
) -> Manifest:
    """A pod with one claim, of a template or of that name; pending where it has no node."""
    named = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}, "claims": [{"name": "gpu"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": created},
        "spec": {
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": resources}],
            "resourceClaims": [{"name": "gpu", **named}],
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": {"phase": "Running"} if node else {"phase": "Pending", "conditions": [unscheduled]},
    }


def snapshot_of(folder: Path, *manifests: Manifest) -> Snapshot:
    """The Snapshot of these manifests, read from a file."""
    file = folder / "objects.yaml"
    file.write_text("\n---\n".join(map(json.dumps, manifests)))
    return snapshot_from_files([str(file)])
