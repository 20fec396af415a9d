"""CPU, memory and disk that a pod needs besides its GPUs: a Workspace is refused before a node is bought for it."""

from typing import Any

import pytest

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import KnownNodeProfile
from plimsoll.model.cluster import Node
from plimsoll.plan import validate
from tests.builders import NC24, a_gpu_node, a_node, a_node_pool, a_snapshot, a_template, a_workspace, an_environment


def with_amounts(node: Node, **amounts: str) -> Node:
    named = {name.replace("_", "-"): amount for name, amount in amounts.items()}
    return node.model_copy(update={"allocatable": {"nvidia.com/gpu": "1", **named}})


def judged(*objects: Any, nap: bool = True, **environment: Any) -> Verdict:
    [verdict] = validate(a_snapshot(*objects, environment=an_environment(nap=nap, **environment)))
    return verdict


def requesting(**requests: str) -> dict[str, Any]:
    return a_template(resources={"requests": {name.replace("_", "-"): each for name, each in requests.items()}})


def a_profile(node_pool: str, **allocatable: str) -> KnownNodeProfile:
    spec = {"nodePool": node_pool, "instanceType": NC24, "allocatable": allocatable}
    return KnownNodeProfile.read({"metadata": {"name": "profile"}, "spec": spec})


@pytest.mark.parametrize(
    ("requests", "accepted"),
    [
        ({"cpu": "23"}, True),
        ({"cpu": "206"}, False),
        ({"cpu": "24"}, False),
        ({"memory": "190Gi"}, True),
        ({"memory": "1500Gi"}, False),
        ({"ephemeral_storage": "5Ti"}, True),
    ],
)
def test_templates_beyond_the_catalogs_figures_of_a_type_are_refused(requests: dict[str, str], accepted: bool) -> None:
    verdict = judged(a_workspace(instance_type=NC24, template=requesting(**requests)))
    assert verdict.reason is (Reason.ACCEPTED if accepted else Reason.INVALID_SPEC), verdict.message
    assert accepted or next(iter(requests)) in verdict.message.replace("CPUs", "cpu")


def test_nodes_of_the_type_count_more_than_the_catalog() -> None:
    workspace = a_workspace(instance_type=NC24, template=requesting(cpu="23900m"))
    plain = a_node("a", None, instance_type=NC24)
    assert not judged(workspace).accepted
    assert judged(workspace, with_amounts(plain, cpu="23950m")).accepted
    assert not judged(workspace, with_amounts(plain, cpu="22")).accepted
    larger = with_amounts(a_node("b", None, instance_type=NC24), cpu="24")
    assert judged(workspace, with_amounts(plain, cpu="22"), larger).accepted


def test_what_a_kubelet_has_not_measured_is_not_known() -> None:
    nodes = with_amounts(a_node("a", None, instance_type=NC24), cpu="0", ephemeral_storage="0")
    assert judged(a_workspace(instance_type=NC24, template=requesting(cpu="23")), nodes).accepted
    assert judged(a_workspace(instance_type=NC24, preset="phi-4"), nodes).accepted


def test_what_a_node_profile_declares_of_the_pools_nodes_counts() -> None:
    workspace = a_workspace(instance_type=NC24, template=requesting(cpu="23900m"))
    pool = a_node_pool("gpus", [NC24])
    assert judged(workspace, pool, a_profile("gpus", cpu="24")).accepted
    assert not judged(workspace, pool, a_profile("others", cpu="24")).accepted


def test_files_beyond_the_disk_of_new_nodes_are_refused_where_the_disk_is_known() -> None:
    workspace, pool = a_workspace(instance_type=NC24, preset="phi-4"), a_node_pool("gpus", [NC24])
    assert judged(workspace, pool).accepted
    small = judged(workspace, pool, a_profile("gpus", **{"ephemeral-storage": "20Gi"}))
    assert small.reason is Reason.INVALID_SPEC and "inference.weights" in small.message
    assert judged(workspace, pool, a_profile("gpus", **{"ephemeral-storage": "28Gi"})).accepted
    elsewhere = with_amounts(
        a_node("n", None, instance_type=NC24, more_labels={"karpenter.sh/nodepool": "others"}), ephemeral_storage="20Gi"
    )
    assert judged(workspace, pool, elsewhere).accepted


@pytest.mark.parametrize(
    ("weights", "accepted"),
    [
        (None, False),
        ({"emptyDir": {}}, False),
        ({"emptyDir": {"medium": "Memory"}}, True),
        ({"hostPath": {"path": "/mnt/nvme"}}, True),
        ({"persistentVolumeClaim": {"claimName": "models"}}, True),
    ],
)
def test_only_files_on_the_nodes_disk_need_it(weights: dict[str, Any] | None, accepted: bool) -> None:
    node = with_amounts(a_node(), ephemeral_storage="20Gi", memory="64Gi")
    settings = {} if weights is None else {"weights": {"volumeSource": weights}}
    verdict = judged(a_workspace(preset="phi-4"), node, nap=False, **settings)
    assert verdict.reason is (Reason.ACCEPTED if accepted else Reason.NO_USABLE_NODES), verdict.message


def test_files_in_memory_need_that_memory() -> None:
    node = with_amounts(a_node(), memory="24Gi")
    weights = {"volumeSource": {"emptyDir": {"medium": "Memory"}}}
    verdict = judged(a_workspace(preset="phi-4"), node, nap=False, weights=weights)
    assert verdict.reason is Reason.NO_USABLE_NODES and "memory" in verdict.message


def test_of_existing_nodes_only_large_enough_ones_are_used() -> None:
    small = with_amounts(a_node("small"), cpu="8", memory="64Gi")
    large = with_amounts(a_node("large"), cpu="64", memory="256Gi")
    workspace = a_workspace(template=requesting(cpu="32", memory="100Gi"))
    assert judged(workspace, small, large, nap=False).node_names == ("large",)
    alone = judged(workspace, small, nap=False)
    assert alone.reason is Reason.NO_USABLE_NODES and "inference.template" in alone.message


@pytest.mark.parametrize("nap", [False, True])
def test_a_quantity_that_is_none_refuses_the_template(nap: bool) -> None:
    workspace = a_workspace(instance_type=NC24 if nap else None, template=requesting(cpu="many"))
    verdict = judged(workspace, a_node(), nap=nap)
    assert verdict.reason is Reason.INVALID_SPEC and "'many'" in verdict.message


@pytest.mark.parametrize("nap", [True, False])
@pytest.mark.parametrize(("resource", "files"), [("cpu", False), ("memory", True)])
def test_files_are_no_remedy_where_cpus_are_lacking(nap: bool, resource: str, files: bool) -> None:
    preset_pods = {"resources": {"requests": {resource: "100000Gi" if resource == "memory" else "1000"}}}
    wanted: dict[str, Any] = {"instance_type": NC24, "selector": {}} if nap else {}
    workspace = a_workspace(preset="phi-4-mini-instruct", **wanted)
    node = a_gpu_node(more_labels={"pool": "a"})
    [verdict] = validate(a_snapshot(workspace, node, environment=an_environment(nap=nap, presetPods=preset_pods)))
    assert not verdict.accepted
    assert "pods.resources" in verdict.message or resource == "memory"
    assert ("inference.weights" in verdict.message) == files
