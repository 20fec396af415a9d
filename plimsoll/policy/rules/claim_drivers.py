"""Rules on what the nodes of NVIDIA's driver for Dynamic Resource Allocation need, and on what Karpenter is told of
it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from plimsoll.labels import GPU_PRESENT, GROUP
from plimsoll.model.meta import Finding, Severity, identify, section
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, annotations_of, is_kind, items, join, kind_of, name_of, text
from plimsoll.policy.pod_templates import pod_templates
from plimsoll.policy.rule import Family, Rule
from plimsoll.policy.rules.chart_versions import charts

NODE_CLASS_GROUP: Final = "karpenter.k8s.aws"
_SHARING: Final = "karpenter.k8s.aws/nvidia-consumable-capacity"
"""Annotation of an EC2NodeClass: how NVIDIA's driver shares GPUs, in the words of its chart. Absent: not
(karpenter.sh/docs/tasks/dra, 1.15)."""
_NOT_SHARED: Final = "disabled"
_CHART: Final = "dra-driver-nvidia-gpu"
_VARIABLE: Final = "CONSUMABLE_SHARES"
"""By which the chart tells the driver its value `consumableShares` (driver 0.5)."""
_DRIVER: Final = "gpu.nvidia.com"
_PCI_PRESENT: Final = "feature.node.kubernetes.io/pci-10de.present"
"""The driver's pods run where this label, of Node Feature Discovery, or `nvidia.com/gpu.present` is `true`."""


def _unlabelled(manifests: Sequence[Manifest], _: PolicyContext, __: Any) -> Iterator[Finding]:
    claimed = {
        text(section(each, "spec"), "nodePool"): name_of(each)
        for each in manifests
        if is_kind(each, GROUP, "NodeProfile") and text(section(each, "spec", "claimDevices"), "driver") == _DRIVER
    }
    for manifest in manifests:
        profile = claimed.get(name_of(manifest)) if is_kind(manifest, "karpenter.sh", "NodePool") else None
        labels = section(manifest, "spec", "template", "metadata", "labels")
        if profile is not None and not any(labels.get(each) == "true" for each in (GPU_PRESENT, _PCI_PRESENT)):
            yield _finding(
                manifest,
                join("spec.template.metadata.labels", GPU_PRESENT),
                "node-pool-runs-claim-driver",
                f"by NodeProfile {profile!r}, pods claim the GPUs of its nodes, and NVIDIA's driver runs on nodes with "
                f"the label {GPU_PRESENT}=true, or the one of Node Feature Discovery: add the label, unless Node "
                "Feature Discovery runs on its nodes",
            )


def _shared_otherwise(manifests: Sequence[Manifest], _: PolicyContext, __: Any) -> Iterator[Finding]:
    """Only where one way of sharing is known: several are those of several clusters."""
    modes = {mode for each in manifests for mode in _modes(each)}
    if len(modes) != 1:
        return
    (mode,) = modes
    for manifest in manifests:
        told = annotations_of(manifest).get(_SHARING) if is_kind(manifest, NODE_CLASS_GROUP, "EC2NodeClass") else None
        if told is not None and told != mode:
            yield _finding(
                manifest,
                join("metadata.annotations", _SHARING),
                "node-class-shares-as-driver",
                f"Karpenter is told {str(told)!r:.40}, and the driver's consumableShares is {mode!r}: nodes of this "
                "class do not have the devices that Karpenter plans with; set both to the same",
            )


def _modes(manifest: Manifest) -> Iterator[str]:
    """How the object lets NVIDIA's driver share GPUs."""
    if kind_of(manifest) == "DaemonSet":
        for template in pod_templates(manifest):
            for _, container in template.containers():
                yield from (
                    text(each, "value") for _, each in items(container, "env") if text(each, "name") == _VARIABLE
                )
    elif any(chart.name.rpartition("/")[2] == _CHART for chart in charts(manifest)):
        values = _values(manifest)
        if values is not None:
            yield str(values.get("consumableShares") or _NOT_SHARED)


def _values(manifest: Manifest) -> Mapping[str, Any] | None:
    """The values of the object's one chart; None where they may be elsewhere, too."""
    spec = section(manifest, "spec")
    if kind_of(manifest) == "HelmRelease":
        return section(spec, "values") if not spec.get("valuesFrom") else None
    if kind_of(manifest) == "Application":
        helm = section(spec, "source", "helm")
        return section(helm, "valuesObject") if not {"values", "valueFiles", "parameters"} & set(helm) else None
    return section(manifest, "values") if not manifest.get("valueYamlFiles") else None


def _finding(manifest: Manifest, field: str, rule: str, message: str) -> Finding:
    return Finding(
        kind=kind_of(manifest),
        namespace="",
        name=name_of(manifest),
        field=field,
        rule=rule,
        severity=Severity.WARNING,
        message=f"{identify(manifest)}: {message}",
    )


RULES: Final = (
    Rule(
        "node-pool-runs-claim-driver",
        Family.CLAIMS,
        "NodePools whose GPUs are claimed have the label by which NVIDIA's driver runs on their nodes.",
        f"Add the label {GPU_PRESENT}=true to the template, or run Node Feature Discovery.",
        ("NodePool", "NodeProfile"),
        check_all=_unlabelled,
        severity=Severity.WARNING,
        loop=False,
    ),
    Rule(
        "node-class-shares-as-driver",
        Family.CLAIMS,
        f"The annotation {_SHARING} of an EC2NodeClass is the consumableShares of NVIDIA's driver.",
        "Set both to the same.",
        ("EC2NodeClass", "objects with a pod template", "HelmRelease", "Application", "Chart and Release of Pulumi"),
        check_all=_shared_otherwise,
        severity=Severity.WARNING,
        loop=False,
    ),
)
"""Rules on NVIDIA's driver for claims."""
