"""The environment stack: Environment, NodePools, queues, Workspaces of one cluster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pulumi

from plimsoll.components import (
    CapacityGate,
    Environment,
    EnvironmentArgs,
    GpuDiscovery,
    GpuDiscoveryArgs,
    Guard,
    Monitoring,
    ShareBinder,
    Workspace,
)
from plimsoll.components.specs import GpuDiscoverySpec
from plimsoll.stacks import objects
from plimsoll.stacks.gpu_software import find_gpu_software
from plimsoll.stacks.mutation_effect import await_effect
from plimsoll.stacks.node_overlays import declare_overlays, node_overlays
from plimsoll.stacks.objects import arguments, options
from plimsoll.stacks.settings import Settings
from plimsoll.stacks.shared_devices import with_shared_devices
from plimsoll.stacks.training import declare_admission, declare_runtimes


def declare(settings: Settings, values: Mapping[str, Any]) -> None:
    """Declares the resources of `values`; `settings` is the parsed form of `values`."""
    values, warnings = with_shared_devices(settings, values)
    for line in warnings:
        pulumi.log.warn(line)
    name = settings.environment.name or pulumi.get_stack()
    given = arguments(values.get("environment", {}))
    environment = Environment(
        name, cast("EnvironmentArgs", {"name": name, **given}), options(settings.environment, name)
    )
    made: list[pulumi.Resource] = [environment]
    if settings.gpu_discovery is not None:
        made.append(_gpu_discovery(settings, settings.gpu_discovery, values["gpuDiscovery"]))
    if settings.share_binder is not None:
        binder = ShareBinder("share-binder", values["shareBinder"])
        await_effect(binder.mutations)
        made.append(binder)
    if settings.monitoring is not None:
        made.append(Monitoring("alerts", values["monitoring"]))
    declared = objects.declare(settings, values)
    made += declared.all()
    discovery = settings.gpu_discovery
    if discovery is not None and discovery.enabled and discovery.node_overlays:
        pools = {pool.name or key: pool for key, pool in settings.node_pools.items()}
        made += declare_overlays(node_overlays(discovery, pools), declared.node_pools.values())
    if settings.capacity_gate is not None:
        needed = pulumi.ResourceOptions(depends_on=[*declared.namespaces.values()])
        gate = CapacityGate("capacity-gate", values["capacityGate"], needed)
        await_effect(gate.mutations)
        made.append(gate)
    for key, workspace in settings.workspaces.items():
        needs = (environment, declared.namespaces.get(workspace.namespace), declared.queues.get(workspace.queue or ""))
        made.append(
            Workspace(key, arguments(values["workspaces"][key]), options(workspace, key, *needs, namespaced=True))
        )
    made += declare_runtimes(settings, values, declared.queues, declared.namespaces)
    made += declare_admission(settings)
    Guard(
        f"plimsoll-environment-{name}",
        {
            "layer": "environment",
            "environment": name,
            "explanation": "Cannot be deleted while capacity of an Environment exists: run `plimsoll destroy`.",
        },
        pulumi.ResourceOptions(depends_on=made),
    )
    pulumi.export("environment", environment.environment_name)
    pulumi.export("workspaces", sorted(each.name or key for key, each in settings.workspaces.items()))


def _gpu_discovery(settings: Settings, spec: GpuDiscoverySpec, declared: Mapping[str, Any]) -> GpuDiscovery:
    name = "gpu-discovery"
    existing = find_gpu_software(release=name, namespace=spec.namespace)
    taints = [taint for pool in settings.node_pools.values() for taint in (*pool.taints, *pool.startup_taints)]
    if settings.environment.auto_provisioning:
        taints += settings.environment.node_claims.taints
    around: dict[str, Any] = {
        "auto_provisioning": settings.environment.auto_provisioning,
        "existing": existing.manifest(),
        "pool_taints": [taint.complete_manifest() for taint in taints],
    }
    if spec.chart.startswith("."):
        # From the program's folder: where the provider runs is its own business.
        around["chart"] = str(Path(spec.chart).resolve())
    return GpuDiscovery(name, cast("GpuDiscoveryArgs", {**declared, **around}))
