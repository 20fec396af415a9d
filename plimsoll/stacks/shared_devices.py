"""Shared devices without NodeOverlays: the settings of the Environment and of NodePools with which trigger pods request
nodes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.cluster.catalog import Catalog
from plimsoll.components.specs import GpuDiscoverySpec
from plimsoll.labels import GPU_RESOURCE, REQUEST
from plimsoll.model.api import DemandProvisioner
from plimsoll.model.karpenter import NodePoolSpec
from plimsoll.stacks.node_overlays import per_gpu, types_of
from plimsoll.stacks.settings import Settings

_HELD: Final = (
    f"parts of GPUs are announced as {GPU_RESOURCE}, so that nodes are requested only for pods that require the "
    "NodePool and that the capacity gate holds: set wholeGpus in plimsoll:capacityGate, or give the devices another "
    "name (renameByDefault of the device plugin)"
)


class Devices(NamedTuple):
    entries: list[dict[str, Any]]
    """`spec.demand.sharedDevices` of the Environment."""
    warnings: tuple[str, ...]


def shared_devices(
    discovery: GpuDiscoverySpec, pools: Mapping[str, NodePoolSpec], catalog: Catalog | None = None
) -> Devices:
    """The devices as which the GPUs of each NodePool's types are announced, by the declared sharing."""
    known = catalog or Catalog.builtin()
    entries: list[dict[str, Any]] = []
    warnings: list[str] = []
    for name, pool in pools.items():
        alike: dict[tuple[str, int], list[str]] = {}
        for type_name in types_of(pool) if pool.replicas is None else ():
            devices, pool_warnings = per_gpu(discovery, pool, known.lookup(type_name))
            warnings += (f"NodePool {name}: {each}" for each in pool_warnings)
            for each in devices.items():
                alike.setdefault(each, []).append(type_name)
        entries += (
            {"nodePool": name, "instanceTypes": sorted(types), "resource": resource, "perGpu": count}
            for (resource, count), types in sorted(alike.items())
        )
    return Devices(entries, tuple(dict.fromkeys(warnings)))


def with_shared_devices(settings: Settings, values: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The values of a stack with the shared devices and with the label that trigger pods select; and warnings.
    Unchanged if NodeOverlays are declared, nothing is shared, or capacity is requested in another way."""
    discovery, demand = settings.gpu_discovery, settings.environment.demand
    if demand.shared_devices:
        return values, _not_held(settings, ((each.node_pool, each.resource) for each in demand.shared_devices))
    if (
        discovery is None
        or not discovery.enabled
        or discovery.node_overlays
        or demand.provisioner is not DemandProvisioner.TRIGGER_POD
    ):
        return values, ()
    pools = {pool.name or key: pool for key, pool in settings.node_pools.items()}
    found = shared_devices(discovery, pools)
    sharing = {each["nodePool"] for each in found.entries}
    if not sharing:
        return values, found.warnings
    warnings = found.warnings + _not_held(settings, ((each["nodePool"], each["resource"]) for each in found.entries))
    environment = dict(values["environment"])
    environment["demand"] = {**environment["demand"], "sharedDevices": found.entries}
    node_pools = {
        key: _with_request(given) if (settings.node_pools[key].name or key) in sharing else given
        for key, given in values["nodePools"].items()
    }
    return {**values, "environment": environment, "nodePools": node_pools}, warnings


def _not_held(settings: Settings, devices: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Warnings of devices, by NodePool and resource, whose pods the capacity gate does not hold."""
    if settings.capacity_gate is not None and settings.capacity_gate.whole_gpus:
        return ()
    pools = {pool for pool, resource in devices if resource == GPU_RESOURCE}
    return tuple(f"NodePool {pool}: {_HELD}" for pool in sorted(pools))


def _with_request(pool: Mapping[str, Any]) -> dict[str, Any]:
    """The NodePool with a label that it leaves open. Each trigger pod selects a value of its own, so that it gets a
    node of its own."""
    declared = [*pool.get("requirements", ())]
    if any(each.get("key") == REQUEST for each in declared):
        return dict(pool)
    return {**pool, "requirements": [*declared, {"key": REQUEST, "operator": "Exists"}]}
