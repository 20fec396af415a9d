"""The quota gate admits what KAI would admit, by limits and quotas at a queue and all its ancestors."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pods import PodChanges
from plimsoll.cluster.queues import Amount, QueuedPods, QueueGate, QueueLoad, is_preemptible, queue_of, queue_usage
from plimsoll.labels import QUEUE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup, Queue
from tests.builders import A100_MIB, a_node, a_snapshot, an_environment
from tests.queues.manifests import amounts, queue

KAI = "kai-scheduler"


def queues(*manifests: dict[str, Any]) -> list[Queue]:
    return [Queue.read(manifest) for manifest in manifests]


TREE = queues(
    queue("root", gpu=amounts(4, 10)),
    queue("team", "root", amounts(4, 8)),
    queue("leaf", "team", amounts(2, 6)),
    queue("other", "team", amounts(2)),
)

OVER_LIMIT, OVER_QUOTA, NO_QUEUE = "OverLimit", "NonPreemptibleOverQuota", "QueueDoesNotExist"
"""KAI's reasons."""
_REFUSAL = re.compile(r"(\w+): Queue ([^ ,]+)")


def loads_of(snapshot: Snapshot) -> Mapping[str, QueueLoad]:
    queued = QueuedPods()
    queued.update(snapshot)
    return queued.loads


def refused(why: str) -> tuple[str, ...]:
    """KAI's reason and the queue that it names; empty if nothing is refused."""
    if not why:
        return ()
    found = _REFUSAL.match(why)
    assert found is not None, why
    return found.groups()


def a_bound_pod(
    name: str = "p", *, annotations: dict[str, str] | None = None, devices: int = 0, node: str = "n", **fields: Any
) -> Pod:
    metadata = {"name": name, "namespace": "ns", "labels": fields.pop("labels", {}), "annotations": annotations or {}}
    limits = {"nvidia.com/gpu": str(devices)} if devices else {}
    containers = [{"name": "c", "resources": {"limits": limits}}]
    return Pod.read(
        {"metadata": metadata, "spec": {"schedulerName": KAI, "nodeName": node, "containers": containers} | fields}
    )


@pytest.mark.parametrize(
    ("requested", "preemptible", "loads", "expected"),
    [
        (6000, True, {}, ()),
        (6001, True, {}, (OVER_LIMIT, "leaf")),
        (2000, True, {"leaf": QueueLoad(Amount(4000))}, ()),
        (2001, True, {"leaf": QueueLoad(Amount(4000))}, (OVER_LIMIT, "leaf")),
        (3000, True, {"other": QueueLoad(Amount(5001))}, (OVER_LIMIT, "team")),
        (2000, False, {}, ()),
        (2001, False, {}, (OVER_QUOTA, "leaf")),
        (
            1000,
            False,
            {"leaf": QueueLoad(Amount(5000), Amount(0))},
            (),
        ),  # what is preemptible does not use the quota up
        (1000, False, {"other": QueueLoad(Amount(3500), Amount(3500))}, (OVER_QUOTA, "team")),
        (1000, True, {"other": QueueLoad(Amount(3500), Amount(3500))}, ()),
    ],
)
def test_limits_apply_to_all_work_and_quotas_to_non_preemptible_work(
    requested: int, preemptible: bool, loads: dict[str, QueueLoad], expected: tuple[str, ...]
) -> None:
    assert refused(QueueGate(TREE, loads).why_not("leaf", Amount(requested), preemptible)) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("nobody", (NO_QUEUE, "nobody")), ("team", (NO_QUEUE, "team")), ("", ())]
)
def test_work_needs_an_existing_leaf_queue(name: str, expected: tuple[str, ...]) -> None:
    assert refused(QueueGate(TREE).why_not(name, Amount(100), True)) == expected


@pytest.mark.parametrize("name", ["b", "z"])
def test_a_queue_that_reaches_no_root_admits_nothing(name: str) -> None:
    lost = queues(queue("a", "gone"), queue("b", "a"), queue("x", "y"), queue("y", "x"), queue("z", "x"))
    assert refused(QueueGate(lost).why_not(name, Amount(100), True)) == (NO_QUEUE, name)


