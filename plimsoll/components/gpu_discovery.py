"""GpuDiscovery: NVIDIA's device plugin and GPU Feature Discovery."""

from collections.abc import Mapping
from typing import Any, Final

import pulumi

from plimsoll.components.args import GpuDiscoveryArgs
from plimsoll.components.declaring import Component, fields_of, known, metadata, object_of, valid, with_later
from plimsoll.components.specs import ExistingGpuSoftware, GpuDiscoverySpec
from plimsoll.kubernetes_sdk import k8s
from plimsoll.model.api import DeclaredTaint

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

    def _chart(self, name: str, spec: GpuDiscoverySpec, values: pulumi.Input[dict[str, Any]]) -> Any:
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
