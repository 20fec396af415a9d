"""Nodes whose GPUs are used by other pods, and nodes of other Workspaces."""

import pytest

from plimsoll.model import Reason, Verdict
from plimsoll.model.cluster import Pod
from plimsoll.plan import validate
from tests.builders import a_node, a_pod, a_snapshot, a_template, a_workspace

OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def verdict_of(*objects: object) -> list[Verdict]:
    return list(validate(a_snapshot(*objects)))


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("job", node="n", devices=2),
        a_pod("job", node="n", annotations={"gpu-fraction": "0.5"}),
        a_pod("job", node="n", devices=1, phase="Running"),
    ],
)
def test_a_node_whose_gpus_others_use_is_not_free(pod: Pod) -> None:
    [refused] = verdict_of(a_workspace(), a_node("n", count=4), pod)
    assert refused.reason is Reason.NO_FREE_NODES
    assert "n by pod others/job (" in refused.message
    assert "of 4 nvidia.com/gpu)" in refused.message


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("job", node="n", devices=2, phase="Succeeded"),
        a_pod("job", devices=2),
        a_pod("job", node="n"),
        a_pod("job", a_workspace(), node="n", devices=4),
    ],
    ids=["finished", "not placed", "without GPUs", "its own"],
)
def test_pods_without_its_gpus_leave_a_node_free(pod: Pod) -> None:
    [verdict] = verdict_of(a_workspace(), a_node("n", count=4), pod)
    assert verdict.allocated_nodes == ("n",), verdict.message


def test_a_template_that_requests_some_gpus_uses_the_free_ones() -> None:
    template = a_template(resources={"limits": {"nvidia.com/gpu": 2}})
    node = a_node("n", count=4, allocatable=4)
    [verdict] = verdict_of(a_workspace(template=template), node, a_pod("job", node="n", devices=2))
    assert verdict.accepted, verdict.message
    [refused] = verdict_of(a_workspace(template=template), node, a_pod("job", node="n", devices=3))
    assert refused.reason is Reason.NO_FREE_NODES


def test_a_template_with_an_invalid_number_of_gpus_is_refused() -> None:
    template = a_template(resources={"limits": {"nvidia.com/gpu": "some"}})
    [refused] = verdict_of(a_workspace(template=template), a_node())
    assert refused.reason is Reason.INVALID_SPEC
    assert "'some'" in refused.message


def test_nodes_in_use_are_a_warning_if_others_are_free() -> None:
    [verdict] = verdict_of(a_workspace(replicas=2), a_node("n"), a_node("m"), a_pod("job", node="n", devices=1))
    assert verdict.allocated_nodes == ("m",)
    [warning] = verdict.warnings
    assert all(each in warning for each in ("1 allocated of 2 usable", "n by pod others/job (1 of 1 nvidia.com/gpu)"))


def test_the_older_of_two_workspaces_gets_the_only_node() -> None:
    young, old = a_workspace("a", created=YOUNG), a_workspace("b", created=OLD)
    of_young, of_old = verdict_of(young, old, a_node("n"))
    assert of_old.allocated_nodes == ("n",)
    assert of_young.reason is Reason.NO_FREE_NODES
    assert "n by Workspace default/b" in of_young.message


def test_without_times_namespace_and_name_decide() -> None:
    siblings = [a_workspace(name, namespace=namespace, created="") for namespace, name in (("x", "a"), ("b", "z"))]
    verdicts = verdict_of(*siblings, a_node("n"))
    assert [(str(each.workspace), each.accepted) for each in verdicts] == [("b/z", True), ("x/a", False)]


def test_nodes_with_pods_of_a_refused_workspace_stay_its_own() -> None:
    sibling = a_workspace("sibling", selector={"pool": "none"}, created=OLD)
    [mine, _] = verdict_of(a_workspace("mine", created=YOUNG), sibling, a_node("n"), a_pod("p", sibling, "n"))
    assert mine.reason is Reason.NO_FREE_NODES
    assert "pod default/p of Workspace default/sibling" in mine.message


def test_slices_of_a_node_are_shared_by_workspaces_with_partitions_only() -> None:
    part = {"mode": "accelerator", "count": 1}
    first, second = (a_workspace(name, partition=part, replicas=2) for name in ("a", "b"))
    third = a_workspace("c", partition=part)
    whole = a_workspace("w", created=YOUNG)
    verdicts = verdict_of(first, second, third, whole, a_node("n", count=4))
    assert [each.accepted for each in verdicts] == [True, True, False, False]
    assert verdicts[0].allocated_nodes == verdicts[1].allocated_nodes == ("n",)
