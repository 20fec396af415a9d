"""Savings: the nodes that could be removed if pods moved, and the cost of a new packing of the same demand with a lower
bound."""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.cost import Prices, Savings, savings
from plimsoll.labels import DEMAND, ENVIRONMENT
from plimsoll.model.api import TRIGGER_NAMESPACE
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import NODE_POOL
from tests.builders import a_gpu_node, a_snapshot, a_waiting_pod, a_workspace
from tests.pages import CHECKOUT
from tests.placement.storage import a_volume_claim, in_zone

L4, A100 = "NVIDIA-L4", "NVIDIA-A100-SXM4-40GB"
PRICES = {"small": 0.8, "large": 1.5, "other": 3.0}


def a_share(
    name: str, node: str, fraction: float, *, annotations: dict[str, str] | None = None, **spec: Any
) -> list[Pod]:
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
        "spec": {"nodeName": node, "containers": [{"name": "main"}], **spec},
    }
    return [Pod.read(reservation), Pod.read(pod)]


class Machine(NamedTuple):
    name: str
    product: str = L4
    gpus: int = 1
    type: str = "small"

    def node(self, **more: Any) -> Node:
        return a_gpu_node(self.name, self.product, gpus=self.gpus, instance_type=self.type, **more)


def cordoned(machine: Machine) -> Node:
    return machine.node().model_copy(update={"unschedulable": True})


def of(*objects: Any, any_gpu: bool = False) -> Savings:
    return savings(a_snapshot(*objects), Prices(PRICES), any_gpu=any_gpu)


def leaving(found: Savings) -> list[str]:
    return sorted(name for group in found.groups for name in group.removable)


def figures(found: Savings) -> tuple[float, ...]:
    return tuple(round(each, 6) for each in (found.now, found.saved, found.repacked, found.least))


def test_two_half_used_nodes_become_one() -> None:
    found = of(Machine("a").node(), Machine("b").node(), *a_share("x", "a", 0.5), *a_share("y", "b", 0.4))
    assert leaving(found) == ["b"]
    assert [(move.pod, move.source, move.target) for move in found.moving.moves] == [("team/y", "b", "a")]
    assert figures(found) == (1.6, 0.8, 0.8, 0.8)
    assert (found.moving.gpus, found.moving.without_controller) == (0.4, 1)


def test_pods_stay_in_their_node_pool_and_where_their_volumes_are() -> None:
    workers, zone = {NODE_POOL: "w"}, "topology.kubernetes.io/zone"
    nodes = (Machine("a").node(), Machine("b").node(more_labels=workers))
    x, y = (a_share(*each, schedulerName="kai-scheduler") for each in (("x", "a", 0.5), ("y", "b", 0.4)))
    in_shard = [each.model_copy(update={"labels": each.labels | workers}) for each in y]
    assert not leaving(of(*nodes, *x, *in_shard))
    mounted = a_share("y", "b", 0.4, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "models"}}])
    bound = (a_volume_claim(volume="pv"), in_zone("pv", "z"))
    apart = [Machine(name).node(more_labels={zone: at}) for name, at in (("a", "other"), ("b", "z"))]
    assert leaving(of(*apart, *x, *mounted, *bound)) == ["a"], "only the other pod may move"


def test_an_empty_node_is_removable_without_moves() -> None:
    found = of(Machine("a").node(), Machine("b").node(), *a_share("x", "a", 0.5))
    assert (leaving(found), found.moving.moves) == (["b"], ())


def test_nodes_whose_pods_do_not_fit_elsewhere_stay() -> None:
    found = of(*(Machine(each).node() for each in "abc"), *(p for each in "abc" for p in a_share(each, each, 0.6)))
    assert (leaving(found), figures(found)) == ([], (2.4, 0, 2.4, 2.4))


def test_pods_move_to_other_instance_types_with_the_same_gpus() -> None:
    nodes = [Machine("a").node(), Machine("b").node(), Machine("c", gpus=2, type="large").node()]
    found = of(*nodes, *a_share("x", "a", 0.7), *a_share("y", "b", 0.7))
    assert leaving(found) == ["a", "b"], "both are dearer than the one"
    assert {move.target for move in found.moving.moves} == {"c"}
    found = of(*nodes, *a_share("x", "a", 0.7), *a_share("y", "b", 0.7), *a_share("z", "c", 0.7))
    assert (leaving(found), found.moving.moves[0].target) == (["a"], "c")


