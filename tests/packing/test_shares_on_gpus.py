"""Cases with a known solution: KAI's node-scale-adjuster's requests, and the GPUs that the shares really need."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.packing import exact_milli
from plimsoll.packing.gpus import ANY, FreeGPU, Item, pack
from tests.packing.checking import check, some_gpus, some_items

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("milli", "gpus"),
    [
        ((), 0),
        ((500,), 1),
        ((500, 500), 1),
        ((600, 600), 2),
        ((600, 600, 600), 3),
        ((100,) * 11, 2),
        ((810,) * 3 + (190,) * 3, 3),
        ((470,) * 4 + (60,) * 2, 2),
        ((334, 334, 334), 2),
        ((333, 333, 333), 1),
        ((1000, 1, 1), 2),
        (({"T4": 500}, {"A100": 500}), 2),
        (({"T4": 500}, {ANY: 500}, {"A100": 500}, {ANY: 500}), 2),
        (({"T4": 500, "A100": 250}, {"A100": 750}), 1),
        (({"T4": 500, "A100": 250}, {"T4": 500}, {"A100": 750}), 2),
        (({"a": 400, "b": 400}, {"b": 400, "c": 400}, {"a": 400, "c": 400}), 2),
    ],
)  # fmt: skip
def test_fewest_gpus(milli: tuple[int | dict[str, int], ...], gpus: int) -> None:
    items = some_items(*milli)
    packing = pack(items)
    check(packing, items)
    assert packing.gpus == packing.least == gpus


def test_nothing_is_packed_optimally() -> None:
    packing = pack([])
    assert packing.exact
    assert (packing.bins, packing.gap) == ((), 0)


def test_best_fit_is_beaten() -> None:
    """Best fit decreasing combines the largest shares with the best available rest, and so breaks up the triples."""
    items = some_items(*[510] * 6, *[270] * 6, *[260] * 6, *[230] * 12)
    packing = pack(items)
    check(packing, items)
    assert (packing.gpus, packing.best_fit) == (9, 11)


def test_the_solver_prints_nothing() -> None:
    """In a process of its own, because a banner is printed once."""
    program = """
from plimsoll.packing.gpus import pack
from tests.packing.checking import some_items

pack(some_items(*[510] * 6, *[270] * 6, *[260] * 6, *[230] * 12))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_free_parts_come_before_new_gpus() -> None:
    items = some_items(500, 300, 300, 700)
    supply = some_gpus(("T4", 500), ("T4", 600))
    packing = pack(items, supply)
    check(packing, items, supply)
    assert packing.gpus == 1
    assert {each.gpu: each.items for each in packing.bins} == {
        "gpu-0000": ("item-0000",),
        "gpu-0001": ("item-0001", "item-0002"),
        None: ("item-0003",),
    }


def test_a_tight_supply_is_used_well() -> None:
    """Best fit decreasing puts 400 onto the GPU with 400 free, and then has no place for 350 and 350."""
    items = some_items(600, 400, 350, 350)
    supply = some_gpus(("T4", 1000), ("T4", 700))
    packing = pack(items, supply)
    check(packing, items, supply)
    assert packing.gpus == 0


def test_a_free_part_of_another_kind_is_not_used() -> None:
    items = some_items({"A100": 300})
    packing = pack(items, some_gpus(("T4", 1000)))
    assert packing.gpus == 1
    assert packing.bins[0].kinds == ("A100",)


def test_shares_that_no_gpu_can_hold_do_not_hide_others() -> None:
    items = some_items(500, 1200, {"A100": 0}, {}, {"A100": 2000, "T4": 400})
    packing = pack(items)
    check(packing, items)
    assert dict(packing.unplaced) == {
        "item-0001": "takes 1200 thousandths of a GPU, and a share takes between 1 and 1000",
        "item-0002": "takes 0 of A100 thousandths of a GPU, and a share takes between 1 and 1000",
        "item-0003": "no kind of GPU may hold it",
    }
    assert packing.gpus == 1


def test_shares_of_kinds_that_may_not_be_new_take_what_is_free() -> None:
    items = some_items({"T4": 600}, {"T4": 600}, {ANY: 400})
    packing = pack(items, some_gpus(("T4", 1000)), new_kinds=["A100"])
    assert packing.unplaced == (("item-0001", "no free GPU can hold it, and none of T4 may be new"),)
    assert [each.items for each in packing.bins] == [("item-0000", "item-0002")]


