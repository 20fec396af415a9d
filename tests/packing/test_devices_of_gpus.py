"""Nodes whose GPUs are allocatable as several devices each. The devices of a node count together."""

import random

import pytest

from plimsoll.packing.nodes import FreeNode, NodeShape, PodNeed, pack_nodes
from tests.packing.comparing import worse_than_exact

CASES = 100
WORSE_THAN_EXACT = CASES // 100
FOURS = NodeShape("fours", "A", 4, 48_000, 196_608, 5.67, 58, per_gpu=4)
TEN = NodeShape("ten", "B", 1, 48_000, 196_608, 9.0, 58, per_gpu=10)


def pods(count: int, devices: int, *kinds: str, cpu_milli: int = 0) -> list[PodNeed]:
    return [PodNeed(f"pod-{n:03}", dict.fromkeys(kinds, 1000), devices, cpu_milli) for n in range(count)]


@pytest.mark.parametrize(
    ("count", "devices", "nodes"), [(5, 3, 1), (3, 5, 1), (6, 3, 2), (4, 5, 2), (16, 1, 1), (17, 1, 2), (2, 16, 2)]
)
def test_devices_of_a_pod_may_be_of_different_gpus(count: int, devices: int, nodes: int) -> None:
    found = pack_nodes(pods(count, devices, "A"), [FOURS])
    assert (len(found.new_nodes), found.gpus, found.least, found.unplaced) == (nodes, 4 * nodes, 4 * nodes, ())


def test_gpus_are_counted_not_devices() -> None:
    """Five devices are one GPU of ten devices, or two GPUs of four."""
    one = NodeShape("one", "A", 1, 48_000, 196_608, 1.0, 58, per_gpu=4)
    found = pack_nodes(pods(5, 1, "A", "B"), [one, TEN])
    assert ([node.shape for node in found.new_nodes], found.least) == (["ten"], 1)


def test_reservation_pods_are_only_for_shares_of_gpus() -> None:
    few = NodeShape("few", "A", 1, 48_000, 196_608, 1.0, 4, per_gpu=4)
    assert pack_nodes(pods(4, 1, "A"), [few]).gpus == 1


def test_free_devices_are_used_first() -> None:
    free = FreeNode("node", "A", (1000,) * 7, 48_000, 196_608, 50)
    found = pack_nodes(pods(3, 3, "A"), [FOURS], [free])
    assert [(node.node, len(node.pods)) for node in found.nodes] == [("node", 2), (None, 1)]


def _random_case(generator: random.Random) -> tuple[list[PodNeed], list[NodeShape], list[FreeNode]]:
    scarce = generator.random() < 0.4
    needs = [
        PodNeed(
            f"pod-{number:02}",
            dict.fromkeys(generator.choice((["A"], ["B"], ["A", "B"])), 1000),
            generator.choice((1, 1, 2, 3, 4, 5, 7)),
            generator.choice((0, 1, 2, 4, 7)) if scarce else 1,
            generator.choice((0, 1, 3, 5)),
        )
        for number in range(generator.randint(1, 9))
    ]
    shapes = [
        NodeShape("a-1", "A", 1, 8, 8, pods=generator.choice((3, 110)), per_gpu=4),
        NodeShape("a-2", "A", 2, 24, 24, pods=110, per_gpu=4),
        NodeShape("b-1", "B", 1, 12, 16, pods=generator.choice((4, 110)), per_gpu=7),
    ]
    free = [
        FreeNode(f"node-{number}", generator.choice("AB"), (1000,) * generator.randint(1, 5), 6, 12, 110)
        for number in range(generator.randint(0, 2))
    ]
    return needs, [shape for shape in shapes if generator.random() < 0.8], free


def test_an_exact_packing_is_hardly_ever_better() -> None:
    worse = {seed: how for seed in range(CASES) if (how := worse_than_exact(*_random_case(random.Random(seed))))}
    assert len(worse) <= WORSE_THAN_EXACT, worse
