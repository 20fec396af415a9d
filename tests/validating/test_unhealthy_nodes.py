"""Nodes that are broken, or that discovery has not reached, are no capacity; what they lack is named."""

from typing import Any

import pytest

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Environment
from plimsoll.model.cluster import UNHEALTHY, Node
from plimsoll.plan import validate
from tests.builders import a_gpu_node, a_node, a_node_pool, a_snapshot, a_waiting_pod, a_workspace
from tests.demand.plans import on_nodes, planned

READY = {"type": "Ready", "status": "True"}


def with_conditions(node: Node, *conditions: dict[str, Any]) -> Node:
    return node.model_copy(
        update={"conditions": Node.read({"metadata": {"name": "n"}, "status": {"conditions": conditions}}).conditions}
    )


def verdict(*objects: Any, environment: Any = None) -> Verdict:
    (found,) = validate(a_snapshot(*objects, environment=environment))
    return found


def named(*conditions: dict[str, str]) -> Environment:
    return Environment.read({"metadata": {"name": "env"}, "spec": {"unhealthyConditions": list(conditions)}})


@pytest.mark.parametrize(("kind", "status"), UNHEALTHY)
def test_a_broken_node_serves_neither_workspaces_nor_shares(kind: str, status: str) -> None:
    broken = {"type": kind, "status": status, "reason": "Code101"}
    other = "False" if status == "True" else "True"
    for conditions, usable in (([READY, broken], False), ([READY, {"type": kind, "status": other}], True)):
        found = verdict(a_workspace(), with_conditions(a_node(), *conditions))
        assert found.accepted is usable
        assert usable or (found.reason is Reason.NO_USABLE_NODES and f"{kind} is {status}, Code101" in found.message)
        node = with_conditions(a_gpu_node(), *conditions)
        assert (
            bool(on_nodes(planned(a_waiting_pod(gpu_fraction="0.5"), node, a_node_pool("p", ("g6.xlarge",))))) is usable
        )


@pytest.mark.parametrize(("declared", "usable"), [([], True), ([{"type": "GpuLost"}], False)])
def test_the_environment_names_more_conditions(declared: list[dict[str, str]], usable: bool) -> None:
    lost = {"type": "GpuLost", "status": "True"}
    environment = named(*declared)
    assert verdict(a_workspace(), with_conditions(a_node(), READY, lost), environment=environment).accepted is usable
    node = with_conditions(a_gpu_node(), READY, lost)
    assert bool(on_nodes(planned(a_waiting_pod(gpu_fraction="0.5"), node, environment=environment))) is usable


def test_an_empty_list_of_conditions_is_not_ready() -> None:
    assert not verdict(a_workspace(), with_conditions(a_node())).accepted
    assert verdict(a_workspace(), a_node(ready=None)).accepted, "a manifest that states none"


def test_a_node_that_discovery_has_not_reached_is_skipped_beside_others() -> None:
    bare = a_node("bare", product=None, count=None, memory=None)
    found = verdict(a_workspace(), a_node("n"), bare)
    assert found.accepted
    assert found.node_names == ("n",)
    assert any("bare" in warning and "GPU Feature Discovery has not run" in warning for warning in found.warnings)


def test_the_only_node_is_not_to_be_relabelled() -> None:
    found = verdict(a_workspace(), a_node("bare", product=None, count=None, memory=None))
    assert found.reason is Reason.GPU_LABELS_INVALID
    assert "GPU Feature Discovery has not run there yet" in found.message
    assert "labelSelector" not in found.message


def test_a_node_with_a_wrong_label_refuses_beside_others() -> None:
    assert verdict(a_workspace(), a_node("n"), a_node("wrong", count="many")).reason is Reason.GPU_LABELS_INVALID


def test_a_contradiction_on_a_node_is_a_warning_of_its_workspace() -> None:
    found = verdict(a_workspace(), a_node(count=2, allocatable=4))
    assert found.accepted
    assert any("labels say 2" in warning for warning in found.warnings)


def test_replicas_of_slices_have_a_part_of_their_memory() -> None:
    slices = {
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-1g.10gb.count": "7",
        "nvidia.com/mig-1g.10gb.memory": "9728",
    }
    partition = {"mode": "mig", "profile": "1g.10gb"}
    for replicas, accepted in (("1", True), ("2", False)):
        node = a_node(more_labels={**slices, "nvidia.com/mig-1g.10gb.replicas": replicas})
        found = verdict(a_workspace(gpu_memory_gib=6, partition=partition), node)
        assert found.accepted is accepted, found.message
