"""Catalog: the known instance types, and which of them a model fits.

The built-in table (`instance_types.csv`) holds the Azure, Arc and AWS types that KAITO knows, with the nominal memory
of one GPU. `other_vendors.csv` tells types without NVIDIA GPUs by the names of their families. Live sources (nodes,
NodePools, the EC2 API) take precedence over the table: a GPU reports slightly less than its nominal memory, and a table
gets outdated.
"""

import csv
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Final, Self

from plimsoll.errors import PlimsollError
from plimsoll.estimating import Estimate, Need, Settings, estimate
from plimsoll.model import Snapshot
from plimsoll.model.cluster import InstanceType, product_words
from plimsoll.text import did_you_mean, figure, nearest

KAITO_NAMES: Final = {"standard_nd96asr_a100_v4": "Standard_ND96asr_v4"}
"""KAITO's spellings in lower case, and the names that the cloud has."""
_USABLE_SHARE: Final = 0.92
"""A GPU reports at least this fraction of its nominal memory (an A10 with 24 GiB: 23028 MiB)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An instance type whose live GPUs differ from the declared ones; the live ones take precedence."""

    declared: InstanceType
    live: InstanceType

    def __str__(self) -> str:
        live, declared = self.live, self.declared
        return (
            f"{live.name}: {live.describe_gpus()} by {live.source}, {declared.describe_gpus()} by {declared.source}; "
            "the first value is used"
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """An instance type that one replica fits."""

    type: InstanceType
    estimate: Estimate
    reasons: tuple[str, ...]
    """Why it fits, and how many nodes it takes."""

    @property
    def price_per_hour(self) -> float | None:
        """Price of all nodes of one replica."""
        price = self.type.price_per_hour
        return None if price is None else price * self.estimate.nodes


class Catalog:
    """Instance types by name, case-insensitive; immutable."""

    def __init__(self, types: Iterable[InstanceType], differences: Iterable[Difference] = ()) -> None:
        self._types: dict[str, InstanceType] = {each.name.casefold(): each for each in types}
        self.differences: tuple[Difference, ...] = tuple(differences)
        """Where live sources contradict declared figures."""

    @classmethod
    def builtin(cls) -> "Catalog":
        """The built-in table."""
        return _builtin()

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Catalog":
        """The built-in table, with the cloud APIs' instance types and the Environment's prices.

        Prices of unknown types are left out: they may be those of live nodes.
        """
        found = cls.builtin()
        if snapshot.instance_types:
            found = found.with_types(snapshot.instance_types)
        prices = snapshot.environment.spec.catalog.prices
        return found.with_prices({name: price for name, price in prices.items() if found.lookup(name)})

    @property
    def types(self) -> tuple[InstanceType, ...]:
        """All instance types, by name."""
        return tuple(sorted(self._types.values(), key=lambda each: each.name.casefold()))

    def lookup(self, name: str) -> InstanceType | None:
        """The instance type of that name, case-insensitive; None if it is not known."""
        return self._types.get(self.real_name(name).casefold())

    def real_name(self, name: str) -> str:
        """The cloud's own name, where KAITO spells it otherwise; else the name itself."""
        return KAITO_NAMES.get(name.strip().casefold(), name.strip())

    def other_vendor(self, name: str) -> str:
        """The accelerators of a type that has no NVIDIA GPUs, listed or not; empty for any other name."""
        known, written = self.lookup(name), name.strip()
        if known is not None:
            return "" if known.nvidia else known.product
        return next((product for pattern, product in _other_vendors() if pattern.fullmatch(written)), "")

    def near(self, name: str) -> tuple[str, ...]:
        """At most three similar names of types with NVIDIA GPUs, closest first."""
        return nearest(name, [each.name for each in self.types if each.nvidia])

    def with_types(self, types: Iterable[InstanceType]) -> Self:
        """A catalog with live types merged over this one; their figures take precedence, and contradictions are
        recorded.

        Cloud, vCPUs, host memory, number of pods and price are kept where a live type does not report them.
        """
        merged = dict(self._types)
        differences = list(self.differences)
        for live in types:
            key = live.name.casefold()
            known = merged.get(key)
            if known is None:
                merged[key] = live
                continue
            if not _alike(known, live):
                differences.append(Difference(known, live))
            merged[key] = replace(
                live,
                name=known.name,
                cloud=live.cloud or known.cloud,
                vcpus=live.vcpus or known.vcpus,
                memory_mib=live.memory_mib or known.memory_mib,
                max_pods=live.max_pods or known.max_pods,
                price_per_hour=known.price_per_hour if live.price_per_hour is None else live.price_per_hour,
            )
        return type(self)(merged.values(), differences)

    def with_prices(self, prices: Mapping[str, float]) -> Self:
        """A catalog with prices of one instance per hour, by instance type, case-insensitive.

        Raises UnknownInstanceTypeError for a name that the catalog does not contain.
        """
        if not prices:
            return self
        priced = dict(self._types)
        for name, price in prices.items():
            known = self.lookup(name)
            if known is None:
                raise UnknownInstanceTypeError(name, self.near(name))
            priced[known.name.casefold()] = replace(known, price_per_hour=price)
        return type(self)(priced.values(), self.differences)

    def feasible(
        self,
        need: Need,
        settings: Settings | None = None,
        *,
        context_length: int | None = None,
        clouds: Collection[str] | None = None,
        names: Collection[str] | None = None,
        allows: Callable[[InstanceType], bool] = lambda _: True,
    ) -> tuple[Candidate, ...]:
        """NVIDIA instance types that one replica fits, cheapest first; `clouds`, `names` and `allows` restrict the
        choice. `context_length` is the context length that must fit, in tokens.

        Sorted by the price of all nodes of a replica where prices are known. Types without a price come last, by fewest
        GPUs, then least GPU memory, fewest nodes, fewest vCPUs.
        """
        wanted = None if names is None else {name.casefold() for name in names}
        found = []
        for each in self.types:
            if not each.nvidia or (clouds is not None and each.cloud not in clouds):
                continue
            if (wanted is not None and each.name.casefold() not in wanted) or not allows(each):
                continue
            outcome = estimate(need, each.node_gpus, settings, context_length)
            if isinstance(outcome, Estimate):
                found.append(Candidate(each, outcome, _reasons(each, outcome)))
        return tuple(sorted(found, key=_cost))


class UnknownInstanceTypeError(PlimsollError):
    """A name that the catalog does not contain; the hint has similar names."""

    def __init__(self, name: str, near: Collection[str]) -> None:
        super().__init__(f"instance type {name!r} is not in the catalog", did_you_mean(near))


def _cost(candidate: Candidate) -> tuple[bool, float, int, int, int, float, str]:
    kind, nodes = candidate.type, candidate.estimate.nodes
    price = candidate.price_per_hour
    return (
        price is None,
        price or 0,
        nodes * kind.gpus,
        nodes * kind.gpus * kind.gpu_memory_mib,
        nodes,
        nodes * kind.vcpus if kind.vcpus else math.inf,
        kind.name.casefold(),
    )


def _reasons(kind: InstanceType, outcome: Estimate) -> tuple[str, ...]:
    nodes = "1 node" if outcome.nodes == 1 else f"{outcome.nodes} nodes"
    total = outcome.nodes * kind.gpus
    gpus = "1 GPU" if total == 1 else f"{total} GPUs"
    reasons = [
        f"one replica needs {outcome.min_gpus} of its GPUs ({kind.describe_gpus()}): {nodes}, {gpus} in total",
        f"figures from {kind.source}" + (f", {kind.cloud}" if kind.cloud else ""),
    ]
    if kind.price_per_hour is None:
        reasons.append("price not known: ranked by GPUs, then GPU memory, nodes, vCPUs")
    else:
        reasons.append(f"{figure(kind.price_per_hour * outcome.nodes)} an hour for {nodes}")
    return tuple(reasons)


def _alike(declared: InstanceType, live: InstanceType) -> bool:
    """Whether both can be the same GPUs: same count, memory nominal or slightly less, and a common product name."""
    words, live_words = product_words(declared.product), product_words(live.product)
    return (
        declared.gpus == live.gpus
        and declared.gpu_memory_mib * _USABLE_SHARE <= live.gpu_memory_mib <= declared.gpu_memory_mib / _USABLE_SHARE
        and (words <= live_words or live_words <= words)
    )


def _rows(table: str) -> Iterator[dict[str, str]]:
    text = resources.files("plimsoll.cluster.catalog").joinpath(table).read_text("utf-8")
    yield from csv.DictReader(text.splitlines())


@cache
def _other_vendors() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Names of families, as clouds form them, and their accelerators."""
    return tuple((re.compile(row["pattern"], re.IGNORECASE), row["product"]) for row in _rows("other_vendors.csv"))


@cache
def _builtin() -> Catalog:
    return Catalog(
        InstanceType(
            name=row["name"],
            cloud=row["cloud"],
            gpus=int(row["gpus"]),
            gpu_memory_mib=int(row["gpu_memory_mib"]),
            vcpus=int(row["vcpus"]),
            memory_mib=int(row["memory_mib"]) if row["memory_mib"] else None,
            product=row["product"],
            max_pods=int(row["max_pods"]) if row["max_pods"] else None,
        )
        for row in _rows("instance_types.csv")
    )
