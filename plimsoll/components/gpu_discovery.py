"""GpuDiscovery: NVIDIA's device plugin and GPU Feature Discovery."""

from collections.abc import Mapping
from typing import Any, Final, TypedDict

import pulumi
import pulumi_kubernetes as k8s

from plimsoll.components.declaring import Component, fields_of, known, metadata, object_of, valid, with_later
from plimsoll.components.node_pool import TaintArgs
from plimsoll.components.specs import ExistingGpuSoftware, GpuDiscoverySpec
from plimsoll.model.api import DeclaredTaint


class DevicePluginArgs(TypedDict, total=False):
    """The device plugin, which announces `nvidia.com/gpu` to the kubelet."""

    enabled: bool


class GfdArgs(TypedDict, total=False):
    """GPU Feature Discovery, which writes the `nvidia.com/gpu.*` labels."""

    mode: str
    """auto: on if node auto-provisioning is disabled."""
    no_timestamp: pulumi.Input[bool]
    """Whether the label `nvidia.com/gfd.timestamp` is left out."""
    sleep_interval: pulumi.Input[str]
    """Time between two runs; absent: 60s."""


class PluginConfigArgs(TypedDict, total=False):
    """Named configurations of the device plugin: time-slicing, MPS, MIG."""

    map: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Configurations (YAML) by name."""
    default: pulumi.Input[str]
    """Name of the configuration for nodes without the label `nvidia.com/device-plugin.config`."""


class ImageArgs(TypedDict, total=False):
    """The chart's image."""

    repository: pulumi.Input[str]
    tag: pulumi.Input[str]
    pull_policy: pulumi.Input[str]


class CdiArgs(TypedDict, total=False):
    """The Container Device Interface."""

    nvidia_hook_path: pulumi.Input[str]
    """nvidia-cdi-hook or nvidia-ctk on the nodes."""


class TolerationArgs(TypedDict, total=False):
    """A toleration of pods (core/v1)."""

    key: pulumi.Input[str]
    operator: pulumi.Input[str]
    value: pulumi.Input[str]
    effect: pulumi.Input[str]
    toleration_seconds: pulumi.Input[int]


class ExistingGpuSoftwareArgs(TypedDict, total=False):
    """Components that the cluster already runs, each as `namespace/name`."""

    device_plugin: list[str]
    gfd: list[str]
    nfd: list[str]
    gpu_operator: list[str]


class GpuDiscoveryArgs(TypedDict, total=False):
    """Where the chart comes from, which parts of it are installed, and its values.

    Arguments with plain types determine which objects are declared. The others may be Outputs.
    """

    auto_provisioning: bool
    """Whether node auto-provisioning is enabled; if it is not, the mode `auto` of GFD installs GFD."""
    existing: ExistingGpuSoftwareArgs
    pool_taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    """Taints of the pools that hold the GPUs: passed on as tolerations."""
    enabled: bool
    chart: str
    """A chart's name in `repository`, an `oci://` reference, or a local path that starts with `.` or `/`."""
    repository: str
    """URL of a chart repository; absent: NVIDIA's, where `chart` is a name."""
    version: str
    """An exact version, not a range, so that a preview and a later update render the same objects."""
    namespace: str
    create_namespace: bool
    allow_default_namespace: bool
    nvidia_device_plugin: DevicePluginArgs
    gfd: GfdArgs
    nfd: str
    """Node Feature Discovery, which turns GFD's findings into labels. auto: with GFD, unless the cluster has one."""
    mig_strategy: pulumi.Input[str]
    node_overlays: pulumi.Input[bool]
    config: pulumi.Input[PluginConfigArgs]
    runtime_class_name: pulumi.Input[str]
    tolerations: pulumi.Input[list[pulumi.Input[TolerationArgs]]]
    """In addition to the chart's own and to those for the taints of the NodePools."""
    node_selector: pulumi.Input[dict[str, pulumi.Input[str]]]
    affinity: pulumi.Input[dict[str, Any]]
    """Absent: the chart's own; a node needs the label `feature.node.kubernetes.io/pci-10de.present` or
    `nvidia.com/gpu.present`."""
    image: pulumi.Input[ImageArgs]
    image_pull_secrets: pulumi.Input[list[pulumi.Input[str]]]
    device_list_strategy: pulumi.Input[str]
    """envvar, volume-mounts, cdi-annotations, cdi-cri; several with commas."""
    cdi: pulumi.Input[CdiArgs]


