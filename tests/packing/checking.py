"""Checks the properties of every packing without the packer's own code."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from plimsoll.packing import Milli
from plimsoll.packing.gpus import ANY, Bin, FreeGPU, Item, Packing


def some_items(*milli: Milli | Mapping[str, Milli]) -> list[Item]:
    """Items a, b, ... of these thousandths; a plain number holds for every kind."""
    return [
        Item(f"item-{number:04}", each if isinstance(each, Mapping) else {ANY: each})
        for number, each in enumerate(milli)
    ]


def some_gpus(*free: tuple[str, int]) -> list[FreeGPU]:
    """Free GPUs of (kind, thousandths)."""
    return [FreeGPU(f"gpu-{number:04}", kind, milli) for number, (kind, milli) in enumerate(free)]


def taken(item: Item, kind: str) -> Milli | None:
    return item.milli.get(kind, item.milli.get(ANY))


def check(
    packing: Packing, items: Sequence[Item], supply: Iterable[FreeGPU] = (), new: Collection[str] | None = None
) -> None:
    """Each item is placed once, no GPU exceeds its capacity, no item is on a kind that it does not allow, and the
    figures are consistent. `new` are the kinds that may be new; None: every kind."""
    named = {item.name: item for item in items}
    free = {gpu.name: gpu for gpu in supply}
    placed = [name for each in packing.bins for name in each.items] + [name for name, _ in packing.unplaced]
    assert Counter(placed) == Counter(named.keys())
    used = [each.gpu for each in packing.bins if each.gpu is not None]
    assert len(used) == len(set(used))
    for each in packing.bins:
        assert each.items
        assert each.kinds
        for kind in each.kinds:
            _check_bin(each, kind, named, 1000 if each.gpu is None else free[each.gpu].free)
        if each.gpu is not None:
            assert each.kinds == (free[each.gpu].kind,)
    assert packing.least <= packing.gpus <= packing.best_fit
    assert packing.lower_bound <= packing.gpus + 1e-6
    check_proof(packing, named.values(), new)


def _check_bin(each: Bin, kind: str, named: Mapping[str, Item], capacity: Milli) -> None:
    sizes = [taken(named[name], kind) for name in each.items]
    assert None not in sizes, f"{each} holds what may not be on {kind!r}"
    assert sum(size or 0 for size in sizes) <= capacity


def check_proof(packing: Packing, items: Iterable[Item], new: Collection[str] | None = None) -> None:
    """The duals prove the bound: nothing that fits a new GPU is worth more than 1."""
    value = sum(price.count * price.dual for price in packing.prices)
    value -= sum(price.count * price.dual for price in packing.supply_prices)
    assert abs(value - packing.lower_bound) <= 1e-6 * max(1.0, value)
    assert all(price.dual >= 0 for price in packing.prices)
    kinds = {kind for item in items for kind in item.milli} | {price.kind for price in packing.supply_prices}
    for kind in kinds:
        worth = _most_worth(packing, kind)
        assert worth[1000] <= 1 + 1e-6 or (new is not None and kind not in new)
        for supply in packing.supply_prices:
            if supply.kind == kind:
                assert worth[_whole(supply.free)] <= supply.dual + 1e-6


def _most_worth(packing: Packing, kind: str) -> list[float]:
    """The highest worth of any set of items for each capacity of a GPU of that kind."""
    prices = [(dict(price.milli), price.dual) for price in packing.prices]
    sized = [(_whole(milli.get(kind, milli.get(ANY, 0))), dual) for milli, dual in prices]
    sized = [(size, dual) for size, dual in sized if size and dual > 0]
    worth = [0.0] * 1001
    for capacity in range(1, 1001):
        best = max((worth[capacity - size] + dual for size, dual in sized if size <= capacity), default=0.0)
        worth[capacity] = max(worth[capacity - 1], best)
    return worth


def _whole(milli: Milli) -> int:
    """A number of thousandths without a fraction, as all are that are checked so."""
    assert isinstance(milli, int)
    return milli