def test_pods_keep_their_gpu_product_unless_any_gpu_is_set() -> None:
    objects = [Machine("a").node(), Machine("b", A100, type="other").node(), *a_share("x", "b", 0.5)]
    assert leaving(of(*objects)) == ["a"]
    found = of(*objects, any_gpu=True)
    assert leaving(found) == ["b"]
    assert found.moving.moves[0].target == "a"


@pytest.mark.parametrize("spec", [{"nodeSelector": {"zone": "z"}}, {}])
def test_selectors_and_taints_are_respected(spec: dict[str, Any]) -> None:
    labels = {"zone": "z"} if spec else {}
    nodes = [Machine("a").node(taints=[] if spec else ["dedicated"]), Machine("b").node(more_labels=labels)]
    found = of(*nodes, *a_share("x", "b", 0.5, **spec), *a_share("y", "b", 0.4, **spec))
    assert leaving(found) == ["a"]
    assert found.least == 0.8


@pytest.mark.parametrize("by", ["workspace", "annotation", "discrepancy"])
def test_nodes_of_workspaces_and_protected_nodes_stay(by: str) -> None:
    annotations = {"karpenter.sh/do-not-disrupt": "true"} if by == "annotation" else {}
    owner = [a_workspace(worker_nodes=["b"])] if by == "workspace" else []
    reservation, pod = a_share("y", "b", 0.4, annotations=annotations)
    pods = [*a_share("x", "a", 0.5), pod, *([] if by == "discrepancy" else [reservation])]
    found = of(Machine("a").node(), Machine("b").node(), *pods, *owner)
    assert list(found.stays) == ["b"]
    assert "b" not in leaving(found)


def test_free_gpus_of_a_workspaces_nodes_take_no_pods_of_others() -> None:
    owner = a_workspace(worker_nodes=["b"])
    found = of(Machine("a").node(), Machine("b").node(), *a_share("x", "a", 0.5), owner)
    assert (leaving(found), figures(found)) == ([], (1.6, 0, 1.6, 1.6))


def test_gpus_are_counted_if_prices_are_not_known() -> None:
    nodes = [Machine("a").node(), Machine("b", gpus=2, type="unheard-of").node()]
    found = of(*nodes, *a_share("x", "a", 0.5))
    assert (found.priced, figures(found)) == (False, (3, 2, 1, 1))


Share = tuple[str, str, float]
"""Its name, its node and its size; each has a GPU of its own."""


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Machine], list[Share]]:
    machines = [
        Machine(f"n{number}", L4, *draw(st.sampled_from([(1, "small"), (2, "large")])))
        for number in range(draw(st.integers(1, 4)))
    ]
    slots = [machine.name for machine in machines for _ in range(machine.gpus)]
    sizes = [draw(st.sampled_from([None, 0.2, 0.3, 0.5, 0.6, 0.7])) for _ in slots]
    found = enumerate(zip(slots, sizes, strict=True))
    return machines, [(f"p{number}", node, size) for number, (node, size) in found if size is not None]


def found_for(machines: Sequence[Machine], shares: Sequence[Share]) -> Savings:
    return of(*(each.node() for each in machines), *(pod for share in shares for pod in a_share(*share)))


def fits(sizes: Sequence[float], rooms: Sequence[float]) -> bool:
    """Whether all of these have a place, by exhaustive search."""
    if not sizes:
        return True
    return any(
        fits(sizes[1:], [*rooms[:at], room - sizes[0], *rooms[at + 1 :]])
        for at, room in enumerate(rooms)
        if room >= sizes[0] - 1e-9 and room not in rooms[:at]
    )


def subsets(machines: Sequence[Machine]) -> Iterator[tuple[Machine, ...]]:
    return (chosen for size in range(len(machines) + 1) for chosen in combinations(machines, size))


def price(machines: Sequence[Machine]) -> float:
    return sum(PRICES[each.type] for each in machines)


