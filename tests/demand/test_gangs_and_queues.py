"""Gangs start completely or not at all, and nothing is requested for pods that their queue does not admit."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup
from plimsoll.plan import plan
from tests.builders import a_gpu_node, a_node_pool, a_queue, a_snapshot, a_waiting_pod, an_environment
from tests.demand.plans import on_new, on_nodes, only, planned, refused

L4 = "g6.xlarge"
POOL = a_node_pool("pool", (L4,), limits={"nvidia.com/gpu": 3})
"""A NodePool with room for three GPUs."""


def members(count: int, name: str = "job", **more: Any) -> list[Pod]:
    return [a_waiting_pod(f"{name}-{n}", gpu_fraction="0.9", pod_group_name=name, **more) for n in range(count)]


def a_group(least: int, name: str = "job") -> PodGroup:
    return PodGroup.read({"metadata": {"name": name, "namespace": "team"}, "spec": {"minMember": least}})


ROOT = a_queue("root", parent="")


@pytest.mark.parametrize(
    ("pods", "least", "nodes"),
    [(3, 3, 3), (4, 4, 0), (4, 3, 3), (4, 2, 3), (2, 4, 2), (4, 1, 3)],
)
def test_a_pod_group_gets_at_least_its_minimum_or_nothing(pods: int, least: int, nodes: int) -> None:
    plan = planned(*members(pods), a_group(least), POOL)
    demand = only(plan)
    assert len(plan.nodes) == nodes
    assert len(demand.refused) == pods - nodes
    if not nodes:
        assert "PodGroup team/job starts as a whole" in str(demand.refused["uid-job-0"])
        assert demand.reasons[0].startswith("a gang starts as a whole, and")
        assert "team/job" not in str(demand.reasons)


def test_running_members_count() -> None:
    running = a_waiting_pod("running", gpu_fraction="0.9", pod_group_name="job", node="elsewhere")
    assert len(planned(*members(4), running, a_group(4), POOL).nodes) == 3
    assert not planned(*members(4), running, a_group(5), POOL).nodes


@pytest.mark.parametrize(
    "whole",
    [
        a_waiting_pod("whole", gpus=2, pod_group_name="job", queue="small"),
        a_waiting_pod("whole", gpus=2, pod_group_name="job"),
        a_waiting_pod("whole", gpus=1, pod_group_name="job", selector={"disk": "ssd"}),
    ],
    ids=["not admitted", "too large", "no such node"],
)
@pytest.mark.parametrize(("least", "asked"), [(3, 0), (2, 2)])
def test_a_member_with_whole_gpus_that_no_autoscaler_provides_has_no_place(whole: Pod, least: int, asked: int) -> None:
    shapes = (L4, "g5.12xlarge") if "small" in whole.labels.values() else (L4,)
    pool = a_node_pool("pool", shapes, limits={"nvidia.com/gpu": 6})
    queues = (ROOT, a_queue("default-queue"), a_queue("small", limit=1))
    plan = planned(*members(2), whole, a_group(least), pool, *queues)
    assert sum(node.gpus for node in plan.nodes) == asked
    why = " ".join(refused(plan).values())
    assert ("PodGroup team/job starts as a whole, and 1 more of its pods" in why) == (asked == 0)
    if not asked:
        assert ("OverLimit" in why) == ("small" in whole.labels.values())


def test_a_member_with_whole_gpus_that_an_autoscaler_provides_has_a_place() -> None:
    whole = a_waiting_pod("whole", gpus=1, pod_group_name="job")
    assert len(planned(*members(2), whole, a_group(3), POOL).nodes) == 2


@pytest.mark.parametrize(("least", "asked"), [(3, 0), (2, 2)])
def test_a_member_whose_request_cannot_be_read_has_no_place(least: int, asked: int) -> None:
    typo = a_waiting_pod("typo", gpu_fraction="half", pod_group_name="job")
    plan = planned(*members(2), typo, a_group(least), POOL)
    demand = only(plan)
    assert len(plan.nodes) == asked
    assert "half" in str(demand.refused["uid-typo"])
    if not asked:
        assert str(demand.refused["uid-job-0"]).startswith(
            "PodGroup team/job starts as a whole, and 1 more of its pods"
        )
        assert "cannot be read" in str(demand.refused["uid-job-0"])
        assert "team" not in "".join(demand.reasons)


def test_a_gang_that_cannot_start_uses_nothing_of_its_queue() -> None:
    typo = a_waiting_pod("typo", gpu_fraction="half", pod_group_name="job", queue="team")
    alone = a_waiting_pod("alone", gpu_fraction="0.9", queue="team", priority=-1)
    gang = members(1, queue="team")
    plan = planned(*gang, typo, a_group(2), alone, a_queue("team", limit=1), ROOT, POOL)
    assert on_new(plan) == {"uid-alone"}


CLOSED = a_node_pool("closed", (L4,), limits={"nvidia.com/gpu": 0}, more_labels={"pool": "closed"})
IN_CLOSED = {"pool": "closed"}


@pytest.mark.parametrize(
    "first",
    [
        pytest.param({"gpu_fraction": "0.5", "gpu_fraction_num_devices": "2"}, id="more GPUs than a node has"),
        pytest.param({"gpu_fraction": "0.5", "cpu": "64"}, id="more CPU than a node has"),
        pytest.param({"gpu_fraction": "0.5", "selector": IN_CLOSED}, id="a NodePool whose limit is reached"),
        pytest.param({"gpu_fraction": "0.5", "cpu": "64", "pod_group_name": "job"}, id="a gang with such a pod"),
    ],
)
def test_a_pod_that_can_have_no_place_uses_nothing_of_its_queue(first: dict[str, Any]) -> None:
    pods = [a_waiting_pod(f"pod-{n}", gpu_fraction="0.5", queue="team") for n in range(2)]
    never = [a_waiting_pod("first", queue="team", priority=9, **first)]
    if "pod_group_name" in first:
        never += members(1, queue="team", priority=9)
    plan = planned(*never, *pods, a_group(2), a_queue("team", limit=1), ROOT, POOL, CLOSED)
    assert on_new(plan) == {"uid-pod-0", "uid-pod-1"}
    assert "OverLimit" not in str(refused(plan))


def test_pods_without_a_place_beside_others_use_nothing_of_their_queue() -> None:
    """Two pods of the queue fit the limit of their NodePool one by one, but not together."""
    narrow = a_node_pool("narrow", (L4,), limits={"nvidia.com/gpu": 1}, more_labels={"pool": "narrow"})
    pods = [
        a_waiting_pod(f"narrow-{n}", gpu_fraction="0.9", queue="team", priority=60, selector={"pool": "narrow"})
        for n in range(2)
    ]
    other = a_waiting_pod("other", gpu_fraction="0.9", queue="team", selector={"node.kubernetes.io/instance-type": L4})
    plan = planned(*pods, other, a_queue("team", limit=2), ROOT, POOL, narrow)
    assert on_new(plan) == {"uid-narrow-0", "uid-other"}
    assert set(refused(plan)) == {"uid-narrow-1"}
    assert "limits.nvidia.com/gpu of NodePool narrow" in refused(plan)["uid-narrow-1"]


@pytest.mark.parametrize("name", ["a", "z"])
@pytest.mark.parametrize("fraction", ["0.8", "0.9"])
def test_a_gang_that_cannot_start_leaves_free_gpus_to_others(name: str, fraction: str) -> None:
    single = a_waiting_pod(name, gpu_fraction=fraction)
    plan = planned(*members(3), a_group(3), single, a_gpu_node(gpus=2))
    assert on_nodes(plan) == {f"uid-{name}": "node"}
    assert set(refused(plan)) == {"uid-job-0", "uid-job-1", "uid-job-2"}


@pytest.mark.parametrize("high", ["a", "z"])
def test_a_free_gpu_is_for_the_pod_of_the_highest_priority(high: str) -> None:
    pods = [a_waiting_pod(name, gpu_fraction="0.9", priority=100 if name == high else 1) for name in ("a", "m", "z")]
    plan = planned(*pods, a_gpu_node(gpus=1))
    assert on_nodes(plan) == {f"uid-{high}": "node"}


@pytest.mark.parametrize(("least", "asked"), [(2, 2), (3, 0), (1, 2)])
def test_a_queue_admits_the_minimum_of_a_gang_and_then_single_pods(least: int, asked: int) -> None:
    queue = a_queue("team", limit=2)
    plan = planned(*members(3, queue="team"), a_group(least), queue, ROOT, POOL)
    assert len(plan.nodes) == asked
    assert len(refused(plan)) == 3 - asked
    assert all("OverLimit" in why for why in refused(plan).values())


def test_a_gang_without_room_leaves_its_queue_and_free_gpus_to_a_later_pod() -> None:
    """A node has two free GPUs, and the NodePool no room for another node: the first two of the gang need three GPUs,
    and its third pod alone starts nothing."""
    sizes = (("0.9", "2"), ("0.9", "1"), ("0.6", "2"))
    gang = [
        a_waiting_pod(
            f"job-{n}", gpu_fraction=size, gpu_fraction_num_devices=devices, pod_group_name="job", queue="team"
        )
        for n, (size, devices) in enumerate(sizes)
    ]
    single = a_waiting_pod("single", gpu_fraction="0.6", queue="team")
    full = a_node_pool("pool", ("g6.12xlarge",), limits={"nvidia.com/gpu": 2})
    team = a_queue("team", quota=0, limit=3, parent="")
    plan = planned(*gang, a_group(2), single, a_gpu_node("node", gpus=2), full, team)
    assert on_nodes(plan) == {"uid-single": "node"}
    why = refused(plan)
    assert why.keys() == {"uid-job-0", "uid-job-1", "uid-job-2"}
    assert {each.count("PodGroup") for each in why.values()} == {1}, "each reason is told once"


def test_a_gang_that_cannot_start_leaves_room_for_others() -> None:
    alone = a_waiting_pod("alone", gpu_fraction="0.9")
    assert on_new(planned(*members(4), a_group(4), alone, POOL)) == {"uid-alone"}


def test_one_of_two_gangs_starts_if_only_one_fits() -> None:
    plan = planned(*members(2, "one"), *members(2, "two"), a_group(2, "one"), a_group(2, "two"), POOL)
    assert len(plan.nodes) == 2
    assert len({node.pods[0].rsplit("-", 1)[0] for node in plan.nodes}) == 1


@pytest.mark.parametrize(
    "labels",
    [
        {"leaderworkerset.sigs.k8s.io/name": "lws", "leaderworkerset.sigs.k8s.io/group-index": "0"},
        {"jobset.sigs.k8s.io/jobset-name": "set"},
        {"scheduling.x-k8s.io/pod-group": "group"},
    ],
)
def test_labels_of_workloads_make_gangs(labels: dict[str, str]) -> None:
    pods = [a_waiting_pod(f"pod-{n}", gpu_fraction="0.9", more_labels=labels) for n in range(4)]
    assert not planned(*pods, POOL).nodes
    assert len(planned(*pods[:3], POOL).nodes) == 3


def test_a_gang_may_have_pods_of_several_classes() -> None:
    pods = [*members(2), a_waiting_pod("other", gpu_fraction="0.9", pod_group_name="job", selector={"no": "where"})]
    plan = planned(*pods, a_group(3), POOL)
    assert not plan.nodes
    assert len(refused(plan)) == 3


def test_a_gang_may_have_pods_of_several_classes_on_one_node() -> None:
    """The pods that select the type are of another class, and use the same nodes."""
    type_of = {"node.kubernetes.io/instance-type": L4}
    pods = [*members(3), a_waiting_pod("other", gpu_fraction="0.1", pod_group_name="job", selector=type_of)]
    assert len(planned(*pods, a_group(4), POOL).nodes) == 3
    assert not planned(*pods, a_waiting_pod("fifth", gpu_fraction="0.9", pod_group_name="job"), a_group(5), POOL).nodes


def test_demand_over_the_limit_of_its_queue_is_blocked() -> None:
    queue = a_queue("team", limit=0)
    plan = planned(a_waiting_pod(gpu_fraction="0.5", queue="team"), queue, ROOT, POOL)
    assert str(only(plan).queue_refusal).startswith("OverLimit")
    assert not plan.nodes


def test_the_pods_that_a_queue_admits_are_requested() -> None:
    queue = a_queue("team", limit=1)
    pods = [a_waiting_pod(f"pod-{n}", gpu_fraction="0.4", queue="team", priority=60 + n) for n in range(3)]
    plan = planned(*pods, queue, ROOT, POOL)
    assert not only(plan).queue_refusal
    assert [node.pods for node in plan.nodes] == [("uid-pod-1", "uid-pod-2")]
    assert "OverLimit" in refused(plan)["uid-pod-0"]


def test_a_queue_admits_pods_by_kais_priority_as_plimsoll_queues_shows() -> None:
    """It is that of the label, whatever the pod's own number."""
    queue = a_queue("team", limit=0.6)
    train = a_waiting_pod("a-train", gpu_fraction="0.6", queue="team", more_labels={"priorityClassName": "train"})
    urgent = a_waiting_pod("b-urgent", gpu_fraction="0.6", queue="team", more_labels={"priorityClassName": "inference"})
    plan = planned(train, urgent, queue, ROOT, POOL)
    assert on_new(plan) == {"uid-b-urgent"}
    assert "OverLimit" in refused(plan)["uid-a-train"]


