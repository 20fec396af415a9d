"""What a GPUDemand says of its pods."""

import json

from plimsoll.model.gpu_demand import GPUDemand, GPUDemandStatus
from plimsoll.model.share import GPUShare
from plimsoll.plan.demand_status import packed_demand
from plimsoll.plan.packing import ANY, Item, Packing, pack


def demand_of(*milli: int, kind: str = ANY) -> GPUDemandStatus:
    items = {f"team/secret-{number}": Item(f"team/secret-{number}", {kind: each}) for number, each in enumerate(milli)}
    shares = {f"uid-{number:05}": GPUShare(milli=each) for number, each in enumerate(milli)}
    return packed_demand(shares, items, pack(items.values()))


def test_what_is_needed() -> None:
    status = demand_of(600, 600, 400, 600, kind="T4")
    assert (status.gpus, status.least_gpus, status.pod_count) == (3, 3, 4)
    assert [(each.gpus, each.shares, each.kinds) for each in status.patterns] == [
        (2, (600,), ("T4",)),
        (1, (600, 400), ("T4",)),
    ]


def test_five_thousand_pods_stay_far_below_the_limit_of_an_object() -> None:
    status = demand_of(*(100 + number % 800 for number in range(5000)))
    written = json.dumps(status.as_manifest())
    assert len(written) < 100_000
    assert (status.pod_count, len(status.pods)) == (5000, 500)


def test_names_of_pods_are_not_told() -> None:
    assert "secret" not in json.dumps(demand_of(600, 500, 300).as_manifest())


def test_equal_demand_is_written_equally_and_read_back() -> None:
    status = demand_of(600, 500, 300)
    assert status.as_manifest() == demand_of(600, 500, 300).as_manifest()
    read = GPUDemand.read({"metadata": {"name": "any"}, "status": status.as_manifest() | {"later": 1}})
    assert read.status == status


def test_no_demand() -> None:
    assert packed_demand({}, {}, Packing()).as_manifest() == {"phase": "Pending"}