def exact_repacked(machines: Sequence[Machine], shares: Sequence[Share]) -> float:
    sizes = sorted((size for *_, size in shares), reverse=True)
    return min(price(kept) for kept in subsets(machines) if fits(sizes, [1.0 for m in kept for _ in range(m.gpus)]))


def exact_saved(machines: Sequence[Machine], shares: Sequence[Share]) -> float:
    def possible(going: Sequence[Machine]) -> bool:
        gone = {each.name for each in going}
        staying = [machine for machine in machines if machine not in going]
        rooms = [1 - size for _, node, size in shares if node not in gone]
        rooms += [1.0 for m in staying for _ in range(m.gpus - sum(node == m.name for _, node, _ in shares))]
        return fits([size for _, node, size in shares if node in gone], rooms)

    return max(price(going) for going in subsets(machines) if possible(going))


@given(clusters())
def test_the_bound_holds_and_the_proposed_moves_are_possible(cluster: tuple[list[Machine], list[Share]]) -> None:
    machines, shares = cluster
    found = found_for(machines, shares)
    exact = exact_repacked(machines, shares)
    assert found.least <= exact + 1e-6
    assert found.repacked >= exact - 1e-6
    assert found.saved <= exact_saved(machines, shares) + 1e-6
    assert found.repacked <= found.now - found.saved + 1e-6
    moved = {move.pod: move.target for move in found.moving.moves}
    after = [(moved.get(f"team/{name}", node), size) for name, node, size in shares]
    assert not {node for node, _ in after} & set(leaving(found))
    for machine in machines:
        assert fits([size for node, size in after if node == machine.name], [1.0] * machine.gpus)


def test_most_small_clusters_are_packed_as_the_exact_search_does() -> None:
    """For 150 clusters, both figures and the bound are exact in all but a few."""
    rng = random.Random(7)
    exact = [0, 0, 0]
    for _ in range(60):
        machines = [Machine(f"n{n}", L4, *rng.choice([(1, "small"), (2, "large")])) for n in range(rng.randint(2, 4))]
        slots = [machine.name for machine in machines for _ in range(machine.gpus)]
        shares = [
            (f"p{n}", node, rng.choice([0.2, 0.3, 0.5, 0.6, 0.7])) for n, node in enumerate(slots) if rng.random() < 0.8
        ]
        found = found_for(machines, shares)
        best = exact_repacked(machines, shares)
        exact[0] += abs(found.repacked - best) < 1e-6
        exact[1] += abs(found.least - best) < 1e-6
        exact[2] += abs(found.saved - exact_saved(machines, shares)) < 1e-6
    assert min(exact) >= 56, exact


def test_nodes_and_pods_that_are_not_counted_are_listed() -> None:
    waiting = a_waiting_pod("w", gpu_fraction="0.5")
    own = {ENVIRONMENT: a_snapshot().environment.name, DEMAND: "d"}
    request = a_waiting_pod("r", gpus=1, namespace=TRIGGER_NAMESPACE, more_labels=own)
    found = of(Machine("a").node(), cordoned(Machine("b")), waiting, request)
    assert found.now == PRICES["small"]
    assert found.left_out == {"b": "not ready, cordoned or being deleted"}
    assert found.pending == 1


def test_a_cluster_without_usable_nodes_saves_nothing() -> None:
    found = of(cordoned(Machine("a")))
    assert (found.groups, figures(found)) == ((), (0, 0, 0, 0))


def test_the_command_prints_removable_nodes_moves_and_the_bound() -> None:
    arguments = ["savings", "-f", str(CHECKOUT / "examples" / "cluster"), "--output", "json"]
    done = CliRunner().invoke(app, arguments)
    reported = json.loads(done.stdout)
    assert reported["unit"] == "price"
    assert reported["least"] <= reported["repacked"] <= reported["now"] - reported["saved"] + 1e-6
    going = {name for group in reported["groups"] for name in group["removable"]}
    assert {move["source"] for move in reported["moving"]["moves"]} <= going
    shown = CliRunner().invoke(app, arguments[:3]).stdout
    assert all(f"{name}" in shown for name in going)
    assert "Lower bound of any packing onto these nodes" in shown
