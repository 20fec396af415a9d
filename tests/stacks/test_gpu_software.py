"""GPU software of a cluster is detected by its DaemonSets; what the stack itself installed does not count."""

from typing import Any

import pytest

from plimsoll.components.specs import ExistingGpuSoftware
from plimsoll.stacks import classify


def a_daemon(
    name: str, image: str = "", command: str = "", namespace: str = "kube-system", **metadata: Any
) -> dict[str, Any]:
    container = {"name": "main", "image": image, "command": [command] if command else []}
    return {
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def found(*daemons: dict[str, Any], operators: tuple[dict[str, Any], ...] = ()) -> ExistingGpuSoftware:
    return classify(daemons, operators, release="gpu-discovery", namespace="gpu-discovery")


@pytest.mark.parametrize(
    ("daemon", "what"),
    [
        (a_daemon("nvidia-device-plugin-daemonset", "nvcr.io/nvidia/k8s-device-plugin:v0.14.0"), "device_plugin"),
        (a_daemon("plugin", "mirror.example/nvidia-gpu-device-plugin:1"), "device_plugin"),
        (a_daemon("labels", "nvcr.io/nvidia/k8s-device-plugin:v0.17.2", "gpu-feature-discovery"), "gfd"),
        (a_daemon("gpu-feature-discovery", "any:1"), "gfd"),
        (a_daemon("nfd-worker", "any:1"), "nfd"),
        (a_daemon("w", "registry.k8s.io/nfd/node-feature-discovery:v0.16.0"), "nfd"),
        (
            a_daemon("nvidia-device-plugin-daemonset", labels={"app.kubernetes.io/managed-by": "gpu-operator"}),
            "gpu_operator",
        ),
        (a_daemon("gpu-feature-discovery", ownerReferences=[{"kind": "ClusterPolicy"}]), "gpu_operator"),
    ],
)
def test_each_software_is_detected(daemon: dict[str, Any], what: str) -> None:
    existing = found(daemon)
    expected = f"kube-system/{daemon['metadata']['name']}"
    assert existing == ExistingGpuSoftware(**{what: (expected,)})


def test_an_operator_without_daemons_counts() -> None:
    operator = {"metadata": {"name": "gpu-operator", "namespace": "gpu"}}
    assert found(operators=(operator,)).gpu_operator == ("gpu/gpu-operator",)


def test_other_daemons_do_not_count() -> None:
    daemons = [a_daemon("node-exporter", "prom/node-exporter"), a_daemon("amd-device-plugin", "rocm/k8s-device-plugin")]
    assert found(*daemons) == ExistingGpuSoftware()


def test_software_of_the_stack_itself_does_not_count() -> None:
    labels = {"app.kubernetes.io/instance": "gpu-discovery"}
    ours = a_daemon("a-nvidia-device-plugin", namespace="gpu-discovery", labels=labels)
    theirs = a_daemon("b-nvidia-device-plugin", namespace="other", labels=labels)
    assert found(ours, theirs).device_plugin == ("other/b-nvidia-device-plugin",)


@pytest.mark.parametrize(
    ("manager", "existing"),
    [
        ("pulumi-kubernetes-0a1b2c3d", ()),
        ("pulumi-kubernetes", ()),
        ("helm", ("former/nvidia-device-plugin",)),
        ("argocd-controller", ("former/nvidia-device-plugin",)),
    ],
)
def test_software_of_the_stack_in_its_former_namespace_does_not_count(manager: str, existing: tuple[str, ...]) -> None:
    """Otherwise a change of the namespace would uninstall it and install nothing."""
    labels = {"app.kubernetes.io/instance": "gpu-discovery"}
    fields = [{"manager": "kube-controller-manager"}, {"manager": manager, "operation": "Apply"}]
    daemon = a_daemon("nvidia-device-plugin", namespace="former", labels=labels, managedFields=fields)
    assert found(daemon).device_plugin == existing
    assert found({**daemon, "metadata": {**daemon["metadata"], "labels": {}}}).device_plugin, "of another release"
