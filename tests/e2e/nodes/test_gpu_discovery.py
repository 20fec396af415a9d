"""GPU discovery on a real apiserver: a chart from a local path is rendered and applied; existing software is not
changed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.working_copy import CHECKOUT
from plimsoll.sandbox import Sandbox
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox
from tests.e2e.programs.stacks import Project

pytestmark = pytest.mark.e2e

CHART = CHECKOUT / "tests" / "charts" / "nvidia-device-plugin"
STACK = "gpus"
GPU_DISCOVERY = {
    "chart": str(CHART),
    "migStrategy": "mixed",
    "gfd": {"sleepInterval": "30s", "noTimestamp": True},
    "config": {"map": {"shared": "version: v1\n"}, "default": "shared"},
    "image": {"repository": "mirror.example/device-plugin"},
}
NODE_POOLS = {
    "gpu": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass"},
        "taints": [{"key": "sku", "value": "gpu"}],
    }
}
PLUGIN = "gpu-discovery-nvidia-device-plugin"
GFD = "gpu-discovery-gpu-feature-discovery"
NFD = "gpu-discovery-nfd-worker"


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("gpus", karpenter=True)


@pytest.fixture(scope="module")
def project(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(sandbox, tmp_path_factory.mktemp("gpus"))
    made.apply("sandbox-foundation")
    made.init(STACK)
    return made


@pytest.fixture
def admin(sandbox: Sandbox, kube: Callable[..., Kube]) -> Kube:
    return kube(sandbox)


def declare(project: Project, mode: str) -> str:
    """Deploys the stack in a mode; the output."""
    project.declare(
        STACK,
        layer="environment",
        environment={"nodeAutoProvisioning": mode},
        gpuDiscovery=GPU_DISCOVERY,
        nodePools=NODE_POOLS,
    )
    return project.up(STACK, "--skip-preview")


@pytest.fixture
def empty(project: Project) -> Iterator[Project]:
    """A project in which the stack is not deployed; it is destroyed after the test."""
    yield project
    project.destroy(STACK)


@pytest.fixture(scope="class")
def deployed(project: Project) -> Iterator[Project]:
    """The stack for existing nodes."""
    declare(project, "disabled")
    yield project
    project.destroy(STACK)


def daemons(admin: Kube) -> dict[str, dict[str, Any]]:
    found = admin.list("apps/v1", "DaemonSet", "gpu-discovery")
    return {each["metadata"]["name"]: each for each in found}


class TestOnExistingNodes:
    def test_existing_nodes_get_plugin_and_discovery_with_the_declared_values(
        self, deployed: Project, admin: Kube
    ) -> None:
        made = daemons(admin)
        assert set(made) == {PLUGIN, GFD, NFD}
        pod = made[GFD]["spec"]["template"]["spec"]
        container = pod["containers"][0]
        environment = {each["name"]: each.get("value") for each in container["env"]}
        assert environment["MIG_STRATEGY"] == "mixed"
        assert environment["GFD_SLEEP_INTERVAL"] == "30s"
        assert environment["GFD_NO_TIMESTAMP"] == "true"
        assert container["image"].startswith("mirror.example/device-plugin:")
        tolerated = {each["key"] for each in pod["tolerations"]}
        assert tolerated == {"CriticalAddonsOnly", "nvidia.com/gpu", "sku"}
        assert made[NFD]["spec"]["template"]["spec"]["tolerations"] == pod["tolerations"]
        config = admin.get("v1", "ConfigMap", "gpu-discovery-configs", "gpu-discovery")
        assert config is not None
        assert config["data"] == {"shared": "version: v1\n"}

    def test_a_second_update_recognizes_its_own_software(self, deployed: Project, admin: Kube) -> None:
        before = daemons(admin)
        output = declare(deployed, "disabled")
        assert "left alone" not in output
        assert {name: each["metadata"]["uid"] for name, each in daemons(admin).items()} == {
            name: each["metadata"]["uid"] for name, each in before.items()
        }

    def test_the_deletion_protection_covers_the_charts_objects(self, deployed: Project, admin: Kube) -> None:
        api = "plimsoll.dev/v1alpha1"
        admin.patch(api, "Environment", STACK, {"status": {"nodeClaims": 1}}, subresource="status")
        try:
            assert "still has 1 NodeClaims" in deployed.destroy(STACK, fails=True)
            assert set(daemons(admin)) == {PLUGIN, GFD, NFD}
        finally:
            admin.patch(api, "Environment", STACK, {"status": {"nodeClaims": 0}}, subresource="status")


def test_provisioned_nodes_get_only_the_plugin(empty: Project, admin: Kube) -> None:
    declare(empty, "enabled")
    assert set(daemons(admin)) == {PLUGIN}


def test_an_existing_device_plugin_is_not_changed(empty: Project, admin: Kube) -> None:
    labels = {"name": "theirs"}
    theirs = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "theirs/k8s-device-plugin:1"}]},
            },
        },
    }
    admin.apply(theirs)
    try:
        output = declare(empty, "disabled")
        assert set(daemons(admin)) == {GFD, NFD}
        assert "device plugin kube-system/nvidia-device-plugin-daemonset is left alone" in output
    finally:
        admin.delete("apps/v1", "DaemonSet", "nvidia-device-plugin-daemonset", "kube-system")
