"""GpuDiscoverySpec: NVIDIA's device plugin and GPU Feature Discovery, from one chart."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from plimsoll.model.api import DeclaredTaint
from plimsoll.model.karpenter import Duration
from plimsoll.model.meta import Declared

REPOSITORY: Final = "https://nvidia.github.io/k8s-device-plugin"
CHART: Final = "nvidia-device-plugin"
VERSION: Final = "0.17.2"

_EXACT_VERSION: Final = re.compile(r"v?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_CHART_TOLERATIONS: Final = (
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
)
"""The chart's default tolerations, which a list in its values replaces."""

# YAML 1.1 reads a bare `on` and `off` as booleans.
Switch = Annotated[
    Literal["auto", "on", "off"],
    BeforeValidator(lambda value: {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value),
]


class DeclaredToleration(Declared):
    """A toleration of pods (core/v1)."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class DevicePlugin(Declared):
    """The device plugin, which announces `nvidia.com/gpu` to the kubelet."""

    enabled: bool = True


class Gfd(Declared):
    """GPU Feature Discovery, which writes the `nvidia.com/gpu.*` labels."""

    mode: Switch = "auto"
    """auto: on if node auto-provisioning is disabled."""
    no_timestamp: bool | None = None
    """Whether the label `nvidia.com/gfd.timestamp` is left out."""
    sleep_interval: Duration | None = None
    """Time between two runs; absent: 60s."""


class PluginConfig(Declared):
    """Named configurations of the device plugin: time-slicing, MPS, MIG."""

    map: dict[str, str] = Field(default_factory=dict)
    """Configurations (YAML) by name."""
    default: str | None = None
    """Name of the configuration for nodes without the label `nvidia.com/device-plugin.config`."""

    @model_validator(mode="after")
    def _default_is_there(self) -> "PluginConfig":
        if self.default is not None and self.default not in self.map:
            raise ValueError(f"default {self.default!r} is not in the map ({', '.join(sorted(self.map)) or 'empty'})")
        return self


class Image(Declared):
    """The chart's image."""

    repository: str | None = None
    tag: str | None = None
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None


class Cdi(Declared):
    """The Container Device Interface."""

    nvidia_hook_path: str | None = None
    """nvidia-cdi-hook or nvidia-ctk on the nodes."""


class ExistingGpuSoftware(Declared):
    """Components that the cluster already runs and that are therefore not installed. The names of DaemonSets are for
    messages only."""

    device_plugin: tuple[str, ...] = ()
    gfd: tuple[str, ...] = ()
    nfd: tuple[str, ...] = ()
    gpu_operator: tuple[str, ...] = ()
    """The operator installs all three itself."""


class Parts(NamedTuple):
    """Which parts of the chart are installed."""

    device_plugin: bool
    gfd: bool
    nfd: bool


class GpuDiscoverySpec(Declared):
    """Where the chart comes from, which parts of it are installed, and its values."""

    enabled: bool = True
    chart: str = CHART
    """A chart's name in `repository`, an `oci://` reference, or a local path that starts with `.` or `/`."""
    repository: str | None = None
    """URL of a chart repository; absent: NVIDIA's, where `chart` is a name."""
    version: str = VERSION
    """An exact version, not a range, so that a preview and a later update render the same objects."""
    namespace: str = "gpu-discovery"
    create_namespace: bool = True
    allow_default_namespace: bool = False
    nvidia_device_plugin: DevicePlugin = DevicePlugin()
    gfd: Gfd = Gfd()
    nfd: Switch = "auto"
    """Node Feature Discovery, which turns GFD's findings into labels. auto: with GFD, unless the cluster has one."""
    mig_strategy: Literal["none", "single", "mixed"] | None = None
    config: PluginConfig = PluginConfig()
    node_overlays: bool = True
    """Whether the stack declares NodeOverlays for shared GPUs, which Karpenter reads with its gate NodeOverlay."""
    runtime_class_name: str | None = None
    tolerations: tuple[DeclaredToleration, ...] = ()
    """In addition to the chart's own and to those for the taints of the NodePools."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    affinity: dict[str, Any] | None = None
    """Absent: the chart's own; a node needs the label `feature.node.kubernetes.io/pci-10de.present` or
    `nvidia.com/gpu.present`."""
    image: Image = Image()
    image_pull_secrets: tuple[str, ...] = ()
    device_list_strategy: str | None = None
    """envvar, volume-mounts, cdi-annotations, cdi-cri; several with commas."""
    cdi: Cdi = Cdi()

    @model_validator(mode="after")
    def _source(self) -> "GpuDiscoverySpec":
        if not _EXACT_VERSION.fullmatch(self.version):
            raise ValueError(f"version {self.version!r} is not exact: give one such as {VERSION}")
        if self.repository is not None and not self._from_repository:
            raise ValueError("repository can be set only with a chart name, not with an oci:// reference or a path")
        if self.create_namespace and self.namespace in ("default", "kube-system"):
            raise ValueError(f"namespace {self.namespace!r} exists already: set createNamespace to false")
        if self.namespace == "default" and not self.allow_default_namespace:
            raise ValueError(
                "namespace 'default' must not be used for system software: set another one, or allowDefaultNamespace"
            )
        return self

    @property
    def _from_repository(self) -> bool:
        return not self.chart.startswith(("oci://", ".", "/"))

    @property
    def chart_repository(self) -> str | None:
        """URL of the repository; None for an OCI reference and a local path."""
        return (self.repository or REPOSITORY) if self._from_repository else None

    @property
    def chart_version(self) -> str | None:
        """The version to request; None for a local path, whose chart has a version itself."""
        return None if self.chart.startswith((".", "/")) else self.version

    def parts(self, *, auto_provisioning: bool, existing: ExistingGpuSoftware) -> Parts:
        """The parts to install: those that are enabled and that the cluster does not have."""
        if not self.enabled or existing.gpu_operator:
            return Parts(False, False, False)
        plugin = self.nvidia_device_plugin.enabled and not existing.device_plugin
        gfd = (self.gfd.mode == "on" or (self.gfd.mode == "auto" and not auto_provisioning)) and not existing.gfd
        nfd = self.nfd == "on" or (self.nfd == "auto" and gfd and not existing.nfd)
        return Parts(plugin, gfd, nfd)

    def left_alone(self, existing: ExistingGpuSoftware) -> list[str]:
        """A line for each component that the cluster already has."""
        found = {
            "GPU operator": existing.gpu_operator,
            "device plugin": existing.device_plugin,
            "GPU Feature Discovery": existing.gfd,
            "Node Feature Discovery": existing.nfd,
        }
        return [f"{what} {', '.join(names)} is left alone" for what, names in found.items() if names]

    def values(self, parts: Parts, pool_taints: Iterable[DeclaredTaint]) -> dict[str, Any]:
        """The chart's values."""
        tolerations = self._tolerations(pool_taints)
        values: dict[str, Any] = {
            "devicePlugin": {"enabled": parts.device_plugin},
            "gfd": {"enabled": parts.gfd},
            "nfd": {"enabled": parts.nfd},
            "tolerations": tolerations,
        }
        if parts.nfd:
            values["nfd"]["worker"] = {"tolerations": tolerations}
        discovery = {
            name: value
            for name, value in (("noTimestamp", self.gfd.no_timestamp), ("sleepInterval", self.gfd.sleep_interval))
            if value is not None
        }
        # Documented under `gfd`, but the templates of 0.17 read them at the top.
        values["gfd"] |= discovery
        values |= discovery
        declared = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name in (
            "migStrategy",
            "runtimeClassName",
            "nodeSelector",
            "affinity",
            "image",
            "deviceListStrategy",
            "cdi",
        ):
            if declared.get(name):
                values[name] = declared[name]
        if self.config.map:
            values["config"] = declared["config"]
        if self.image_pull_secrets:
            values["imagePullSecrets"] = [{"name": name} for name in self.image_pull_secrets]
        if self.allow_default_namespace:
            values["allowDefaultNamespace"] = True
        return values

    def _tolerations(self, pool_taints: Iterable[DeclaredTaint]) -> list[dict[str, Any]]:
        tolerations: list[dict[str, Any]] = list(_CHART_TOLERATIONS)
        for taint in pool_taints:
            toleration = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
            if toleration not in tolerations:
                tolerations.append(toleration)
        return tolerations + [each.complete_manifest() for each in self.tolerations]