def test_without_queues_all_work_is_admitted() -> None:
    assert QueueGate(()).why_not("research", Amount(100_000), False) == ""


def test_an_absent_amount_is_zero() -> None:
    assert refused(QueueGate(queues(queue("a", gpu={"quota": 8}))).why_not("a", Amount(1), True)) == (OVER_LIMIT, "a")


def test_admitted_work_counts_for_later_work() -> None:
    gate = QueueGate(TREE)
    assert gate.admit("leaf", Amount(4000), True) == ""
    assert gate.why_not("other", Amount(4000), True) == ""
    assert refused(gate.why_not("other", Amount(4001), True)) == (OVER_LIMIT, "team")
    assert refused(gate.admit("leaf", Amount(4000), True)) == (OVER_LIMIT, "leaf")
    assert gate.admit("other", Amount(4000), True) == ""  # the refused ones have taken nothing


@given(st.lists(st.tuples(st.sampled_from(["leaf", "other"]), st.integers(1, 4000), st.booleans())))
def test_no_limit_and_no_quota_is_ever_exceeded(asked: list[tuple[str, int, bool]]) -> None:
    gate = QueueGate(TREE)
    admitted = [each for each in asked if not gate.admit(each[0], Amount(each[1]), each[2])]
    leaf = [milli for name, milli, _ in admitted if name == "leaf"]
    assert sum(leaf) <= 6000
    assert sum(milli for _, milli, _ in admitted) <= 8000
    assert sum(milli for _, milli, preemptible in admitted if not preemptible) <= 4000


@pytest.mark.parametrize(
    ("labels", "priority", "expected"),
    [
        ({}, 0, True),
        ({}, 99, True),
        ({}, 100, False),
        ({"priorityClassName": "train"}, 0, True),
        ({"priorityClassName": "build-preemptible"}, 0, True),
        ({"priorityClassName": "build"}, 0, False),
        ({"priorityClassName": "inference"}, 50, False),
        ({"priorityClassName": "ours"}, 100, False),
        ({"kai.scheduler/preemptibility": "preemptible"}, 125, True),
        ({"kai.scheduler/preemptibility": "non-preemptible", "priorityClassName": "train"}, 0, False),
        ({"kai.scheduler/preemptibility": "semi-preemptible"}, 0, False),
    ],
)
def test_preemptible_by_label_or_priority(labels: dict[str, str], priority: int, expected: bool) -> None:
    assert is_preemptible(a_bound_pod(labels=labels, priority=priority)) is expected


@pytest.mark.parametrize(
    ("group", "labels", "spec", "owner", "expected"),
    [
        ({"preemptibility": "non-preemptible"}, {"kai.scheduler/preemptibility": "preemptible"}, {}, "", False),
        ({"preemptibility": "preemptible", "priorityClassName": "inference"}, {}, {}, "", True),
        ({"priorityClassName": "build"}, {"priorityClassName": "train"}, {}, "", False),
        ({"priorityClassName": "train"}, {}, {}, "ReplicaSet", True),
        ({"priorityClassName": "ours"}, {}, {"priorityClassName": "ours", "priority": 1000}, "", False),
        ({"priorityClassName": "ours"}, {}, {"priorityClassName": "train", "priority": 50}, "", True),
        (None, {}, {"priorityClassName": "inference"}, "", False),
        (None, {"priorityClassName": "train"}, {"priorityClassName": "inference"}, "", True),
        (None, {}, {}, "ReplicaSet", False),
        (None, {"serving.knative.dev/service": "s"}, {}, "", False),
        (None, {}, {}, "Deployment", False),
        (None, {"notebook-name": "n"}, {}, "StatefulSet", False),
        (None, {}, {}, "Notebook", False),
        (None, {}, {}, "StatefulSet", True),
        (None, {}, {"priorityClassName": "train"}, "ReplicaSet", True),
    ],
)
def test_preemptible_by_group_class_and_kind_of_workload(
    group: dict[str, str] | None, labels: dict[str, str], spec: dict[str, Any], owner: str, expected: bool
) -> None:
    pod = a_bound_pod(labels=labels, **spec).model_copy(update={"owner_kind": owner})
    found = PodGroup.read({"metadata": {"name": "g"}, "spec": group}) if group else None
    assert is_preemptible(pod, found) is expected