def test_non_preemptible_work_must_fit_the_quota() -> None:
    queue = a_queue("team", quota=0.5)
    firm = planned(a_waiting_pod(gpu_fraction="0.6", queue="team", priority=125), queue, ROOT, POOL)
    assert only(firm).queue_refusal
    assert planned(a_waiting_pod(gpu_fraction="0.6", queue="team", priority=50), queue, ROOT, POOL).nodes


def test_classes_of_one_queue_share_its_limit() -> None:
    queue = a_queue("team", limit=1)
    one = a_waiting_pod("a", gpu_fraction="0.7", queue="team")
    other = a_waiting_pod("b", gpu_fraction="0.7", queue="team", tolerations=[{"key": "b", "operator": "Exists"}])
    assert len(planned(one, other, queue, ROOT, POOL).nodes) == 1
    foreign = a_waiting_pod("b", gpu_fraction="0.7", queue="team", scheduler="plimsoll")
    environment = an_environment(demand={"schedulers": ["kai-scheduler", "plimsoll"], "withoutQueue": "allow"})
    plan = planned(one, foreign, queue, ROOT, POOL, environment=environment)
    assert len(plan.nodes) == 2, "it uses no queue"


@pytest.mark.parametrize(
    ("asked", "admitted"),
    [
        ({"gpu_fraction": "0.3333"}, 3),
        ({"gpu_fraction": "0.3334"}, 3),
        ({"gpu_fraction": "0.335"}, 2),
        ({"gpu_fraction": "0.0625"}, 16),
        ({"gpu_memory": "11500"}, 2),
        ({"gpu_memory": "11501"}, 1),
    ],
)
def test_a_queue_counts_hundredths(asked: dict[str, Any], admitted: int) -> None:
    """The limit is one GPU; an A10G has 23000 MiB to share."""
    pods = [a_waiting_pod(f"pod-{n:02}", queue="team", **asked) for n in range(admitted + 1)]
    plan = planned(*pods, a_queue("team", limit=1), ROOT, a_node_pool("pool", ("g5.xlarge",)))
    (left,) = refused(plan).values()
    assert left.startswith("OverLimit")


