"""KAI's sharing annotations: each violation is reported once, with its field."""

from typing import Any

import pytest

from plimsoll.cluster.pods import read_request
from plimsoll.model.cluster import Pod
from tests.policy_rules.manifests import GPU, a_deployment, a_pod, broken, findings

FRACTION = "metadata.annotations[gpu-fraction]"
MEMORY = "metadata.annotations[gpu-memory]"
DEVICES = "metadata.annotations[gpu-fraction-num-devices]"


@pytest.mark.parametrize(
    ("annotations", "gpus", "expected"),
    [
        ({}, None, []),
        ({}, 1, []),
        ({"gpu-fraction": "0.5"}, None, []),
        ({"gpu-fraction": ".25"}, None, []),
        ({"gpu-fraction": "1e-1"}, None, []),
        ({"gpu-fraction": "0.999"}, 0, []),
        ({"gpu-memory": "2000"}, None, []),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, None, []),
        ({"gpu-memory": "2000", "gpu-fraction-num-devices": "2"}, None, []),
        ({"gpu-fraction": "1.5"}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-fraction": "1"}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-fraction": "0"}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-fraction": "-0.5"}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-fraction": "50%"}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-fraction": "0,5"}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-fraction": ""}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-fraction": " 0.5"}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-fraction": "nan"}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-fraction": 0.5}, None, [("gpu-share-fraction", FRACTION)]),
        ({"gpu-memory": "2Gi"}, None, [("gpu-share-memory", MEMORY)]),
        ({"gpu-memory": "0"}, None, [("gpu-share-memory", MEMORY)]),
        ({"gpu-memory": "-1"}, None, [("gpu-share-memory", MEMORY)]),
        ({"gpu-memory": "1.5"}, None, [("gpu-share-memory", MEMORY)]),
        ({"gpu-memory": 2000}, None, [("gpu-share-memory", MEMORY)]),
        ({"gpu-fraction-num-devices": "2"}, None, [("gpu-share-devices", DEVICES)]),
        ({"gpu-fraction-num-devices": "2"}, 2, [("gpu-share-devices", DEVICES)]),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}, None, [("gpu-share-devices", DEVICES)]),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "1.5"}, None, [("gpu-share-devices", DEVICES)]),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2000"}, None, [("gpu-share-devices", DEVICES)]),
        ({"gpu-fraction": "0.5", "gpu-memory": "2000"}, None, [("gpu-share-one-amount", MEMORY)]),
        ({"gpu-fraction": "0.5"}, 1, [("gpu-share-no-whole-gpu", f"spec.containers[0].resources.limits[{GPU}]")]),
        ({"gpu-memory": "2000"}, "2", [("gpu-share-no-whole-gpu", f"spec.containers[0].resources.limits[{GPU}]")]),
    ],
)
def test_shares_of_a_pod(annotations: dict[str, str], gpus: Any, expected: list[tuple[str, str]]) -> None:
    assert broken(a_pod(annotations, gpus)) == expected


def test_a_template_is_checked_like_its_pods() -> None:
    assert broken(a_deployment(a_pod({"gpu-fraction": "1.5"}))) == [
        ("gpu-share-fraction", f"spec.template.{FRACTION}"),
    ]


def test_the_message_names_object_field_value_and_what_to_change() -> None:
    (found,) = findings(a_pod({"gpu-fraction": "1.5"}))
    assert found.message.startswith("Pod research/train: gpu-fraction is '1.5', ")
    assert GPU in found.message


def test_a_whole_gpu_in_requests_and_limits_is_one_finding() -> None:
    pod = a_pod({"gpu-fraction": "0.5"}, 1)
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"] = dict(resources["limits"])
    assert [rule for rule, _ in broken(pod)] == ["gpu-share-no-whole-gpu"]


@pytest.mark.parametrize(
    ("resource", "refused"),
    [
        ("nvidia.com/mig-1g.10gb", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mlnxnics", True),
        ("amd.com/gpu", True),
        ("gpu.intel.com/i915", True),
        ("aws.amazon.com/neuroncore", True),
        ("volcano.sh/vgpu-memory", True),
        ("nvidia.com/hostdev", False),
        ("rdma/hca", False),
        ("amd.com/vnic", False),
    ],
)
def test_no_accelerator_is_requested_beside_a_share(resource: str, refused: bool) -> None:
    """As the planner reads pods."""
    annotations = {"gpu-fraction": "0.5"}
    pod = a_pod(annotations)
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
    assert bool(broken(pod)) == refused
    spec = {"metadata": {"name": "pod", "annotations": annotations}, "spec": pod["spec"]}
    assert (read_request(Pod.read(spec)).refusal is not None) == refused
