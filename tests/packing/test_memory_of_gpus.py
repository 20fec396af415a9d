"""Of nodes with as few GPUs, those with the least GPU memory are chosen where prices are not known."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.packing import GPU_MILLI, exact_milli
from plimsoll.packing.nodes import NodePacking, NodeShape, PodNeed, pack_nodes
from tests.packing.checking_nodes import check
from tests.packing.exact import least_memory_of_nodes

MIB = {"A10G": 23_000, "A100-40": 40_900, "A100-80": 81_900, "H200": 143_700}


def a_shape(kind: str, gpus: int, price: float | None = None) -> NodeShape:
    return NodeShape(f"{kind} x {gpus}", kind, gpus, 96_000, 1_048_576, price, gpu_memory_mib=MIB[kind])


def shares(*mib: int, devices: int = 1) -> list[PodNeed]:
    """Shares in MiB, on each kind that has as much."""
    milli = ({kind: exact_milli(size, memory) for kind, memory in MIB.items() if size <= memory} for size in mib)
    return [PodNeed(f"pod-{number}", sizes, devices) for number, sizes in enumerate(milli)]


def of_new_nodes(packing: NodePacking, shapes: list[NodeShape]) -> tuple[int, int]:
    """GPUs of the new nodes, and GiB of these."""
    by_name = {shape.name: shape for shape in shapes}
    nodes = [by_name[node.shape or ""] for node in packing.new_nodes]
    return sum(shape.gpus for shape in nodes), sum(
        shape.gpus * round((shape.gpu_memory_mib or 0) / 1024) for shape in nodes
    )


@pytest.mark.parametrize(
    ("mib", "chosen"),
    [
        ([28_000] * 8, "A100-40 x 8"),
        ([28_000] * 9, "A100-80 x 8"),
        ([28_000] * 17, "H200 x 8"),
        ([60_000], "A100-80 x 8"),
        ([90_000, 1_000], "H200 x 8"),
    ],
)
def test_the_least_memory_that_suffices_on_the_fewest_gpus(mib: list[int], chosen: str) -> None:
    shapes = [a_shape(kind, 8) for kind in ("H200", "A100-40", "A100-80")]
    packing = pack_nodes(shares(*mib), shapes)
    check(packing, shares(*mib), shapes)
    assert [node.shape for node in packing.new_nodes] == [chosen]


@settings(max_examples=150)
@given(
    mib=st.lists(st.sampled_from([1_000, 11_500, 20_000, 28_000, 41_000, 70_000]), min_size=1, max_size=6),
    shapes=st.sets(st.tuples(st.sampled_from(sorted(MIB)), st.sampled_from([1, 2, 4])), min_size=1, max_size=3),
)
def test_a_packing_has_the_least_memory_of_all_with_as_few_gpus(mib: list[int], shapes: set[tuple[str, int]]) -> None:
    offered = [a_shape(*shape) for shape in sorted(shapes)]
    needs = shares(*mib)
    packing = pack_nodes(needs, offered)
    check(packing, needs, offered)
    placed = [need for need in needs if need.name not in packing.unplaced]
    least = least_memory_of_nodes(placed, offered)
    assert least is not None
    assert of_new_nodes(packing, offered) == least
    assert packing.least <= least[0]


def test_a_known_price_goes_before_less_memory() -> None:
    """A type without a price comes after those with one, as for Workspaces."""
    needs = shares(*[20_000] * 2)
    priced = a_shape("H200", 1, 9.0)
    for shapes in ([priced, a_shape("A100-40", 1)], [a_shape("A100-40", 1), a_shape("A100-80", 1, 30.0), priced]):
        assert [node.shape for node in pack_nodes(needs, shapes).new_nodes] == ["H200 x 1"]


def test_gpus_of_the_same_size_are_equal_whatever_they_report() -> None:
    one, other = (
        NodeShape(name, name, 1, 96_000, 2**20, gpu_memory_mib=mib) for name, mib in (("L4", 23_034), ("A10G", 23_028))
    )
    two = NodeShape("two", "L4", 2, 96_000, 2**20, gpu_memory_mib=23_034)
    needs = [PodNeed(f"pod-{n}", dict.fromkeys(("L4", "A10G"), 600)) for n in range(2)]
    assert [node.shape for node in pack_nodes(needs, [one, other, two]).new_nodes] == ["two"], "fewer nodes"


def test_without_memory_and_price_the_number_of_nodes_decides() -> None:
    shapes = [NodeShape(f"{gpus} GPUs", "L4", gpus, 96_000, 1_048_576) for gpus in (1, 4)]
    packing = pack_nodes([PodNeed(f"pod-{n}", {"L4": GPU_MILLI}) for n in range(4)], shapes)
    assert Counter(node.shape for node in packing.new_nodes) == {"4 GPUs": 1}
