"""NodeOverlays: the devices that nodes will have once the device plugin shares or partitions their GPUs.

Karpenter launches no node for a resource that an instance type does not list, such as `nvidia.com/gpu.shared` or
`nvidia.com/mig-1g.10gb` (its issue 729). A NodeOverlay (karpenter.sh/v1alpha1, feature gate `NodeOverlay`) lists it.
The amount must match the device plugin's configuration: a NodeClaim is initialized only when its node has the resource.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import pulumi
import yaml

from plimsoll.cluster.catalog import Catalog
from plimsoll.components import metadata
from plimsoll.components.specs import GpuDiscoverySpec
from plimsoll.errors import PlimsollError
from plimsoll.kubernetes_sdk import k8s
from plimsoll.labels import GPU_RESOURCE, INSTANCE_TYPE, MIG_CONFIG, NODEPOOL
from plimsoll.model.cluster import InstanceType
from plimsoll.model.karpenter import NodePoolSpec

PLUGIN_CONFIG: Final = "nvidia.com/device-plugin.config"
"""Label of nodes that selects one of the device plugin's configurations."""
_MIG: Final = re.compile(r"all-(([1-7])g\.([1-9][0-9]{0,3})gb(?:\.(me|gfx)|-me)?)")
_SMALL_GIB: Final = 24
"""Nominal memory of an A30, which has 4 slices; larger GPUs have 7 compute and 8 memory slices."""
_SAME_NAME: Final = (
    f"parts of GPUs are announced as {GPU_RESOURCE}, which Karpenter counts as whole GPUs: give them another name "
    "(renameByDefault of the device plugin), or let trigger pods request the nodes (nodeOverlays: false)"
)
_SINGLE: Final = (
    f"MIG slices are announced as {GPU_RESOURCE} (migStrategy: single), which Karpenter counts as whole GPUs: set "
    "migStrategy to mixed"
)


class Overlays(NamedTuple):
    specs: dict[str, dict[str, Any]]
    """`spec` of each NodeOverlay, by name."""
    warnings: tuple[str, ...]


def node_overlays(
    discovery: GpuDiscoverySpec, pools: Mapping[str, NodePoolSpec], catalog: Catalog | None = None
) -> Overlays:
    """The NodeOverlays of the pools, by NodePool name: one for each number of GPUs among its instance types.

    For sharing that keeps the name `nvidia.com/gpu` there is none: Karpenter would plan new nodes with the amount of
    the overlay, count the type's own amount while they start, and launch one node after the other for the same pod.
    """
    known = catalog or Catalog.builtin()
    specs: dict[str, dict[str, Any]] = {}
    warnings: list[str] = []
    for name, pool in pools.items():
        by_count: dict[tuple[tuple[str, int], ...], list[str]] = {}
        for type_name in types_of(pool):
            found = known.lookup(type_name)
            capacity, pool_warnings = _capacity(discovery, pool, found)
            warnings += (f"NodePool {name}: {each}" for each in pool_warnings)
            if capacity:
                by_count.setdefault(tuple(sorted(capacity.items())), []).append(type_name)
        for at, (amounts, types) in enumerate(sorted(by_count.items())):
            specs[f"plimsoll-{name}-{at}"] = {
                "requirements": [
                    {"key": NODEPOOL, "operator": "In", "values": [name]},
                    {"key": INSTANCE_TYPE, "operator": "In", "values": sorted(types)},
                ],
                "capacity": {resource: str(count) for resource, count in amounts},
            }
    return Overlays(specs, tuple(dict.fromkeys(warnings)))


def declare_overlays(overlays: Overlays, pools: Iterable[pulumi.Resource]) -> list[pulumi.Resource]:
    for line in overlays.warnings:
        pulumi.log.warn(line)
    needed = pulumi.ResourceOptions(depends_on=list(pools))
    return [
        k8s.apiextensions.CustomResource(
            name,
            api_version="karpenter.sh/v1alpha1",
            kind="NodeOverlay",
            metadata=metadata(name, skip_await=True),
            spec=spec,
            opts=needed,
        )
        for name, spec in overlays.specs.items()
    ]


