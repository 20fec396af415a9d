"""Which pods with a node's name the policy of placement takes for pods that use a device, as its CEL decides."""

from typing import Any

import cel
import pytest

from plimsoll.cluster.pods import known_devices
from plimsoll.components.admission import placement_policy
from plimsoll.labels import is_device

DECLARED = "example.com/gpu-half"
"""Such as `demand.sharedDevices` may name."""
OF_A_CLASS = "deviceclass.resource.kubernetes.io/gpu"
"""The name that Kubernetes gives every DeviceClass."""
PLAIN = {
    "cpu": "1",
    "memory": "1Gi",
    "ephemeral-storage": "1Gi",
    "hugepages-2Mi": "4Mi",
    "kubernetes.io/batch-cpu": "1000",
    "node.kubernetes.io/batch-memory": "1Gi",
}


def uses_devices(*containers: dict[str, Any], **spec: Any) -> bool:
    variables = {each["name"]: each["expression"] for each in placement_policy()["policy"]["variables"]}
    assert "variables.devices" in variables["named"], "a pod with a node's name is refused for them"
    pod = {"metadata": {"name": "squat"}, "spec": {"nodeName": "n1", "containers": list(containers), **spec}}
    return bool(cel.evaluate(variables["devices"], {"object": pod}))


def a_container(**amounts: dict[str, str]) -> dict[str, Any]:
    return {"name": "main", "image": "x", "resources": amounts}


@pytest.mark.parametrize(
    "resource", [DECLARED, OF_A_CLASS, *(each.resource.replace("*", "x") for each in known_devices())]
)
def test_devices_of_any_vendor_are_devices(resource: str) -> None:
    assert is_device(resource)
    assert uses_devices(a_container(limits={**PLAIN, resource: "1"}))


def test_devices_count_in_each_container_and_by_requests_alone() -> None:
    plain, using = a_container(limits=PLAIN), a_container(requests={"amd.com/gpu": "1"})
    assert uses_devices(plain, using)
    assert uses_devices({"name": "main"}, initContainers=[{"name": "first"}, using])


def test_pods_without_devices_may_name_their_node() -> None:
    plain = a_container(limits=PLAIN, requests=PLAIN)
    assert not any(map(is_device, PLAIN))
    assert not uses_devices(plain, {"name": "main"}, a_container(), initContainers=[plain])
