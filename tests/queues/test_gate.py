"""The quota gate admits what KAI would admit, by limits and quotas at a queue and all its ancestors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.labels import QUEUE
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import Queue
from plimsoll.plan.queues import QueueGate, QueueLoad, QueueLoads, is_preemptible, queue_of
from tests.builders import A100_MIB, a_node, a_snapshot
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


def a_bound_pod(
    name: str = "p", *, annotations: dict[str, str] | None = None, devices: int = 0, node: str = "n", **fields: Any
) -> Pod:
    metadata = {"name": name, "namespace": "ns", "labels": fields.pop("labels", {}), "annotations": annotations or {}}
    limits = {"nvidia.com/gpu": str(devices)} if devices else {}
    return Pod.read(
        {
            "metadata": metadata,
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"limits": limits}}]} | fields,
        }
    )


@pytest.mark.parametrize(
    ("asked", "preemptible", "loads", "words"),
    [
        (6000, True, {}, ""),
        (6001, True, {}, "OverLimit: Queue leaf has 0 of its limit of 6 GPUs"),
        (2000, True, {"leaf": QueueLoad(4000)}, ""),
        (2001, True, {"leaf": QueueLoad(4000)}, "OverLimit: Queue leaf has 4 of its limit of 6"),
        (3000, True, {"other": QueueLoad(5001)}, "OverLimit: Queue team, above leaf, has 5.001 of its limit of 8"),
        (2000, False, {}, ""),
        (2001, False, {}, "NonPreemptibleOverQuota: Queue leaf has 0 of its quota of 2"),
        (1000, False, {"leaf": QueueLoad(5000, 0)}, ""),  # what is preemptible does not use the quota up
        (1000, False, {"other": QueueLoad(3500, 3500)}, "NonPreemptibleOverQuota: Queue team, above leaf, has 3.5"),
        (1000, True, {"other": QueueLoad(3500, 3500)}, ""),
    ],
)
def test_limits_hold_for_all_work_and_quotas_for_what_is_not_preemptible(
    asked: int, preemptible: bool, loads: dict[str, QueueLoad], words: str
) -> None:
    why = QueueGate(TREE, loads).why_not("leaf", asked, preemptible)
    assert why.startswith(words) if words else why == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody", "QueueDoesNotExist: Queue nobody does not exist (known: leaf, other)"),
        ("team", "QueueDoesNotExist: Queue team has child queues (leaf, other)"),
        ("", ""),
    ],
)
def test_work_names_a_leaf_that_is_there(name: str, words: str) -> None:
    why = QueueGate(TREE).why_not(name, 100, True)
    assert why.startswith(words) if words else why == ""


def test_a_queue_that_hangs_nowhere_admits_nothing() -> None:
    lost = queues(queue("a", "gone"), queue("b", "a"), queue("x", "y"), queue("y", "x"), queue("z", "x"))
    assert "the parent of Queue a, gone, does not exist" in QueueGate(lost).why_not("b", 100, True)
    assert "form a cycle" in QueueGate(lost).why_not("z", 100, True)


def test_without_any_queue_nothing_is_judged() -> None:
    assert QueueGate(()).why_not("research", 100_000, False) == ""


def test_an_amount_that_is_absent_is_nothing() -> None:
    assert QueueGate(queues(queue("a", gpu={"quota": 8}))).why_not("a", 1, True).startswith("OverLimit")


def test_what_is_admitted_counts_for_the_next() -> None:
    gate = QueueGate(TREE)
    assert gate.admit("leaf", 4000, True) == ""
    assert gate.why_not("other", 4000, True) == ""
    assert gate.why_not("other", 4001, True).startswith("OverLimit: Queue team")
    assert gate.admit("leaf", 4000, True).startswith("OverLimit: Queue leaf")
    assert gate.admit("other", 4000, True) == ""  # the refused ones have taken nothing


@given(st.lists(st.tuples(st.sampled_from(["leaf", "other"]), st.integers(1, 4000), st.booleans())))
def test_no_limit_and_no_quota_is_ever_passed(asked: list[tuple[str, int, bool]]) -> None:
    gate = QueueGate(TREE)
    admitted = [each for each in asked if not gate.admit(*each)]
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
    ("labels", "scheduler", "expected"),
    [
        ({QUEUE: "a", "project": "b"}, KAI, "a"),
        ({"project": "b"}, KAI, "b"),
        ({}, KAI, "default-queue"),
        ({"project": "b"}, "default-scheduler", ""),
        ({QUEUE: "a"}, "default-scheduler", "a"),
    ],
)
def test_the_queue_of_a_pod(labels: dict[str, str], scheduler: str, expected: str) -> None:
    assert queue_of(a_bound_pod(labels=labels, schedulerName=scheduler), KAI) == expected


def test_the_default_scheduler_puts_no_pod_into_a_queue() -> None:
    pod = a_bound_pod(labels={"project": "b"}, schedulerName="default-scheduler")
    assert queue_of(pod, "default-scheduler") == ""


def test_the_load_of_queues_is_what_bound_pods_take() -> None:
    in_leaf = {"labels": {QUEUE: "leaf"}}
    pods = [
        a_bound_pod("whole", devices=2, **in_leaf),
        a_bound_pod("half", annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, **in_leaf),
        a_bound_pod("memory", annotations={"gpu-memory": str(A100_MIB // 4)}, priority=100, **in_leaf),
        a_bound_pod("unknown", annotations={"gpu-memory": "10"}, node="nowhere", **in_leaf),
        a_bound_pod("waits", devices=4, node="", **in_leaf),
        a_bound_pod("bad", annotations={"gpu-fraction": "much"}, **in_leaf),
        a_bound_pod("done", devices=4, **in_leaf).model_copy(update={"phase": "Succeeded"}),
        a_bound_pod("elsewhere", devices=1),
    ]
    snapshot = a_snapshot(a_node("n"), *pods)
    assert QueueLoads().update(snapshot, None) == {"leaf": QueueLoad(2000 + 1000 + 250 + 100, 250)}
