"""The values that the pages show."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cluster.profiles import Source
from plimsoll.cluster.queues import queue_usage
from plimsoll.cost import Prices, cluster_cost
from plimsoll.model import Snapshot
from plimsoll.model.api import CapacityPoint
from plimsoll.model.cluster import Pod
from plimsoll.plan import plan, validate
from plimsoll.ui.view import (
    HEIGHT,
    WIDTH,
    Filter,
    NodeRow,
    NodeRows,
    Use,
    capacity_lines,
    choices,
    cluster_page,
    delta_rows,
    demand_rows,
    new_node_rows,
    plan_page,
    queue_rows,
    workspace_rows,
)
from tests.builders import (
    NC24,
    a_claim,
    a_gpu_node,
    a_node_pool,
    a_node_profile,
    a_queue,
    a_snapshot,
    a_waiting_pod,
    a_workspace,
    an_environment,
    gpu_labels,
)
from tests.ledger.cluster import a_reservation, a_share

NOW = datetime(2026, 11, 22, 9, 13, tzinfo=UTC)
NONE = Prices({})


def rows(snapshot: Snapshot) -> dict[str, NodeRow]:
    return {row.name: row for row in NodeRows().update(snapshot, Prices.of(snapshot))}


def amounts(row: NodeRow) -> dict[tuple[str, str], int]:
    return {(use.value, queue): milli for (use, queue), milli in row.amounts.items()}


def test_a_gpu_is_divided_by_queue_and_adds_up(example: Snapshot) -> None:
    found = rows(example)
    assert amounts(found["g6-1"]) == {("queue", "serving"): 500, ("queue", "notebooks"): 300, ("free", ""): 200}
    assert amounts(found["p5-3"]) == {("queue", "training"): 4000, ("queue", "evaluation"): 2000, ("free", ""): 2000}
    for row in found.values():
        assert all(sum(segment.milli for segment in bar) == 1000 for bar in row.bars), row.name


def a_tflops_pod(name: str, *gpus: str) -> Pod:
    """Half of the 121 TFLOPS of an L4, and a twentieth of its memory; on the GPUs that TensorFusion chose."""
    pod = a_waiting_pod(name, node="n", reason=None, phase="Running")
    chosen = {"tensor-fusion.ai/gpu-ids": ",".join(gpus)} if gpus else {}
    asked = {"tensor-fusion.ai/tflops-request": "60.5", "tensor-fusion.ai/vram-request": "1200Mi", **chosen}
    return pod.model_copy(update={"annotations": asked})


def test_a_request_by_tflops_is_the_larger_of_its_parts() -> None:
    node = a_gpu_node("n", "NVIDIA-L4", gpus=3)
    snapshot = a_snapshot(node, a_tflops_pod("chosen", "GPU-1"), a_tflops_pod("elsewhere"))
    row = rows(snapshot)["n"]
    assert [[(each.pods, each.milli) for each in bar] for bar in row.bars] == [
        [("team/chosen", 500), ("", 500)],
        [("", 1000)],
        [("", 1000)],
    ]
    assert row.amounts[Use.FREE, ""] == 2500, "nobody placed the other one"


def test_tflops_of_the_environment_count_at_once() -> None:
    kept, used = NodeRows(), []
    for tflops in ({}, {"NVIDIA-L4": 242}):
        environment = an_environment(demand={"gpuTflops": tflops})
        node, pod = a_gpu_node("n", "NVIDIA-L4"), a_tflops_pod("pod", "GPU-1")
        (row,) = kept.update(a_snapshot(node, pod, environment=environment), NONE)
        used.append(row.used)
    assert used == [0.5, 0.25]


def test_a_request_that_cannot_be_read_counts_as_the_whole_gpu() -> None:
    pods = [a_share("good", "n", "g", fraction="0.5"), a_share("bad", "n", "h", fraction="half")]
    held = [a_reservation(group, "n", gpu=f"GPU-{group}") for group in "gh"]
    assert rows(a_snapshot(a_gpu_node("n", gpus=2), *pods, *held))["n"].amounts[Use.FREE, ""] == 500


def test_states_of_nodes_are_distinguished(example: Snapshot) -> None:
    found = rows(example)
    assert [found[name].state for name in ("g6-1", "p5-4", "p4d-3")] == ["Ready", "NotReady", "Cordoned"]


def test_free_gpus_of_a_workspaces_nodes_are_reserved_for_it() -> None:
    snapshot = a_snapshot(a_gpu_node("n", gpus=2), a_workspace("ws", namespace="team", worker_nodes=["n"]))
    assert amounts(rows(snapshot)["n"]) == {("reserved", ""): 2000}
    assert rows(snapshot)["n"].workspaces == ("team/ws",)


def test_rows_of_unchanged_nodes_are_the_same_objects(example: Snapshot) -> None:
    kept = NodeRows()
    before = {row.name: row for row in kept.update(example, NONE)}
    pods = tuple(pod for pod in example.pods if pod.name != "notebook-1")
    after = {row.name: row for row in kept.update(example.model_copy(update={"pods": pods}), NONE)}
    assert [name for name in before if before[name] is not after[name]] == ["g6-1"]
    assert amounts(after["g6-1"]) == {("queue", "serving"): 500, ("free", ""): 500}


def test_the_scheduler_of_queues_applies_to_unchanged_nodes(example: Snapshot) -> None:
    kept, spec = NodeRows(), example.environment.spec
    for scheduler in (spec.queue_scheduler, "another"):
        environment = example.environment.model_copy(
            update={"spec": spec.model_copy(update={"queue_scheduler": scheduler})}
        )
        found = kept.update(example.model_copy(update={"environment": environment}), NONE)
        assert any(row.queues for row in found) == (scheduler == spec.queue_scheduler)


def test_the_cluster_counts_requested_and_unready_gpus_apart(example: Snapshot) -> None:
    page = cluster_page(rows(example).values(), example, Prices.of(example), Filter())
    found = {segment.use: segment.milli for segment in page.bar if segment.use is not Use.QUEUE}
    assert found[Use.REQUESTED] == 4000
    assert found[Use.NOT_READY] == 16000
    assert (page.nodes, page.not_ready, page.gpus) == (13, 2, 62)
    (requested,) = page.requested
    assert (requested.owner, requested.price) == ("Workspace assistants/assistant", 4.602)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (Filter(text="P5-"), {"p5-1", "p5-2", "p5-3", "p5-4"}),
        (Filter(text="search-0"), {"p4d-2"}),
        (Filter(queue="evaluation"), {"p5-3"}),
        (Filter(namespace="notebooks"), {"g6-1", "g6-2", "g6-3"}),
        (Filter(type="g6.xlarge", queue="serving"), {f"g6-{number}" for number in range(1, 6)}),
        (Filter(text="nothing"), set()),
    ],
)
def test_a_filter_restricts_nodes_by_everything_on_them(example: Snapshot, wanted: Filter, names: set[str]) -> None:
    page = cluster_page(rows(example).values(), example, NONE, wanted)
    assert {row.name for group in page.groups for row in group.rows} == names


def test_a_queue_keeps_its_parents(example: Snapshot) -> None:
    found = queue_rows(queue_usage(example), (), Filter(text="serving"))
    assert [(row.name, row.depth) for row in found] == [("company", 0), ("product", 1), ("serving", 2)]
    assert (found[2].allocated, found[2].pending, found[2].quota) == pytest.approx((3.1, 4.2, 8))


@pytest.mark.parametrize(
    ("wanted", "leaves"),
    [
        (Filter(namespace="notebooks"), {"notebooks"}),
        (Filter(type="g6.xlarge"), {"notebooks", "serving"}),
        (Filter(type="p5.48xlarge", namespace="research"), {"training", "evaluation"}),
        (Filter(queue="serving", namespace="notebooks"), set()),
    ],
)
def test_queues_are_filtered_by_their_pods(example: Snapshot, wanted: Filter, leaves: set[str]) -> None:
    found = queue_rows(queue_usage(example), rows(example).values(), wanted)
    assert {row.name for row in found if row.leaf} == leaves


@pytest.mark.parametrize(
    ("wanted", "owners"),
    [
        (Filter(queue="serving"), {"GPUDemand"}),
        (Filter(type="g6.xlarge"), {"GPUDemand"}),
        (Filter(type="p5.48xlarge"), {"Workspace assistants/translation"}),
        (
            Filter(namespace="assistants"),
            {"GPUDemand", "Workspace assistants/assistant", "Workspace assistants/translation"},
        ),
        (Filter(queue="training"), set()),
    ],
)
def test_operations_are_filtered_by_their_owner(example: Snapshot, wanted: Filter, owners: set[str]) -> None:
    page = plan_page(plan(example, validate(example), NOW), example, NONE, wanted)
    assert {row.owner.partition(" serving-")[0] for row in page.rows} == owners


def test_the_cost_of_a_plan_is_that_of_the_operations_that_are_shown(example: Snapshot) -> None:
    made, prices = plan(example, validate(example), NOW), Prices.of(example)
    for wanted in (Filter(type="p5.48xlarge"), Filter(queue="serving"), Filter(queue="training")):
        page = plan_page(made, example, prices, wanted)
        assert page.cost.added == pytest.approx(sum(row.price or 0 for row in page.rows)), wanted


def test_filter_choices_include_values_without_nodes() -> None:
    snapshot = a_snapshot(a_workspace(selector={}, instance_type=NC24), a_waiting_pod("p", gpus=1, namespace="waiting"))
    assert choices(snapshot, ()).types == (NC24,)
    assert choices(snapshot, ()).namespaces == ("default", "waiting")


def a_pod_of_parts(name: str, resource: str, count: int, queue: str = "") -> Pod:
    container = {"name": "c", "resources": {"limits": {f"nvidia.com/{resource}": str(count)}}}
    named = a_waiting_pod(name, node="parts", reason=None, phase="Running", queue=queue)
    return named.model_copy(update={"containers": (container,)})


def test_shared_devices_and_mig_slices_are_shown_with_their_pods() -> None:
    offered = {"nvidia.com/gpu.shared": "8", "nvidia.com/mig-1g.5gb": "7"}
    node = a_gpu_node("parts", instance_type="p4d.24xlarge").model_copy(update={"allocatable": offered})
    other = node.model_copy(update={"name": "other"})
    snapshot = a_snapshot(node, other, a_pod_of_parts("a", "gpu.shared", 3, "q"), a_pod_of_parts("b", "mig-1g.5gb", 2))
    prices = Prices({"p4d.24xlarge": 15.0})
    found = NodeRows().update(snapshot, prices)
    page = cluster_page(found, snapshot, prices, Filter())
    (group,) = page.groups
    assert (group.nodes, group.gpus) == (2, 0)
    counted = [(each.resource, each.used, each.allocatable) for each in group.devices]
    assert counted == [("nvidia.com/gpu.shared", 3, 16), ("nvidia.com/mig-1g.5gb", 2, 14)]
    assert (page.hourly, page.idle, page.unpriced) == (30, 25, 0)
    for wanted in (Filter(queue="q"), Filter(namespace="team"), Filter(text="team/b")):
        assert cluster_page(found, snapshot, NONE, wanted).nodes == 1, wanted


def test_requested_nodes_are_filtered_by_their_owner() -> None:
    workspace = a_workspace(selector={}, instance_type=NC24, queue="research")
    snapshot = a_snapshot(workspace, a_claim("c", workspace), nap=True)
    for wanted, count in ((Filter(queue="research"), 1), (Filter(queue="other"), 0), (Filter(type=NC24), 1)):
        assert len(cluster_page((), snapshot, NONE, wanted).requested) == count, wanted


def test_workspaces_have_the_current_verdict(example: Snapshot) -> None:
    found = {row.name: row for row in workspace_rows(example, validate(example), Filter())}
    assert found["assistant"].accepted
    assert (found["embeddings"].reason, found["assistant"].target) == ("UnsupportedInstanceType", 2)


def test_demand_has_the_planned_gpus_and_the_bound() -> None:
    snapshot = a_snapshot(
        a_gpu_node("n", gpus=1), a_queue("q", parent=""), *(a_waiting_pod(f"p{n}", queue="q", gpus=0) for n in range(2))
    )
    made = plan(snapshot, validate(snapshot), NOW)
    assert all(row.gpus >= row.least for row in demand_rows(snapshot, made, Filter()))


def test_demand_is_filtered_by_its_pods_queues_and_the_types_that_are_requested(example: Snapshot) -> None:
    made = plan(example, validate(example), NOW)

    def found(**fields: str) -> list[tuple[str, ...]]:
        return [row.queues for row in demand_rows(example, made, Filter(**fields))]

    assert found() == [("notebooks",), ("serving",)]
    assert found(queue="serving") == found(namespace="assistants") == found(text="chat-wait-3") == [("serving",)]
    assert found(type="g6.xlarge") == [("serving",)], "the notebook fits a node that is there"
    assert found(type="p5.48xlarge") == []
    (row,) = demand_rows(example, made, Filter(queue="serving"))
    assert [(each.name, each.share) for each in row.waiting][:2] == [
        ("chat-wait-0", "0.6 of a GPU"),
        ("chat-wait-1", "0.6 of a GPU"),
    ]


def test_a_plan_is_a_diff_with_reasons_and_prices(example: Snapshot) -> None:
    made = plan(example, validate(example), NOW)
    page = plan_page(made, example, Prices.of(example), Filter())
    translation = next(row for row in page.rows if row.owner == "Workspace assistants/translation")
    assert (translation.sign, translation.kind, translation.price) == ("+", "NodeClaim", 55.04)
    assert "p5.48xlarge" in translation.manifest
    assert page.cost.added == pytest.approx(sum(row.price or 0 for row in page.rows))
    assert {reason for _, reason, _ in page.refusals} == {"InstanceTypeRequired", "UnsupportedInstanceType"}


def test_the_history_shows_failures(example: Snapshot) -> None:
    found = delta_rows(example, Filter())
    assert [row.time for row in found] == sorted((row.time for row in found), reverse=True)
    assert found[1].changes[0].what == "4 x Pod gpu-l4-0a1b, gpu-l4-0c2d, gpu-l4-1e3f and 1 more"
    assert "quota" in found[2].changes[0].failure
    assert len(delta_rows(example, Filter(text="draft"))) == 2


def test_the_lines_of_gpus_and_cost_lead_from_the_first_point_to_the_present(example: Snapshot) -> None:
    now, prices = datetime(2026, 11, 23, tzinfo=UTC), Prices.of(example)
    rows = NodeRows().update(example, prices)
    gpus, cost = capacity_lines(example, rows, now)
    assert (gpus.what, gpus.first, gpus.most) == ("GPUs", "2025-12-20T08:00:00Z", 64)
    assert gpus.now == sum(row.gpus for row in rows)
    assert cost.now == pytest.approx(cluster_cost(gpu_ledger(example).accounts(), prices).hourly)
    assert next((x, y) for x, y, _ in gpus.marks) == (0, HEIGHT - 16 / 64 * HEIGHT)
    assert [x for x, _, _ in gpus.marks] == sorted(x for x, _, _ in gpus.marks)
    assert gpus.marks[-1][0] == WIDTH
    corners = [tuple(map(float, each.split(","))) for each in gpus.path.split()]
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(corners)), "a value holds until the next"


def test_without_points_or_prices_there_is_no_line(example: Snapshot) -> None:
    def with_history(*points: CapacityPoint) -> Snapshot:
        status = example.environment.status.model_copy(update={"history": points})
        return example.model_copy(update={"environment": example.environment.model_copy(update={"status": status})})

    now = datetime(2026, 11, 23, tzinfo=UTC)
    assert capacity_lines(with_history(), (), now) == ()
    assert capacity_lines(with_history(CapacityPoint(time="not a time")), (), now) == ()
    unpriced = with_history(CapacityPoint(time="2026-11-22T00:00:00Z", gpus=8))
    assert [line.what for line in capacity_lines(unpriced, (), now)] == ["GPUs"]


def test_new_nodes_have_the_source_and_why_pods_cannot_share() -> None:
    learned = {
        "node": "n1",
        "seen": "2026-01-01T00:00:00Z",
        "labels": gpu_labels("NVIDIA-L4-SHARED", 1, 23034) | {"nvidia.com/gpu.replicas": "4"},
    }
    gone = a_node_profile("gone", "p5.48xlarge", labels={"a": "b"})
    shared = a_node_profile("gpu", "g6.xlarge", learned=learned)
    snapshot = a_snapshot(a_node_pool("gpu", ["g6.xlarge", "g5.xlarge"], group="karpenter.k8s.aws"), shared, gone)
    found = {(row.pool, row.instance_type): row for row in new_node_rows(snapshot, Filter())}
    assert list(found) == [("gone", "p5.48xlarge"), ("gpu", "g5.xlarge"), ("gpu", "g6.xlarge")]
    seen = found["gpu", "g6.xlarge"]
    assert (seen.source, seen.seen_on, seen.seen) == (Source.LEARNED, "n1", "2026-01-01T00:00:00Z")
    assert "sharedDevices" in seen.divided
    assert (found["gpu", "g5.xlarge"].source, found["gpu", "g5.xlarge"].divided) == (Source.CATALOG, "")
    assert (found["gone", "p5.48xlarge"].source, found["gone", "p5.48xlarge"].devices) == (Source.DECLARED, "")


@pytest.mark.parametrize(
    ("wanted", "types"),
    [
        (Filter(text="g6"), {"g6.xlarge"}),
        (Filter(text="GPU"), {"g5.xlarge", "g6.xlarge"}),
        (Filter(text="a10g"), {"g5.xlarge"}),
        (Filter(type="g5.xlarge"), {"g5.xlarge"}),
        (Filter(type="p5.48xlarge"), set()),
    ],
)
def test_new_nodes_are_filtered_by_pool_type_and_devices(wanted: Filter, types: set[str]) -> None:
    snapshot = a_snapshot(a_node_pool("gpu", ["g6.xlarge", "g5.xlarge"], group="karpenter.k8s.aws"))
    assert {row.instance_type for row in new_node_rows(snapshot, wanted)} == types