def test_shares_of_kinds_that_may_not_be_new_have_a_bound_where_sizes_are_rounded() -> None:
    """Sizes in MiB of a GPU with 81559 MiB are no whole numbers of the units of a GPU."""
    bound, either, other = (exact_milli(mib, 81_559) for mib in (30_000, 50_000, 60_000))
    items = some_items({"T4": bound}, {"T4": either, "A100": either}, {"A100": other})
    packing = pack(items, [FreeGPU("gpu", "T4", exact_milli(55_000, 81_559))], new_kinds=["A100"])
    assert (packing.unplaced, packing.gpus, packing.least) == ((), 2, 2)
    assert [(price.kind, price.count) for price in packing.supply_prices] == [("T4", 1)]


def test_the_limit_in_seconds_falls_back_to_best_fit() -> None:
    generator = random.Random(7)
    items = some_items(*(generator.randint(150, 450) for _ in range(600)))
    quick, full = pack(items, seconds=0), pack(items)
    assert not quick.exact
    assert quick.gpus <= quick.best_fit
    assert full.exact
    assert full.gap == 0
    assert quick.least <= full.least


def test_many_different_sizes() -> None:
    generator = random.Random(7)
    items = some_items(*(generator.randint(1, 999) for _ in range(900)))
    packing = pack(items)
    check(packing, items)
    assert packing.exact
    assert packing.gap == 0


def test_many_different_sizes_that_fill_gpus() -> None:
    """Three shares fill each GPU exactly."""
    generator = random.Random(7)
    pairs = [(generator.randint(260, 480), generator.randint(260, 480)) for _ in range(300)]
    items = some_items(*(size for one, other in pairs for size in (one, other, 1000 - one - other)))
    packing = pack(items)
    check(packing, items)
    assert packing.least == 300
    assert packing.gap <= 1


@pytest.mark.parametrize("seed", [19, 207])
def test_a_few_dozens_of_sizes_that_fill_gpus(seed: int) -> None:
    """Diving leaves one GPU too many: the integer program over its patterns saves it."""
    generator = random.Random(seed)
    number, sizes = generator.randint(12, 25), list[int]()
    for _ in range(number):
        one = generator.randint(260, 490)
        other = generator.randint(251, (1000 - one) // 2 + 1)
        sizes += one, other, 1000 - one - other
    items = some_items(*sizes)
    packing = pack(items)
    check(packing, items)
    assert (packing.gpus, packing.gap) == (number, 0)


def test_many_different_sizes_on_several_kinds() -> None:
    generator = random.Random(7)
    kinds = ("T4", "A100", "H100")
    items = some_items(
        *(
            dict.fromkeys(generator.sample(kinds, generator.randint(1, 3)), 10 * generator.randint(1, 99))
            for _ in range(1200)
        )
    )
    packing = pack(items)
    check(packing, items)
    assert packing.gap <= 1


def test_few_sizes_on_many_sets_of_kinds() -> None:
    random_numbers = random.Random(1)
    kinds = [f"kind-{number}" for number in range(8)]
    items = some_items(
        *(
            dict.fromkeys(
                random_numbers.sample(kinds, random_numbers.randint(1, 7)),
                random_numbers.choice([810, 650, 590, 550, 480, 470, 460, 440, 370, 350, 330, 320, 290, 230, 120, 60]),
            )
            for _ in range(1000)
        )
    )
    packing = pack(items, seconds=3)
    check(packing, items)
    assert packing.gap <= 1
    alone = pack([Item(item.name, {ANY: max(item.milli.values())}) for item in items])
    assert packing.lower_bound >= alone.lower_bound - 1e-6


def test_the_limit_ends_the_search() -> None:
    generator = random.Random(7)
    items = some_items(*(generator.randint(200, 400) for _ in range(400)))
    packing = pack(items, seconds=0.01)
    assert not packing.exact
    check(packing, items)


def test_a_solved_bound_is_tight() -> None:
    packing = pack(some_items(*[600] * 10, *[500] * 10))
    assert packing.exact
    assert packing.lower_bound == pytest.approx(15)


def test_many_free_gpus_need_little_time() -> None:
    supply = [FreeGPU(f"{number}", "T4", 100 + number % 800) for number in range(20_000)]
    items = [Item(f"{number}", {"T4": 50 + number % 300}) for number in range(2_000)]
    packing = pack(items, supply)
    assert packing.gpus == 0
    check(packing, items, supply)
