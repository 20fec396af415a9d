"""What follows from a request, or from its refusal: demand, ledger, queues, binder, nodes in use and savings."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.ledger import GpuAccount, gpu_ledger
from plimsoll.cluster.pods import nodes_in_use, read_request
from plimsoll.cluster.queues import queue_usage
from plimsoll.cost import Prices, savings
from plimsoll.labels import QUEUE
from plimsoll.model.cluster import Pod
from plimsoll.packing import Milli
from tests.binding.cluster import Cluster
from tests.binding.cluster import a_gpu_node as a_node_of_the_binder
from tests.builders import a_gpu_node, a_node_pool, a_queue, a_snapshot, an_environment, placed
from tests.demand.plans import on_new, planned, refused
from tests.pod_requests.pods import ANNOTATIONS, FORMS, SLICE, TF, a_pod, layouts

HALF = ANNOTATIONS["fraction"]
L4 = a_node_pool("l4", ("g6.xlarge",))


def of_tensor_fusion(annotations: dict[str, str]) -> Pod:
    return a_pod(annotations, [{}], schedulerName="tensor-fusion-scheduler")


@pytest.mark.parametrize("vendor", ["AMD", "Ascend", "intel", "nvidia-like"])
def test_tensor_fusions_requests_for_other_vendors_are_refused_by_name(vendor: str) -> None:
    for request in ("vram-request", "tflops-limit", "dedicated-gpu"):
        given_vendor = {f"{TF}{request}": "4", f"{TF}vendor": vendor}
        found = planned(of_tensor_fusion(given_vendor), L4, environment=an_environment())
        assert not found.nodes
        assert f"{TF}vendor {vendor!r}" in refused(found)["uid-pod"]


@pytest.mark.parametrize("vendor", ["NVIDIA", "nvidia", "Nvidia", ""])
def test_a_request_for_gpus_of_nvidia_is_planned(vendor: str) -> None:
    request = {f"{TF}vram-request": "4Gi", f"{TF}vendor": vendor, f"{TF}isolation": "hard"}
    found = planned(of_tensor_fusion(request), L4, environment=an_environment())
    assert on_new(found) == {"uid-pod"}


@pytest.mark.parametrize(("key", "value"), [("isolation", "partitioned"), ("partition-id", "vir04")])
def test_tensor_fusions_partitions_are_refused_by_name(key: str, value: str) -> None:
    request = {f"{TF}vram-request": "4Gi", f"{TF}{key}": value}
    found = planned(of_tensor_fusion(request), L4, environment=an_environment())
    assert f"{TF}{key} {value!r}" in refused(found)["uid-pod"]


def test_a_vendor_without_a_request_is_no_demand() -> None:
    pod = of_tensor_fusion({f"{TF}vendor": "AMD"})
    assert not planned(pod, L4, environment=an_environment()).demands


@pytest.mark.parametrize(
    "resource",
    ["nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpu-10gb", "volcano.sh/vgpu-number", "aliyun.com/gpu-mem"],
)
def test_parts_in_forms_of_other_schedulers_are_refused_by_name(resource: str) -> None:
    for beside in ({}, {"nvidia.com/gpu": "1"}):
        pod = a_pod({}, [{"limits": {resource: "1", **beside}}])
        found = planned(pod, L4, environment=an_environment())
        assert not found.nodes
        assert f"{resource} '1'" in refused(found)["uid-pod"]


@pytest.mark.parametrize(
    "resources",
    [
        {"habana.ai/gaudi": "8"},
        {"google.com/tpu": "4", "amd.com/cpx_nps4": "1"},
    ],
)
def test_pods_that_ask_for_devices_of_other_vendors_only_are_no_demand(resources: dict[str, str]) -> None:
    assert not planned(a_pod({}, [{"limits": resources}]), L4, environment=an_environment()).demands


def test_whole_gpus_beside_other_devices_of_the_node_are_left_to_the_autoscaler() -> None:
    pod = a_pod({}, [{"limits": {"nvidia.com/gpu": "8", "nvidia.com/hostdev": "8", "nvidia.com/mlnxnics": "1"}}])
    (demand,) = planned(pod, L4, environment=an_environment()).demands
    assert demand.whole_gpu_pods.keys() == {"uid-pod"}


def test_a_resource_of_a_device_class_is_a_claim() -> None:
    resource = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
    alone, beside = (a_pod(each, [{"limits": {resource: "1"}}]) for each in ({}, HALF))
    assert not planned(alone, L4, environment=an_environment()).demands
    assert resource in refused(planned(beside, L4, environment=an_environment()))["uid-pod"]
    assert read_request(alone).has_claims


@given(st.lists(st.sampled_from(FORMS), min_size=2, max_size=4, unique=True), st.integers(0, 4))
def test_a_refused_pod_gets_no_capacity(forms: list[str], layout: int) -> None:
    pod = layouts(*forms)[layout]
    found = planned(pod, L4, a_gpu_node("idle", "NVIDIA-L4"), environment=an_environment())
    if any(refused(found)):
        assert not found.nodes
        assert not any(each.on_nodes or each.on_requested or each.whole_gpu_pods for each in found.demands)


def account_of(pod: Pod) -> GpuAccount:
    account = gpu_ledger(a_snapshot(a_gpu_node("n1", gpus=4), pod)).account("n1")
    assert account is not None
    return account


def running(annotations: Mapping[str, str], resources: dict[str, str], *groups: str) -> Pod:
    """A pod on the node n1; if it has a group, a binder has told it the UUID of its GPU."""
    pod = a_pod(annotations, [{"limits": resources}], nodeName="n1")
    return placed(pod, "n1", *groups) if groups else pod


@pytest.mark.parametrize(
    ("annotations", "resources", "groups", "free", "shared"),
    [
        ({}, {"nvidia.com/gpu": "2", SLICE: "1"}, (), 2, []),
        ({}, {"nvidia.com/gpu": "2", "amd.com/gpu": "1"}, (), 2, []),
        ({}, {SLICE: "1", "nvidia.com/mig-3g.20gb": "1"}, (), 4, []),
        ({}, {"amd.com/gpu": "4"}, (), 4, []),
        (HALF, {"nvidia.com/gpu": "2"}, (), 2, []),
        (HALF, {"nvidia.com/gpu": "2"}, ("g",), 1, [1000]),
        (HALF, {SLICE: "1"}, ("g",), 3, [1000]),
        (HALF, {SLICE: "1"}, (), 4, []),
        (HALF, {"amd.com/gpu": "1"}, ("g",), 3, [1000]),
        (HALF, {}, ("g",), 3, [500]),
    ],
)
def test_the_ledger_counts_what_a_running_pod_has_at_least(
    annotations: dict[str, str], resources: dict[str, str], groups: tuple[str, ...], free: int, shared: list[int]
) -> None:
    """Whole GPUs are the pod's in any case, and of a share beside other devices nobody knows how large it is."""
    account = account_of(running(annotations, resources, *groups))
    assert account.free_milli.count(1000) == free
    assert [each.used_milli for each in account.groups] == shared
    reasons = {each.reason.value for each in account.discrepancies}
    assert ("UnreadableShare" in reasons) == bool(annotations and resources)