def test_cpu_and_memory_gate_as_gpus_do() -> None:
    cpu, absent = {"gpu": amounts(8), "cpu": amounts(1000, 2000), "memory": amounts(-1)}, {"gpu": amounts(8)}
    gate = QueueGate(queues(queue("a", resources=cpu), queue("b", resources=absent), queue("c", "b")))
    assert gate.why_not("a", Amount(1000, 2_000_000, 5), preemptible=True) == ""
    assert "spec.resources.cpu.limit" in gate.why_not("a", Amount(1000, 2_000_001), preemptible=True)
    assert "spec.resources.cpu.quota" in gate.why_not("a", Amount(1000, 1_000_001), preemptible=False)
    assert "Queue b, above c," in gate.why_not("c", Amount(1000, 1), preemptible=True)
    assert gate.why_not("c", Amount(1000), preemptible=True) == ""  # what is not requested is not compared


@pytest.mark.parametrize(("memory", "admitted"), [("16G", True), ("16001M", False), ("15Gi", False), ("14Gi", True)])
def test_memory_counts_in_bytes(memory: str, admitted: bool) -> None:
    """A limit is in MB of 10^6 bytes: 16G are 16000 MB, though no whole number of MiB."""
    resources = {"gpu": amounts(8), "cpu": amounts(8), "memory": amounts(0, 16000)}
    containers = [{"name": "c", "resources": {"requests": {"memory": memory}}}]
    requested = Amount.of(1000, a_bound_pod(containers=containers).host)
    why = QueueGate(queues(queue("a", resources=resources))).why_not("a", requested, preemptible=True)
    assert ("spec.resources.memory.limit" in why) is not admitted


def test_a_pod_group_says_the_queue_and_the_preemptibility_of_a_load() -> None:
    pod = a_bound_pod(devices=1, labels={QUEUE: "leaf"}, annotations={"pod-group-name": "g"})
    queued, nothing = QueuedPods(), a_snapshot(a_node("n"), pod)
    group = PodGroup.read(
        {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"queue": "other", "preemptibility": "non-preemptible"}}
    )
    queued.update(nothing)
    assert queued.loads == {"leaf": QueueLoad(Amount(1000))}
    assert queued.in_use == {"leaf"}
    queued.update(nothing.model_copy(update={"pod_groups": (group,)}), PodChanges((), ()))
    assert queued.loads == {"other": QueueLoad(Amount(1000), Amount(1000))}
    assert queued.in_use == {"other"}
    queued.update(nothing, PodChanges((), ()))
    assert queued.loads == {"leaf": QueueLoad(Amount(1000))}
    assert queued.in_use == {"leaf"}


def test_a_pod_group_without_pods_uses_its_queue() -> None:
    queued, group = QueuedPods(), PodGroup.read({"metadata": {"name": "g", "namespace": "ns"}, "spec": {"queue": "q"}})
    with_group = a_snapshot(a_node("n")).model_copy(update={"pod_groups": (group,)})
    queued.update(with_group)
    assert queued.in_use == {"q"}
    queued.update(with_group.model_copy(update={"pod_groups": ()}), PodChanges((), ()))
    assert queued.in_use == frozenset()


@pytest.mark.parametrize(
    ("labels", "scheduler", "expected"),
    [
        ({QUEUE: "a", "project": "b"}, KAI, "a"),
        ({"project": "b"}, KAI, "b"),
        ({"project": "b", "kai.scheduler/node-pool": "pool"}, KAI, "b-pool"),
        ({}, KAI, "default-queue"),
        ({"project": "b"}, "default-scheduler", ""),
        ({QUEUE: "a"}, "default-scheduler", ""),
    ],
)
def test_the_queue_of_a_pod(labels: dict[str, str], scheduler: str, expected: str) -> None:
    assert queue_of(a_bound_pod(labels=labels, schedulerName=scheduler), an_environment().spec) == expected


