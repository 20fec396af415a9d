"""Devices that are parts of GPUs: time-slicing, MPS and MIG, as the Environment declares them."""

from typing import Any

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import NodeOverlay
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from tests.builders import a_gpu_node, a_node_pool, a_queue, a_snapshot, a_waiting_pod, an_environment
from tests.capacity_gate.pods import held, released
from tests.demand.plans import on_new, on_nodes, only, planned, refused, requests_of, types

SHARED, SLICE = "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"
KAI = "kai-scheduler"
A10G_4, A100_8 = "g5.12xlarge", "p4de.24xlarge"
OPEN = {"key": "plimsoll.dev/request", "operator": "Exists"}
HALVES = a_node_pool("halves", (A10G_4,), requirements=[OPEN])
SLICES = a_node_pool("slices", (A100_8,), requirements=[OPEN])


def declared(*more: dict[str, Any], provisioner: str = "trigger-pod") -> Environment:
    devices = [
        {"nodePool": "halves", "resource": SHARED, "perGpu": 4},
        {"nodePool": "slices", "instanceTypes": [A100_8], "resource": SLICE, "perGpu": 7},
        *more,
    ]
    return an_environment(demand={"provisioner": provisioner, "sharedDevices": devices})


def asking(name: str, resource: str = SHARED, count: int | str = 1, *, beside: Any = None, **more: Any) -> Pod:
    pod = a_waiting_pod(name, **{"scheduler": "default-scheduler", **more})
    resources = {"limits": {resource: str(count), **(beside or {})}}
    return pod.model_copy(update={"containers": ({"name": "main", "resources": resources},)})


def several(count: int, resource: str = SHARED, **more: Any) -> list[Pod]:
    return [asking(f"pod-{n:02}", resource, **more) for n in range(count)]


def a_shared_node(name: str, devices: int) -> Node:
    labels = {"karpenter.sh/nodepool": "halves"}
    node = a_gpu_node(name, "NVIDIA-A10G", gpus=4, instance_type=A10G_4, more_labels=labels)
    return node.model_copy(update={"allocatable": node.allocatable | {"nvidia.com/gpu": "0", SHARED: str(devices)}})


def plan(*objects: Any, environment: Environment | None = None, **more: Any) -> DemandPlan:
    return planned(*objects, HALVES, SLICES, environment=environment or declared(), **more)


@pytest.mark.parametrize(
    ("resource", "pods", "nodes"),
    [(SHARED, 1, 1), (SHARED, 16, 1), (SHARED, 17, 2), (SLICE, 7, 1), (SLICE, 56, 1), (SLICE, 57, 2)],
)
def test_a_pod_counts_as_a_part_of_a_gpu_on_nodes_with_the_devices(resource: str, pods: int, nodes: int) -> None:
    found = plan(*several(pods, resource))
    assert types(found) == [A10G_4 if resource == SHARED else A100_8] * nodes
    assert {node.resource for node in found.nodes} == {resource}
    assert len(on_new(found)) == pods