@given(st.lists(st.sampled_from(FORMS), min_size=1, max_size=4, unique=True), st.integers(0, 4))
def test_another_form_of_request_frees_nothing(forms: list[str], layout: int) -> None:
    def free(*of: str) -> Milli:
        pod = layouts(*of)[layout].model_copy(update={"node_name": "n1", "phase": "Running"})
        return sum(account_of(pod).free_milli, 0)

    assert free(*forms) <= min(free(form) for form in forms)


def test_queues_count_all_that_a_running_pod_has() -> None:
    def used(resources: dict[str, str]) -> list[Milli]:
        pod = running({}, resources).model_copy(update={"labels": {QUEUE: "team"}})
        snapshot = a_snapshot(a_gpu_node("n1", gpus=8), a_queue("root", parent=""), a_queue("team"), pod)
        return [each.gpu_milli for each in queue_usage(snapshot).running]

    assert used({"nvidia.com/gpu": "2"}) == [2000]
    assert used({"nvidia.com/gpu": "2", SLICE: "1"}) == [3000]
    assert used({SLICE: "1", "nvidia.com/mig-3g.20gb": "1"}) == [4000]
    assert used({"amd.com/gpu": "3"}) == [3000]
    assert used({"gpu.intel.com/xe": "1"}) == []


def test_the_binder_refuses_a_share_beside_other_devices() -> None:
    cluster = Cluster([a_node_of_the_binder(more={SLICE: "7", "amd.com/gpu": "1"})])
    for name, resource in (("a", SLICE), ("b", "amd.com/gpu")):
        pod = layouts("fraction")[0].model_copy(update={"name": name, "uid": name, "scheduler_name": "plimsoll"})
        cluster.add(pod.model_copy(update={"containers": ({"name": "main", "resources": {"limits": {resource: 1}}},)}))
    cluster.settle()
    assert not cluster.bound
    assert SLICE in cluster.messages["a"]
    assert "amd.com/gpu" in cluster.messages["b"]


@pytest.mark.parametrize(
    ("form", "used"), [(form, form not in ("unknown", "network", "claim", "declared")) for form in FORMS]
)
def test_nodes_with_parts_of_gpus_in_use_are_in_use(form: str, used: bool) -> None:
    for pod in layouts(form):
        pods = (pod.model_copy(update={"node_name": "n1", "phase": "Running"}),)
        assert nodes_in_use(pods, ("n1", "n2"), "nvidia.com/gpu") == ({"n1"} if used else set())


@pytest.mark.parametrize(("form", "stays"), [("undeclared", True), ("claim", True), ("network", False)])
def test_a_node_whose_devices_are_used_otherwise_is_not_removable(form: str, stays: bool) -> None:
    """A partly partitioned node has slices besides GPUs, and a claim may be for any of its GPUs."""
    node = a_gpu_node("n1", "NVIDIA-L4", instance_type="g6.xlarge")
    pod = layouts(form)[0].model_copy(update={"node_name": "n1", "phase": "Running"})
    found = savings(a_snapshot(node, pod), Prices({}))
    assert ("n1" in found.stays) == stays
