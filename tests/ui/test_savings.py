"""Savings: what could be packed onto fewer nodes, beside a bound; every proposed move fits."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cost import GroupSavings, Prices, savings
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from tests.builders import a_gpu_node, a_snapshot, a_workspace

L4 = "NVIDIA-L4"


def a_share(name: str, node: str, fraction: float, *, annotations: dict[str, str] | None = None) -> list[Pod]:
    """A pod with a share of a GPU of its own, and the reservation of that GPU."""
    group = f"group-{name}"
    reservation = {
        "metadata": {
            "name": f"gpu-reservation-{group}",
            "namespace": "kai-resource-reservation",
            "labels": {"app": "kai-resource-reservation", "runai-gpu-group": group},
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "r", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
        },
    }
    pod = {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": name,
            "labels": {"runai-gpu-group": group},
            "annotations": {"gpu-fraction": str(fraction), **(annotations or {})},
        },
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
    }
    return [Pod.read(reservation), Pod.read(pod)]


def a_card(name: str, gpus: int = 1) -> Node:
    return a_gpu_node(name, L4, gpus=gpus, instance_type="g6.xlarge")


def only(snapshot: Snapshot) -> GroupSavings:
    (found,) = savings(snapshot, Prices({"g6.xlarge": 0.8}))
    return found


def test_two_half_used_nodes_become_one() -> None:
    found = only(a_snapshot(a_card("a"), a_card("b"), *a_share("x", "a", 0.5), *a_share("y", "b", 0.4)))
    assert (found.nodes, found.anew, found.least) == (2, 1, 1)
    assert found.leaving == ("b",)
    assert [(move.pod, move.source, move.target) for move in found.moves] == [("team/y", "b", "a")]
    assert (found.hourly, found.most_hourly) == (0.8, 0.8)


def test_an_empty_node_goes_without_a_move() -> None:
    found = only(a_snapshot(a_card("a"), a_card("b"), *a_share("x", "a", 0.5)))
    assert (found.leaving, found.moves) == (("b",), ())


def test_what_does_not_fit_together_stays() -> None:
    found = only(a_snapshot(a_card("a"), a_card("b"), *a_share("x", "a", 0.6), *a_share("y", "b", 0.6)))
    assert (found.anew, found.least, found.leaving, found.hourly) == (2, 2, (), 0)


@pytest.mark.parametrize("by", ["workspace", "annotation", "discrepancy"])
def test_nodes_of_workspaces_and_those_that_must_not_be_touched_stay(by: str) -> None:
    annotations = {"karpenter.sh/do-not-disrupt": "true"} if by == "annotation" else {}
    owner = [a_workspace(worker_nodes=["b"])] if by == "workspace" else []
    reservation, pod = a_share("y", "b", 0.4, annotations=annotations)
    pods = [*a_share("x", "a", 0.5), pod, *([] if by == "discrepancy" else [reservation])]
    found = only(a_snapshot(a_card("a"), a_card("b"), *pods, *owner))
    assert found.kept == ("b",)
    assert "b" not in found.leaving


@given(
    st.lists(st.lists(st.sampled_from((0.2, 0.3, 0.5, 0.7)), max_size=2), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_after_the_moves_no_gpu_is_overbooked_and_no_pod_is_lost(nodes: list[list[float]], random: Any) -> None:
    pods = [
        (f"p{number}-{gpu}", f"n{number}", size) for number, sizes in enumerate(nodes) for gpu, size in enumerate(sizes)
    ]
    objects: list[Any] = [a_card(f"n{number}", gpus=2) for number in range(len(nodes))]
    objects += [each for name, node, size in pods for each in a_share(name, node, size)]
    random.shuffle(objects)
    found = only(a_snapshot(*objects))
    assert found.least <= found.anew <= found.nodes
    moved = {move.pod: move.target for move in found.moves}
    after = {name: moved.get(f"team/{name}", node) for name, node, _ in pods}
    assert not set(after.values()) & set(found.leaving)
    for node in set(after.values()):
        assert sum(size for name, _, size in pods if after[name] == node) <= 2
    assert len(found.leaving) <= found.nodes - found.least