def test_the_default_scheduler_puts_no_pod_into_a_queue() -> None:
    pod = a_bound_pod(labels={"project": "b"}, schedulerName="default-scheduler")
    environment = an_environment(queueScheduler="default-scheduler").spec
    assert queue_of(pod, environment) == ""
    assert queue_of(a_bound_pod(labels={QUEUE: "a"}), environment) == "a"


def test_the_load_of_queues_is_that_of_bound_pods() -> None:
    in_leaf: dict[str, Any] = {"labels": {QUEUE: "leaf"}}
    pods = [
        a_bound_pod("whole", devices=2, **in_leaf),
        a_bound_pod("half", annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, **in_leaf),
        a_bound_pod("memory", annotations={"gpu-memory": str(A100_MIB // 4)}, priority=100, **in_leaf),
        a_bound_pod("unknown", annotations={"gpu-memory": "10"}, node="nowhere", **in_leaf),
        a_bound_pod("waits", devices=4, node="", **in_leaf),
        a_bound_pod("bad", annotations={"gpu-fraction": "much"}, **in_leaf),
        a_bound_pod("done", devices=4, **in_leaf).model_copy(update={"phase": "Succeeded"}),
        a_bound_pod("elsewhere", devices=1, schedulerName="default-scheduler"),
        a_bound_pod("of another scheduler", devices=1, schedulerName="default-scheduler", **in_leaf),
    ]
    snapshot = a_snapshot(a_node("n"), *pods)
    memory = 260  # a quarter of its label, of 81900 MiB that are shared
    loads = loads_of(snapshot)
    assert loads == {"leaf": QueueLoad(Amount(2000 + 1000 + memory + 100), Amount(memory))}


def test_gpus_and_mig_devices_of_one_pod_add_up_and_its_cpu_counts_once() -> None:
    asked = {"requests": {"cpu": "2"}, "limits": {"nvidia.com/gpu": "1", "nvidia.com/mig-3g.40gb": "2"}}
    pod = a_bound_pod(labels={QUEUE: "leaf"}, schedulerName=KAI, containers=[{"name": "c", "resources": asked}])
    snapshot = a_snapshot(a_node("n"), pod, *queues(queue("leaf")))
    amount = Amount(7000, 2_000_000)
    assert loads_of(snapshot) == {"leaf": QueueLoad(amount)}
    assert queue_usage(snapshot).allocated == {"leaf": amount}


def test_mig_devices_of_init_containers_and_sidecars_count() -> None:
    def asks(profile: str, count: str, **more: Any) -> dict[str, Any]:
        return {"name": "c", "resources": {"limits": {f"nvidia.com/mig-{profile}": count}}, **more}

    pod = a_bound_pod(
        labels={QUEUE: "leaf"},
        schedulerName=KAI,
        initContainers=[asks("1g.10gb", "2", restartPolicy="Always"), asks("2g.20gb", "3")],
        containers=[asks("2g.20gb", "1"), asks("4g.40gb", "half")],
    )
    snapshot = a_snapshot(a_node("n"), pod, *queues(queue("leaf")))
    amount = Amount((2 * 1 + 3 * 2) * 1000)
    assert loads_of(snapshot) == {"leaf": QueueLoad(amount)}
    assert queue_usage(snapshot).allocated == {"leaf": amount}


@pytest.mark.parametrize(("scheduler", "used"), [(KAI, 2000), ("default-scheduler", 0), ("volcano", 0)])
def test_the_gate_and_the_usage_count_the_same_pods(scheduler: str, used: int) -> None:
    """KAI counts pods of other schedulers in no queue, whatever their labels."""
    pod = a_bound_pod(devices=2, labels={QUEUE: "leaf"}, schedulerName=scheduler)
    snapshot = a_snapshot(a_node("n", count=4), pod, *queues(queue("leaf", gpu=amounts(2, 2))))
    loads = loads_of(snapshot)
    assert loads == queue_usage(snapshot).loads == ({"leaf": QueueLoad(Amount(used))} if used else {})
    why = QueueGate(snapshot.queues, loads).why_not("leaf", Amount(1000), preemptible=True)
    assert refused(why) == ((OVER_LIMIT, "leaf") if used else ())
