"""GpuDiscovery: NVIDIA's device plugin and GPU Feature Discovery."""

from typing import Any, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.helm.v4 import Chart

from plimsoll.components.declaration import child_of, fields_of, metadata, valid
from plimsoll.components.node_pool import TaintArgs
from plimsoll.components.specs import ExistingGpuSoftware, GpuDiscoverySpec
from plimsoll.model.api import DeclaredTaint


class DevicePluginArgs(TypedDict, total=False):
    enabled: bool


class GfdArgs(TypedDict, total=False):
    mode: str
    no_timestamp: bool
    sleep_interval: str


class PluginConfigArgs(TypedDict, total=False):
    map: dict[str, str]
    default: str


class ImageArgs(TypedDict, total=False):
    repository: str
    tag: str
    pull_policy: str


class CdiArgs(TypedDict, total=False):
    nvidia_hook_path: str


class TolerationArgs(TypedDict, total=False):
    key: str
    operator: str
    value: str
    effect: str
    toleration_seconds: int


class ExistingGpuSoftwareArgs(TypedDict, total=False):
    """Names of what the cluster runs already, each as `namespace/name`."""

    device_plugin: list[str]
    gfd: list[str]
    nfd: list[str]
    gpu_operator: list[str]


class GpuDiscoveryArgs(TypedDict, total=False):
    """The fields of plimsoll.model.gpu_discovery.GpuDiscoverySpec, where they are explained, and what is around.

    Plain values: which objects there are depends on them.
    """

    auto_provisioning: bool
    """Whether the environment provisions nodes by itself; GFD's `auto` is on where it does not."""
    existing: ExistingGpuSoftwareArgs
    pool_taints: list[TaintArgs]
    """Taints of the pools that hold the GPUs: passed on as tolerations."""
    enabled: bool
    chart: str
    repository: str
    version: str
    namespace: str
    create_namespace: bool
    allow_default_namespace: bool
    nvidia_device_plugin: DevicePluginArgs
    gfd: GfdArgs
    nfd: str
    mig_strategy: str
    config: PluginConfigArgs
    runtime_class_name: str
    tolerations: list[TolerationArgs]
    node_selector: dict[str, str]
    affinity: dict[str, Any]
    image: ImageArgs
    image_pull_secrets: list[str]
    device_list_strategy: str
    cdi: CdiArgs


class GpuDiscovery(pulumi.ComponentResource):
    """The chart, with what the cluster has by other means left out; nothing at all where nothing is missing.

    GPU Feature Discovery runs privileged, so the namespace admits privileged pods.
    Raises InvalidObjectError where an argument does not fit.
    """

    device_plugin: pulumi.Output[bool]
    gfd: pulumi.Output[bool]
    left_alone: pulumi.Output[list[str]]
    """A line on each thing that the cluster already has."""

    def __init__(self, name: str, args: GpuDiscoveryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plimsoll:index:GpuDiscovery", name, {}, opts)
        kind = "GpuDiscovery"
        spec = valid(GpuDiscoverySpec, kind, name, fields_of(args, "auto_provisioning", "existing", "pool_taints"))
        existing = valid(ExistingGpuSoftware, kind, f"{name}.existing", args.get("existing", {}))
        taints = [valid(DeclaredTaint, kind, f"{name}.pool_taints", taint) for taint in args.get("pool_taints", [])]
        parts = spec.parts(auto_provisioning=args.get("auto_provisioning", False), existing=existing)
        if any(parts):
            self._chart(name, spec, spec.values(parts, taints))
        left_alone = spec.left_alone(existing)
        for line in left_alone:
            pulumi.log.info(line, self)
        self.device_plugin = pulumi.Output.from_input(parts.device_plugin)
        self.gfd = pulumi.Output.from_input(parts.gfd)
        self.left_alone = pulumi.Output.from_input(left_alone)
        self.register_outputs({"device_plugin": self.device_plugin, "gfd": self.gfd, "left_alone": self.left_alone})

    def _chart(self, name: str, spec: GpuDiscoverySpec, values: dict[str, Any]) -> None:
        namespaces = []
        if spec.create_namespace:
            labels: dict[str, pulumi.Input[str]] = {"pod-security.kubernetes.io/enforce": "privileged"}
            namespaces.append(
                Namespace(spec.namespace, metadata=metadata(spec.namespace, labels=labels), opts=child_of(self))
            )
        Chart(
            name,
            name=name,
            chart=spec.chart,
            version=spec.chart_version,
            repository_opts={"repo": spec.chart_repository} if spec.chart_repository else None,
            namespace=spec.namespace,
            values=values,
            # Its pods come up on nodes that may not be there yet.
            skip_await=True,
            opts=child_of(self, *namespaces),
        )