@pytest.mark.parametrize(
    ("each", "pods", "nodes"), [(6, 2, 1), (8, 2, 1), (8, 3, 2), (16, 1, 1), (3, 5, 1), (5, 3, 1), (3, 6, 2), (5, 4, 2)]
)
def test_devices_of_a_pod_may_be_of_different_gpus(each: int, pods: int, nodes: int) -> None:
    found = plan(*[asking(f"pod-{n}", count=each) for n in range(pods)])
    assert len(found.nodes) == nodes
    assert found.least_gpus == 4 * nodes
    assert only(found).least_gpus == -(-pods * each // 4)
    assert all(len(node.held) <= node.gpus for node in found.nodes)


def test_more_devices_than_any_node_has_are_refused() -> None:
    found = plan(asking("pod", count=17))
    assert not found.nodes
    assert "request fewer GPUs of one node" in refused(found)["uid-pod"]


def test_free_devices_are_used_first_and_running_pods_count() -> None:
    running = [asking(f"running-{n}", node="node", reason=None, phase="Running") for n in range(14)]
    found = plan(a_shared_node("node", 16), *running, *several(3))
    assert len(on_nodes(found)) == 2
    assert types(found) == [A10G_4]


def test_free_devices_of_different_gpus_serve_one_pod() -> None:
    running = [asking(f"running-{n}", node="node", reason=None, phase="Running", count=3) for n in range(3)]
    found = plan(a_shared_node("node", 16), *running, asking("pod", count=5), asking("late", count=2))
    assert on_nodes(found) == {"uid-pod": "node", "uid-late": "node"}
    assert not found.nodes


def test_what_is_requested_is_not_requested_again() -> None:
    pods = several(20)
    requested = requests_of(plan(*pods).nodes)
    again = plan(*pods, requested=requested)
    assert not again.nodes
    assert again.needed == {each.name for each in requested}


def test_pods_with_fractions_and_whole_gpus_use_other_nodes() -> None:
    """A node with shared devices has no whole GPUs."""
    share = a_waiting_pod("share", gpu_fraction="0.5")
    found = plan(share, *several(1))
    assert types(found) == [A10G_4]
    assert "announce nvidia.com/gpu.shared, nvidia.com/mig-1g.10gb" in refused(found)["uid-share"]
    assert types(plan(share, a_node_pool("plain", ("g5.xlarge",)), *several(1))) == [A10G_4, "g5.xlarge"]


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        (asking("pod", beside={SLICE: "1"}), SLICE),
        (asking("pod", beside={"nvidia.com/gpu": "1"}), SHARED),
        (asking("pod", gpu_fraction="0.5"), SHARED),
        (asking("pod", count="half"), SHARED),
        (asking("pod", count=-1), SHARED),
        (asking("pod", "nvidia.com/gpu", count=-1), "nvidia.com/gpu"),
    ],
)
def test_two_requests_and_invalid_numbers_are_refused_by_name(pod: Pod, field: str) -> None:
    assert field in refused(plan(pod))["uid-pod"]


def test_without_the_open_request_label_no_node_is_requested() -> None:
    """Karpenter would place the trigger pods of several nodes on one node."""
    bare = a_node_pool("halves", (A10G_4,))
    found = planned(*several(1), bare, environment=declared())
    assert not found.nodes
    assert "{key: plimsoll.dev/request, operator: Exists}" in only(found).warnings[0]


@pytest.mark.parametrize("count", [1, "half", -1])
@pytest.mark.parametrize("resource", [SHARED, SLICE, "nvidia.com/mig-3g.40gb.shared"])
def test_undeclared_devices_are_refused_by_name(resource: str, count: int | str) -> None:
    share = a_waiting_pod("share", gpu_fraction="0.5")
    undeclared = asking("pod", resource, count=count)
    found = planned(undeclared, share, a_node_pool("plain", ("g5.xlarge",)), environment=an_environment())
    assert refused(found).keys() == {"uid-pod"}
    assert f"{resource} is neither declared in spec.demand.sharedDevices" in refused(found)["uid-pod"]
    assert on_new(found) == {"uid-share"}
    assert types(found) == ["g5.xlarge"]


def test_devices_that_a_node_overlay_lists_are_left_to_karpenter() -> None:
    overlay = NodeOverlay(name="shared", capacity={SHARED: "16"})
    assert not planned(asking("pod"), overlay, HALVES, environment=an_environment()).demands
    other = planned(asking("pod", SLICE), overlay, HALVES, environment=an_environment())
    assert refused(other).keys() == {"uid-pod"}


@pytest.mark.parametrize("amount", ["0", "-1", 0, "0.5"])
def test_devices_of_which_a_node_overlay_adds_none_are_not_left_to_karpenter(amount: str | int) -> None:
    overlay = NodeOverlay.read({"metadata": {"name": "shared"}, "spec": {"capacity": {SHARED: amount}}})
    found = planned(asking("pod"), overlay, HALVES, environment=an_environment())
    assert refused(found).keys() == {"uid-pod"}