def types_of(pool: NodePoolSpec) -> tuple[str, ...]:
    named = (each.values for each in pool.requirements if each.key == INSTANCE_TYPE and each.operator == "In")
    return tuple(dict.fromkeys(value for values in named for value in values))


def _capacity(
    discovery: GpuDiscoverySpec, pool: NodePoolSpec, found: InstanceType | None
) -> tuple[dict[str, int], list[str]]:
    """Devices of a node in addition to those that its type lists, by resource; and warnings on what is left out."""
    devices, pool_warnings = per_gpu(discovery, pool, found)
    if devices.pop(GPU_RESOURCE, 0):
        pool_warnings.append(_SAME_NAME)
    if devices and found is None:
        return {}, [*pool_warnings, "an instance type is not in the catalog, so its shared GPUs are not declared"]
    return {
        resource: count * (found.gpus if found is not None else 0) for resource, count in devices.items()
    }, pool_warnings


def per_gpu(
    discovery: GpuDiscoverySpec, pool: NodePoolSpec, found: InstanceType | None
) -> tuple[dict[str, int], list[str]]:
    """Devices that one GPU is announced as, by resource, if these are not whole GPUs; and warnings on what is left
    out."""
    devices, pool_warnings = {GPU_RESOURCE: 1}, list[str]()
    strategy = discovery.mig_strategy
    mig = _MIG.fullmatch(pool.labels.get(MIG_CONFIG, "")) if strategy in ("mixed", "single") else None
    if mig is not None:
        memory = found.known_memory_mib if found is not None else None
        slices = _slices(mig, memory / 1024) if memory is not None else 0
        if slices and strategy == "mixed":
            devices = {f"nvidia.com/mig-{mig[1]}": slices}
        elif slices > 1:
            devices, pool_warnings = {}, [_SINGLE]
        elif memory is None:
            why = "is not in the catalog" if found is None else "has GPUs whose memory is not known"
            pool_warnings.append(f"an instance type {why}, so its MIG slices are not declared")
    for way, each in _replicated(discovery, pool):
        name = str(each.get("name"))
        if each.get("devices", "all") != "all":
            pool_warnings.append(
                f"{way} of {name} is for some devices of a node only, so its replicas are not declared"
            )
        elif name in devices:
            devices[_announced(name, each)] = devices.pop(name) * each["replicas"]
    if devices.get(GPU_RESOURCE) == 1:
        del devices[GPU_RESOURCE]
    return devices, pool_warnings


def _replicated(discovery: GpuDiscoverySpec, pool: NodePoolSpec) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The resources of which the device plugin announces replicas on the pool's nodes, each with the way of sharing."""
    chosen = pool.labels.get(PLUGIN_CONFIG, discovery.config.default or "")
    text = discovery.config.map.get(chosen)
    try:
        sharing = (yaml.safe_load(text) or {}).get("sharing") or {} if text else {}
        for way in ("timeSlicing", "mps"):
            section = sharing.get(way) or {}
            for each in section.get("resources") or ():
                replicas = int(each.get("replicas") or 1)
                yield way, {"renameByDefault": section.get("renameByDefault"), **each, "replicas": replicas}
    except (yaml.YAMLError, AttributeError, TypeError, ValueError):
        raise PlimsollError(
            f"gpuDiscovery.config.map.{chosen}: it is no configuration of the device plugin",
            "write it as https://github.com/NVIDIA/k8s-device-plugin#configuration-option-details shows",
        ) from None


def _announced(name: str, replicated: Mapping[str, Any]) -> str:
    """The resource as which replicas of a resource are announced."""
    return replicated.get("rename") or (f"{name}.shared" if replicated["renameByDefault"] else name)


def _slices(profile: re.Match[str], gpu_gib: float) -> int:
    """Instances of a MIG profile on one GPU (NVIDIA's MIG user guide: supported profiles)."""
    if not gpu_gib:
        return 0
    if profile[4] == "me":
        return 1  # the media engines of a GPU are those of one instance
    most, parts = (4, 4) if gpu_gib <= _SMALL_GIB else (7, 8)
    memory_slices = max(1, round(int(profile[3]) / (gpu_gib / parts)))
    return min(most // int(profile[2]), parts // memory_slices)