@pytest.mark.parametrize(("queues", "priorities"), [(("a", "b"), (0, 0)), (("a", "a"), (0, 100))])
def test_a_gang_counts_as_a_whole_where_its_pods_differ_in_queue_or_preemptibility(
    queues: tuple[str, str], priorities: tuple[int, int]
) -> None:
    jobset = {"jobset.sigs.k8s.io/jobset-name": "train"}
    gang = [
        a_waiting_pod(f"pod-{n}", gpu_fraction="0.9", queue=queue, priority=priority, more_labels=jobset)
        for n, (queue, priority) in enumerate(zip(queues, priorities, strict=True))
    ]
    tree = [a_queue("all", limit=1, parent=""), a_queue("a", parent="all"), a_queue("b", parent="all")]
    plan = planned(*gang, *tree, a_node_pool("pool", ("g6.xlarge",)))
    assert plan.gpus == 0
    assert all("OverLimit: Queue all" in why for why in refused(plan).values())


def test_demands_of_schedulers_whose_names_look_alike_have_names_of_their_own() -> None:
    schedulers = ["gpu.binder", "gpu-binder"]
    pods = [
        a_waiting_pod(f"pod-{number}", gpu_fraction="0.5", scheduler=name) for number, name in enumerate(schedulers)
    ]
    snapshot = a_snapshot(*pods, POOL, environment=an_environment(demand={"schedulers": schedulers}))
    names = [report.name for report in plan(snapshot, (), datetime(2026, 1, 2, tzinfo=UTC)).demands]
    assert len(set(names)) == len(names) == 2