@pytest.mark.parametrize("amount", ["many", "", True, [1]])
def test_a_node_overlay_whose_amount_is_no_number_is_an_error(amount: object) -> None:
    overlay = {"kind": "NodeOverlay", "metadata": {"name": "shared"}, "spec": {"capacity": {SHARED: amount}}}
    with pytest.raises(PlimsollError, match=rf"NodeOverlay shared: spec\.capacity\.{SHARED}: "):
        NodeOverlay.read(overlay)


def test_a_node_overlay_that_comes_or_goes_counts_at_once() -> None:
    planner = DemandPlanner()
    bare = a_snapshot(asking("pod"), environment=an_environment())
    overlay = NodeOverlay(name="shared", capacity={SHARED: "16"})
    assert refused(planner.plan(bare))
    assert not planner.plan(bare.model_copy(update={"node_overlays": (overlay,)})).demands
    assert refused(planner.plan(bare))


@pytest.mark.parametrize(
    "pod",
    [
        asking("pod", count=0),
        asking("pod", "example.com/nic"),
        asking("pod", reason="SchedulingGated"),
        asking("pod", node="node", reason=None, phase="Running"),
    ],
)
def test_no_other_pod_is_refused_for_undeclared_devices(pod: Pod) -> None:
    assert not planned(pod, HALVES, environment=an_environment()).demands


def test_devices_beside_undeclared_ones_are_refused_by_both_names() -> None:
    """No node is known that has both."""
    whole = planned(asking("pod", beside={"nvidia.com/gpu": "1"}), HALVES, environment=an_environment())
    declared_one = plan(asking("pod", beside={"nvidia.com/mig-3g.40gb": "1"}))
    for found, field in ((whole, "nvidia.com/gpu '1'"), (declared_one, "nvidia.com/mig-3g.40gb '1'")):
        assert not found.nodes
        assert field in refused(found)["uid-pod"]
        assert f"{SHARED} '1'" in refused(found)["uid-pod"]


@pytest.mark.parametrize(("resource", "blocked"), [(SHARED, False), (SLICE, True)])
def test_queues_count_only_mig_slices(resource: str, blocked: bool) -> None:
    root, queue = a_queue("root", parent=""), a_queue("team", limit=0)
    found = plan(*several(1, resource, queue="team", scheduler=KAI), root, queue)
    assert bool(only(found).queue_refusal) == blocked


def test_running_mig_slices_count_in_their_queue() -> None:
    in_queue = {"queue": "team", "scheduler": KAI}
    running = [asking(f"running-{n}", SLICE, node="node", reason=None, phase="Running", **in_queue) for n in range(2)]
    pods = several(2, SLICE, **in_queue)
    found = plan(*running, *pods, a_queue("root", parent=""), a_queue("team", limit=3))
    assert (len(on_new(found)), len(refused(found))) == (1, 1)


def test_limits_count_whole_gpus() -> None:
    pool = a_node_pool("halves", (A10G_4,), requirements=[OPEN], limits={"nvidia.com/gpu": 4})
    assert len(refused(planned(*several(17), pool, environment=declared()))) == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"nodePool": "halves", "resource": "nvidia.com/other", "perGpu": 2}, "two entries are for the same nodes"),
        ({"nodePool": "x", "resource": "shared", "perGpu": 2}, "extended resource"),
        ({"nodePool": "x", "resource": SHARED, "perGpu": 0}, "greater than or equal to 1"),
    ],
)
def test_contradictory_settings_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(PlimsollError, match=message):
        declared(more)


def test_only_trigger_pods_request_them() -> None:
    with pytest.raises(PlimsollError, match="trigger-pod"):
        declared(provisioner="capacity-buffer")


