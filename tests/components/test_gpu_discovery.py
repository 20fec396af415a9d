"""Which parts of the chart are installed: those that are requested and that the cluster lacks."""

from typing import Any, Unpack

import pytest

from plimsoll.components import ExistingGpuSoftwareArgs, GpuDiscovery, GpuDiscoveryArgs
from tests.components.declaring import declared, manifest

CHART = "Chart"


def parts(**args: Unpack[GpuDiscoveryArgs]) -> tuple[bool, bool, bool] | None:
    """Device plugin, GFD and NFD in the chart's values; None if there is no chart."""
    resources = declared(lambda: GpuDiscovery("gpu-discovery", args))
    if not any(each["type"].endswith(":Chart") for each in resources):
        assert resources == [], "a namespace without a chart"
        return None
    values = manifest(resources, CHART)["values"]
    return (values["devicePlugin"]["enabled"], values["gfd"]["enabled"], values["nfd"]["enabled"])


@pytest.mark.parametrize(
    ("auto_provisioning", "mode", "gfd"),
    [
        (False, "auto", True),
        (True, "auto", False),
        (False, "off", False),
        (True, "on", True),
        (True, True, True),  # a bare `on` of YAML 1.1
        (False, False, False),
    ],
)
def test_gfd_is_on_by_default_only_for_existing_nodes(auto_provisioning: bool, mode: Any, gfd: bool) -> None:
    assert parts(auto_provisioning=auto_provisioning, gfd={"mode": mode}) == (True, gfd, gfd)


def test_device_plugin_is_installed_unless_switched_off() -> None:
    assert parts() == (True, True, True)
    assert parts(nvidia_device_plugin={"enabled": False}) == (False, True, True)


@pytest.mark.parametrize(
    ("existing", "installed"),
    [
        ({"device_plugin": ["kube-system/nvidia-device-plugin-daemonset"]}, (False, True, True)),
        ({"gfd": ["kube-system/gpu-feature-discovery"]}, (True, False, False)),
        ({"nfd": ["nfd/nfd-worker"]}, (True, True, False)),
        ({"gpu_operator": ["gpu-operator/gpu-operator"]}, None),
        ({"device_plugin": ["a/b"], "gfd": ["a/c"]}, None),
    ],
)
def test_existing_parts_are_not_installed(
    existing: ExistingGpuSoftwareArgs, installed: tuple[bool, bool, bool] | None
) -> None:
    assert parts(existing=existing) == installed


def test_without_parts_there_is_no_chart() -> None:
    assert parts(enabled=False) is None
    assert parts(auto_provisioning=True, nvidia_device_plugin={"enabled": False}) is None


def test_taints_of_node_pools_are_tolerated_in_addition_to_the_charts() -> None:
    args: GpuDiscoveryArgs = {
        "pool_taints": [{"key": "sku", "value": "gpu"}, {"key": "nvidia.com/gpu"}, {"key": "sku", "value": "big"}]
    }
    resources = declared(lambda: GpuDiscovery("gpu-discovery", args))
    values = manifest(resources, CHART)["values"]
    tolerations = [
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "sku", "operator": "Exists", "effect": "NoSchedule"},
    ]
    assert values["tolerations"] == tolerations
    assert values["nfd"]["worker"]["tolerations"] == tolerations


@pytest.mark.parametrize(
    ("args", "chart", "version", "repository"),
    [
        ({}, "nvidia-device-plugin", "0.17.2", "https://nvidia.github.io/k8s-device-plugin"),
        ({"repository": "https://charts.example"}, "nvidia-device-plugin", "0.17.2", "https://charts.example"),
        (
            {"chart": "oci://charts.example/plugin", "version": "0.18.0"},
            "oci://charts.example/plugin",
            "0.18.0",
            None,
        ),
        ({"chart": "./charts/plugin"}, "./charts/plugin", None, None),
    ],
)
def test_the_chart_comes_from_a_repository_a_registry_or_a_path(
    args: GpuDiscoveryArgs, chart: str, version: str | None, repository: str | None
) -> None:
    inputs = manifest(declared(lambda: GpuDiscovery("gpu-discovery", args)), CHART)
    assert (inputs["chart"], inputs.get("version")) == (chart, version)
    assert inputs.get("repositoryOpts", {}).get("repo") == repository