_AROUND: Final = ("auto_provisioning", "existing", "pool_taints")
"""Arguments that are not fields of GpuDiscoverySpec."""
_PLAIN: Final = (
    *(f"existing.{part}" for part in ExistingGpuSoftware.model_fields),
    *("auto_provisioning", "existing", "enabled", "chart", "repository", "version", "namespace", "create_namespace"),
    *("allow_default_namespace", "nvidia_device_plugin.enabled", "gfd.mode", "nfd"),
)


class GpuDiscovery(Component):
    """The chart without the components that the cluster already has; no chart if nothing is missing.

    GPU Feature Discovery runs privileged, so the namespace admits privileged pods. `chart` is the Chart, or None.
    Raises InvalidArgumentError if an argument is invalid.
    """

    device_plugin: pulumi.Output[bool]
    """Whether this component installs the device plugin."""
    feature_discovery: pulumi.Output[bool]
    """Whether this component installs GPU Feature Discovery."""
    left_alone: pulumi.Output[list[str]]
    """One line for each component that the cluster already has."""

    def __init__(self, name: str, args: GpuDiscoveryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("GpuDiscovery", name, args, opts)
        kind = "GpuDiscovery"
        known(kind, name, args, *_PLAIN)
        declared = fields_of(self._args, *_AROUND)
        spec = valid(GpuDiscoverySpec, kind, name, with_later(declared))
        existing = valid(ExistingGpuSoftware, kind, f"{name}.existing", self.given("existing", {}))
        parts = spec.parts(auto_provisioning=self.given("auto_provisioning", False), existing=existing)

        def values(fields: Mapping[str, Any]) -> dict[str, Any]:
            chart = valid(GpuDiscoverySpec, kind, name, fields["spec"])
            taints = [valid(DeclaredTaint, kind, f"{name}.pool_taints", taint) for taint in fields["pool_taints"]]
            return chart.values(parts, taints)

        made = object_of({"spec": declared, "pool_taints": self.given("pool_taints", [])}, values)
        self.chart = self._chart(name, spec, made) if any(parts) else None
        left_alone = spec.left_alone(existing)
        for line in left_alone:
            pulumi.log.info(line, self)
        self.device_plugin = pulumi.Output.from_input(parts.device_plugin)
        self.feature_discovery = pulumi.Output.from_input(parts.gfd)
        self.left_alone = pulumi.Output.from_input(left_alone)
        self.register_outputs(
            {
                "devicePlugin": self.device_plugin,
                "featureDiscovery": self.feature_discovery,
                "leftAlone": self.left_alone,
            }
        )

    def _chart(self, name: str, spec: GpuDiscoverySpec, values: pulumi.Input[dict[str, Any]]) -> "k8s.helm.v4.Chart":
        namespaces = []
        if spec.create_namespace:
            labels: dict[str, pulumi.Input[str]] = {"pod-security.kubernetes.io/enforce": "privileged"}
            namespaces.append(
                k8s.core.v1.Namespace(
                    self.named(spec.namespace),
                    metadata=metadata(spec.namespace, labels=labels),
                    opts=self.child(former_name=spec.namespace),
                )
            )
        return k8s.helm.v4.Chart(
            name,
            name=name,
            chart=spec.chart,
            version=spec.chart_version,
            repository_opts={"repo": spec.chart_repository} if spec.chart_repository else None,
            namespace=spec.namespace,
            values=values,
            # The update does not wait for its pods: their nodes may not exist yet.
            skip_await=True,
            opts=self.child(*namespaces),
        )
