"""Queues and the objects that name them are checked together, and each finding names the queues."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.queues import check_queues
from plimsoll.errors import InvalidObjectError
from plimsoll.model.meta import Finding
from tests.queues.manifests import amounts, job_set, pod, pod_group, queue, training_runtime

TREE = (
    queue("research", gpu=amounts(8, 16)),
    queue("training", "research", amounts(6, 16), priority=200, reclaimMinRuntime="1h30m"),
    queue("notebooks", "research", amounts(2, 2), preemptMinRuntime="300ms"),
)


def found(*manifests: dict[str, Any], **options: Any) -> list[tuple[str, str, str]]:
    """Rule, name and field of each finding."""
    return [(each.rule, each.name, each.field) for each in check_queues(manifests, **options)]


def only(*manifests: dict[str, Any], **options: Any) -> Finding:
    [finding] = check_queues(manifests, **options)
    return finding


def test_a_valid_tree_has_no_findings() -> None:
    work = (
        pod("p", "training"),
        job_set("j", "notebooks"),
        pod_group("g", "training"),
        training_runtime("t", "training"),
    )
    assert check_queues((*TREE, *work)) == ()


@pytest.mark.parametrize("order", range(3))
def test_a_cycle_is_one_finding_that_names_every_queue_in_it(order: int) -> None:
    queues = [queue("c", "a"), queue("a", "b"), queue("b", "c"), queue("below", "a")]
    finding = only(*queues[order:], *queues[:order])
    assert (finding.rule, finding.name, finding.field) == ("queue-cycle", "a", "spec.parentQueue")
    assert "a -> b -> c -> a" in finding.message


def test_a_queue_that_is_its_own_parent() -> None:
    assert found(queue("a", "a")) == [("queue-cycle", "a", "spec.parentQueue")]


def test_a_missing_parent_names_the_parent_and_the_children_that_go_with_it() -> None:
    finding = only(queue("a", "gone"), queue("b", "a"))
    assert (finding.rule, finding.name) == ("queue-parent-missing", "a")
    assert "Queue gone" in finding.message
    assert "(b)" in finding.message
    assert found(queue("a", "gone"), known=["gone"]) == []


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        (amounts(8, 4), ["queue-limit-below-quota"]),
        (amounts(-1, 4), ["queue-limit-below-quota"]),
        (amounts(-1, -1), []),
        (amounts(0, 0), []),
        (amounts(0.5, 0.5), []),
        ({"quota": 4}, ["queue-limit-below-quota"]),  # KAI takes an absent limit for 0
        ({}, []),
        (amounts(-2, 4), ["queue-negative"]),
        (amounts(2, -0.5), ["queue-negative"]),
        (amounts(2, 4, -1), ["queue-negative"]),
        (amounts(2, 4) | {"quta": 3}, ["queue-unknown-field"]),
        (amounts(2, 4) | {"quota": "2"}, ["queue-invalid-field"]),
        (amounts(2, 4) | {"quota": True}, ["queue-invalid-field"]),
        ([2], ["queue-invalid-field"]),
    ],
)
def test_amounts(given: Any, rules: list[str]) -> None:
    assert [rule for rule, *_ in found(queue("a", gpu=given))] == rules


def test_each_resource_is_checked() -> None:
    resources = {"cpu": amounts(8, 4), "memory": amounts(8, 4), "gpus": {}}
    assert found(queue("a", resources=resources)) == [
        ("queue-limit-below-quota", "a", "spec.resources.cpu.limit"),
        ("queue-unknown-field", "a", "spec.resources.gpus"),
        ("queue-limit-below-quota", "a", "spec.resources.memory.limit"),
    ]


@pytest.mark.parametrize(
    ("spec", "rule", "field"),
    [
        ({"preemptMinRuntime": "10"}, "queue-duration", "spec.preemptMinRuntime"),
        ({"preemptMinRuntime": 10}, "queue-duration", "spec.preemptMinRuntime"),
        ({"reclaimMinRuntime": "1d"}, "queue-duration", "spec.reclaimMinRuntime"),
        ({"reclaimMinRuntime": "-1m"}, "queue-duration", "spec.reclaimMinRuntime"),
        ({"reclaimMinRuntime": "99999999999h"}, "queue-duration", "spec.reclaimMinRuntime"),
        ({"prio": 1}, "queue-unknown-field", "spec.prio"),
        ({"priority": "high"}, "queue-invalid-field", "spec.priority"),
        ({"priority": 1.5}, "queue-invalid-field", "spec.priority"),
        ({"displayName": 5}, "queue-invalid-field", "spec.displayName"),
        ({"resources": None}, "queue-resources-missing", "spec.resources"),
        ({"resources": 5}, "queue-invalid-field", "spec.resources"),
    ],
)
def test_fields(spec: dict[str, Any], rule: str, field: str) -> None:
    finding = only(queue("a", **spec))
    assert (finding.rule, finding.field) == (rule, field)
    assert "Queue a" in finding.message


@pytest.mark.parametrize("duration", ["0", "30s", "1.5h", "1h30m", "100ms", "+5m", "1µs"])
def test_durations_in_the_format_of_go(duration: str) -> None:
    assert found(queue("a", preemptMinRuntime=duration)) == []


@pytest.mark.parametrize(
    ("parent", "children", "wrong"),
    [
        (8, (6, 2), False),
        (8, (6, 3), True),
        (0, (1,), True),
        (-1, (100, -1), False),
        (8, (-1,), True),
        (0.3, (0.1, 0.2), False),  # sums are exact, as floats are not
    ],
)
def test_the_childrens_quotas_stay_within_the_parents(parent: float, children: tuple[float, ...], wrong: bool) -> None:
    below = [queue(f"c{number}", "p", amounts(quota)) for number, quota in enumerate(children)]
    wanted = [("queue-children-over-quota", "p", "spec.resources.gpu.quota")] if wrong else []
    assert found(queue("p", gpu=amounts(parent)), *below) == wanted


def test_children_over_the_quota_are_named_with_their_quotas() -> None:
    message = only(queue("p", gpu=amounts(4)), queue("a", "p", amounts(3)), queue("b", "p", amounts(2))).message
    assert "4 GPUs" in message
    assert "5 together (a: 3, b: 2)" in message


@pytest.mark.parametrize(
    ("work", "field"),
    [
        (pod("w", "research"), "metadata.labels[kai.scheduler/queue]"),
        (pod_group("w", "research"), "spec.queue"),
        (
            job_set("w", "research"),
            "spec.replicatedJobs[0].template.spec.template.metadata.labels[kai.scheduler/queue]",
        ),
        (training_runtime("w", "research"), "spec.podGroupPolicy.kaiScheduler.queue"),
    ],
)
def test_work_on_a_queue_that_has_children(work: dict[str, Any], field: str) -> None:
    finding = only(*TREE, work)
    assert (finding.rule, finding.kind, finding.name, finding.field) == ("queue-not-leaf", work["kind"], "w", field)
    assert "Queue research" in finding.message
    assert "notebooks, training" in finding.message


def test_a_label_with_a_queue_that_nobody_declares() -> None:
    finding = only(*TREE, pod("w", "trainig"))
    assert (finding.rule, finding.namespace, finding.name) == ("queue-unknown", "research", "w")
    assert "Queue trainig" in finding.message
    assert "notebooks, training" in finding.message
    assert found(*TREE, pod("w", "elsewhere"), known=["elsewhere"]) == []


@pytest.mark.parametrize("deleted_by", ["timestamp", "option"])
def test_deleting_a_queue_that_is_in_use(deleted_by: str) -> None:
    gone = {"deleted": ["p"]} if deleted_by == "option" else {}
    parent = queue("p", deleting=not gone)
    assert found(parent, queue("c", "p"), **gone) == [
        ("queue-deleted-with-children", "p", "metadata.deletionTimestamp"),
    ]
    finding = only(parent, pod_group("g", "p"), **gone)
    assert finding.rule == "queue-deleted-with-podgroups"
    assert "PodGroup research/g" in finding.message
    finding = only(parent, pod("w", "p"), **gone)
    assert finding.rule == "queue-deleted-with-podgroups"
    assert "Pod research/w" in finding.message
    assert found(parent, pod("w", "p") | {"status": {"phase": "Succeeded"}}, **gone) == []
    assert found(parent, **gone) == []


def test_a_parent_may_go_together_with_its_children() -> None:
    assert found(queue("p", deleting=True), queue("c", "p", deleting=True)) == []


def test_a_queue_that_is_declared_twice() -> None:
    assert found(queue("a"), queue("a")) == [("queue-duplicate", "a", "metadata.name")]


def test_queues_of_other_schedulers_are_ignored() -> None:
    other = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "v"},
        "spec": {"x": 1},
    }
    assert check_queues([other]) == ()


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ({"kind": "Queue"}, "apiVersion"),
        (queue("a") | {"metadata": "x"}, "metadata: must be an object"),
        (queue("a") | {"metadata": {}}, "metadata.name"),
        (queue("a") | {"metadata": {"name": 5}}, "metadata.name"),
        (queue("a") | {"spec": []}, "spec: must be an object"),
    ],
)
def test_values_that_are_not_objects_are_an_error(manifest: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidObjectError, match=words):
        check_queues([manifest])


NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
QUEUES = st.lists(
    st.builds(
        queue,
        NAMES,
        st.none() | NAMES,
        st.builds(amounts, st.integers(-2, 9), st.integers(-2, 9)),
    ),
    max_size=6,
    unique_by=lambda manifest: str(manifest["metadata"]["name"]),
)


@given(QUEUES, st.lists(st.builds(pod, st.sampled_from(["p", "q"]), NAMES), max_size=3), st.randoms())
def test_findings_do_not_depend_on_the_order_of_queues(
    queues: list[dict[str, Any]], pods: list[dict[str, Any]], shuffle: random.Random
) -> None:
    manifests = [*queues, *pods]
    findings = check_queues(manifests)
    shuffle.shuffle(manifests)
    assert check_queues(manifests) == findings


@given(QUEUES)
def test_queues_that_reach_no_root_are_in_a_cycle_or_below_a_missing_parent(
    queues: list[dict[str, Any]],
) -> None:
    parents = {each["metadata"]["name"]: each["spec"].get("parentQueue") for each in queues}
    in_cycles = {name for name in parents if _returns(name, parents)}
    findings = check_queues(queues)
    reported = {
        name for each in findings if each.rule == "queue-cycle" for name in parents if f"{name} -> " in each.message
    }
    assert reported == in_cycles
    missing = {name for name, parent in parents.items() if parent is not None and parent not in parents}
    assert {each.name for each in findings if each.rule == "queue-parent-missing"} == missing


def _returns(name: str, parents: dict[str, str | None]) -> bool:
    parent = parents[name]
    for _ in parents:
        if parent == name:
            return True
        parent = parents.get(parent) if parent is not None else None
    return False


@pytest.mark.parametrize(
    ("resources", "fields"),
    [
        ({"gpu": amounts(2)}, ["spec.resources.cpu.limit", "spec.resources.memory.limit"]),
        ({"gpu": amounts(2), "cpu": amounts(0, 0), "memory": amounts(-1)}, ["spec.resources.cpu.limit"]),
        ({"gpu": amounts(0, 0), "cpu": amounts(-1), "memory": amounts(0, 1)}, []),
    ],
)
def test_a_queue_that_runs_nothing_for_lack_of_cpu_or_memory(resources: Any, fields: list[str]) -> None:
    assert found(queue("a", resources=resources)) == [("queue-runs-nothing", "a", field) for field in fields]