NAMED_ALIKE = {"nodePool": "alike", "resource": "nvidia.com/gpu", "perGpu": 4}
ALIKE = a_node_pool("alike", (A10G_4,), requirements=[OPEN])
IN_POOL: dict[str, Any] = {"selector": {"karpenter.sh/nodepool": "alike"}}


def replicas(count: int, *, each: int = 1, **more: Any) -> list[Pod]:
    """Pods that the capacity gate holds, for replicas that are named as whole GPUs are."""
    return [held(asking(f"pod-{n:02}", "nvidia.com/gpu", each, **{**IN_POOL, **more})) for n in range(count)]


def plan_alike(*objects: Any, **more: Any) -> DemandPlan:
    return planned(*objects, ALIKE, environment=declared(NAMED_ALIKE), **more)


def a_node_of_replicas(name: str, devices: int = 16) -> Node:
    more = {"karpenter.sh/nodepool": "alike", "nvidia.com/gpu.replicas": "4"}
    node = a_gpu_node(name, "NVIDIA-A10G", gpus=4, instance_type=A10G_4, more_labels=more)
    return node.model_copy(update={"allocatable": node.allocatable | {"nvidia.com/gpu": str(devices)}})


@pytest.mark.parametrize(("pods", "each", "nodes"), [(16, 1, 1), (17, 1, 2), (2, 8, 1), (3, 8, 2), (1, 16, 1)])
def test_replicas_with_the_name_of_whole_gpus_count_as_parts(pods: int, each: int, nodes: int) -> None:
    found = plan_alike(*replicas(pods, each=each))
    assert types(found) == [A10G_4] * nodes
    assert (len(on_new(found)), found.least_gpus) == (pods, 4 * nodes)
    again = plan_alike(*replicas(pods, each=each), requested=requests_of(found.nodes))
    assert not again.nodes


def test_free_replicas_with_the_name_of_whole_gpus_are_used_first() -> None:
    running = [asking(f"running-{n}", "nvidia.com/gpu", node="node", reason=None, phase="Running") for n in range(14)]
    found = plan_alike(a_node_of_replicas("node"), *running, *replicas(3))
    assert len(on_nodes(found)) == 2
    assert types(found) == [A10G_4]


def test_a_pod_whose_gate_was_just_removed_keeps_its_replicas() -> None:
    first, second = replicas(2, each=12)
    assert on_nodes(plan_alike(a_node_of_replicas("node"), released(first), second)) == {"uid-pod-00": "node"}


@pytest.mark.parametrize(
    "pod",
    [
        asking("pod", "nvidia.com/gpu", **IN_POOL),
        held(asking("pod", "nvidia.com/gpu")),
        held(asking("pod", "nvidia.com/gpu", selector={"karpenter.sh/nodepool": "plain"})),
        held(asking("pod", "nvidia.com/gpu", affinity=[{"key": "zone", "operator": "Exists"}])),
    ],
    ids=["without the gate", "any NodePool", "another NodePool", "another label"],
)
def test_other_pods_request_whole_gpus(pod: Pod) -> None:
    found = plan_alike(pod, a_node_pool("plain", ("g5.xlarge",)))
    assert only(found).whole_gpu_pods.keys() == {"uid-pod"}
    assert not found.nodes


@pytest.mark.parametrize("values", [["alike"], ["alike", "plain"]])
def test_an_affinity_selects_the_node_pool_too(values: list[str]) -> None:
    affinity = [{"key": "karpenter.sh/nodepool", "operator": "In", "values": values}]
    found = plan_alike(*replicas(1, selector=None, affinity=affinity))
    assert types(found) == ([A10G_4] if len(values) == 1 else [])


def test_in_their_queue_replicas_with_the_name_of_whole_gpus_count_as_whole() -> None:
    pods = replicas(3, queue="team", scheduler=KAI)
    found = plan_alike(*pods, a_queue("root", parent=""), a_queue("team", limit=2))
    assert (len(on_new(found)), len(refused(found))) == (2, 1)
