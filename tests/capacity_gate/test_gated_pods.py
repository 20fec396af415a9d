"""Which pods get the gate at admission, as its CEL decides."""

from typing import Any

import cel
import pytest

from plimsoll.components import gate_policies
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.api import CapacityGateSpec
from plimsoll.model.cluster import VENDOR_RESOURCES

PLAIN: dict[str, Any] = {"name": "main", "image": "x"}
SHARE = {"annotations": {"gpu-fraction": "0.5"}}
CLAIM = {"resourceClaims": [{"name": "gpu"}]}


def gets_the_gate(spec: dict[str, Any], metadata: dict[str, Any] | None = None, *, whole_gpus: bool = True) -> bool:
    (made,) = gate_policies(CapacityGateSpec(namespaces=("team",), whole_gpus=whole_gpus)).values()
    pod = {"metadata": metadata or {}, "spec": {"containers": [PLAIN], **spec}}
    return all(cel.evaluate(each["expression"], {"object": pod}) for each in made.policy["matchConditions"])


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
@pytest.mark.parametrize("resource", [GPU_RESOURCE, *VENDOR_RESOURCES])
def test_whole_gpus_of_any_container_are_gated_if_the_setting_says_so(resource: str, containers: str) -> None:
    spec = {containers: [PLAIN, {**PLAIN, "resources": {"limits": {"cpu": "1", resource: "1"}}}]}
    assert gets_the_gate(spec)
    assert not gets_the_gate(spec, whole_gpus=False)


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_devices_of_a_class_are_gated_by_any_name_of_it(containers: str) -> None:
    """The scheduler makes the claim of a pod that requests `deviceclass.resource.kubernetes.io/...`."""
    limits = {"cpu": "1", "deviceclass.resource.kubernetes.io/gpu.nvidia.com": "1"}
    assert gets_the_gate({containers: [PLAIN, {**PLAIN, "resources": {"limits": limits}}]}, whole_gpus=False)
    assert not gets_the_gate({containers: [PLAIN, {**PLAIN, "resources": {"limits": {"cpu": "1"}}}]})


@pytest.mark.parametrize("whole_gpus", [False, True])
def test_shares_and_claims_are_gated_until_they_name_a_node(whole_gpus: bool) -> None:
    assert gets_the_gate({}, SHARE, whole_gpus=whole_gpus)
    assert gets_the_gate(CLAIM, whole_gpus=whole_gpus)
    assert not gets_the_gate(CLAIM | {"nodeName": "n1"}, SHARE, whole_gpus=whole_gpus)
    assert not gets_the_gate({}, whole_gpus=whole_gpus)
