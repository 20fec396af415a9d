"""What is read from a pod: its placement and its CPU and memory requests."""

from typing import Any

import pytest

from plimsoll.errors import InvalidObjectError
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import Taint
from tests.builders import a_waiting_pod


def of_spec(**spec: Any) -> Pod:
    return Pod.read({"metadata": {"name": "pod"}, "spec": spec})


def asks(cpu: str | None = None, memory: str | None = None, **more: Any) -> dict[str, Any]:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"resources": {"requests": requests}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu_milli", "memory_mib"),
    [
        ({}, 0, 0),
        ({"containers": [asks("500m", "1Gi"), asks("1", "512Mi")]}, 1500, 1536),
        ({"containers": [asks("1")], "initContainers": [asks("3")]}, 3000, 0),
        ({"containers": [asks("1")], "initContainers": [asks("3"), asks("1", restartPolicy="Always")]}, 3000, 0),
        ({"containers": [asks("1")], "initContainers": [asks("1", restartPolicy="Always"), asks("3")]}, 4000, 0),
        ({"containers": [asks("1")], "overhead": {"cpu": "250m", "memory": "64Mi"}}, 1250, 64),
        ({"containers": [{"resources": {"limits": {"cpu": "2", "memory": "1G"}}}]}, 2000, 954),
        ({"containers": [asks("1")], "resources": {"requests": {"cpu": "4"}}}, 4000, 0),
        ({"containers": [asks("1")], "resources": {"limits": {"cpu": "4", "memory": "1Gi"}}}, 1000, 1024),
    ],
)
def test_cpu_and_memory_are_counted_as_by_the_scheduler(spec: dict[str, Any], cpu_milli: int, memory_mib: int) -> None:
    host = of_spec(**spec).host
    assert (host.cpu_milli, host.memory_mib) == (cpu_milli, memory_mib)


def test_equal_placements_are_the_same_object() -> None:
    one = a_waiting_pod("a", selector={"x": "1", "y": "2"}, affinity=[{"key": "z", "operator": "Exists"}])
    two = a_waiting_pod("b", selector={"y": "2", "x": "1"}, affinity=[{"key": "z", "operator": "Exists"}])
    assert one.placement is two.placement


def test_tolerations_that_every_pod_gets_do_not_distinguish_placements() -> None:
    given = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    assert a_waiting_pod(tolerations=[given]).placement == a_waiting_pod().placement


@pytest.mark.parametrize(
    ("expression", "fits", "fits_not"),
    [
        ({"operator": "In", "values": ["1", "2"]}, {"k": "1"}, {"k": "3"}),
        ({"operator": "NotIn", "values": ["1"]}, {}, {"k": "1"}),
        ({"operator": "Exists"}, {"k": ""}, {}),
        ({"operator": "DoesNotExist"}, {}, {"k": ""}),
        ({"operator": "Gt", "values": ["3"]}, {"k": "4"}, {"k": "3"}),
        ({"operator": "Lt", "values": ["3"]}, {"k": "2"}, {"k": "x"}),
        ({"operator": "Gt", "values": ["+3"]}, {"k": "04"}, {"k": "1_000"}),
        ({"operator": "Lt", "values": ["3"]}, {"k": "-2"}, {"k": " 2"}),
    ],
)
def test_affinity_is_evaluated_as_by_the_scheduler(
    expression: dict[str, Any], fits: dict[str, str], fits_not: dict[str, str]
) -> None:
    placement = a_waiting_pod(affinity=[{"key": "k", **expression}]).placement
    assert placement.allows(fits)
    assert not placement.allows(fits_not)


def test_terms_are_alternatives_and_an_empty_one_matches_nothing() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}, {}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    placement = of_spec(affinity={"nodeAffinity": required}).placement
    assert placement.allows({}, "n")
    assert not placement.allows({}, "other")


def test_an_affinity_that_cannot_be_read_is_reported() -> None:
    with pytest.raises(InvalidObjectError, match="operator 'Near'"):
        a_waiting_pod(affinity=[{"key": "k", "operator": "Near", "values": ["1"]}])


def test_gates_and_priority() -> None:
    pod = of_spec(schedulingGates=[{"name": "wait"}], priority=75)
    assert (pod.scheduling_gates, pod.priority) == (("wait",), 75)


@pytest.mark.parametrize("operator", ["Lt", "Gt", "OfALaterRelease"])
def test_a_toleration_with_an_unknown_operator_tolerates_nothing(operator: str) -> None:
    """The pod is read all the same, so that what it uses counts."""
    (toleration,) = of_spec(tolerations=[{"key": "k", "operator": operator, "value": "1"}]).placement.tolerations
    assert not toleration.tolerates(Taint(key="k", value="1", effect="NoSchedule"))
