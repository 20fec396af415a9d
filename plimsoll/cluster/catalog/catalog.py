"""Catalog: the known instance types, and which of them a model fits.

The built-in table (`instance_types.csv`) has types of AWS, Azure, Google Cloud and Arc with what GPU Feature Discovery
writes on their nodes. `other_vendors.csv` tells types without NVIDIA GPUs by the names of their families. Labels of
nodes and of NodePools take precedence over the table; the EC2 API does not know these labels, so its answers say only
which types a region has, and the figures of the host.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Self

from plimsoll.cluster.catalog.provider_labels import CLOUDS, KWOK
from plimsoll.cluster.catalog.table import builtin_types, other_vendors
from plimsoll.errors import PlimsollError
from plimsoll.estimating import Estimate, Need, Settings, estimate
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Evidence, InstanceType, product_words
from plimsoll.text import did_you_mean, figure, nearest

KAITO_NAMES: Final = {"standard_nd96asr_a100_v4": "Standard_ND96asr_v4"}
"""KAITO's spellings in lower case, and the names that the cloud has."""
_SAME_MEMORY: Final = 0.92
"""What one GPU reports with different drivers, or with ECC, differs by less than this factor (a T4: 15109 MiB with an
older driver, 15360 with a newer one)."""


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
        """Own price of all nodes of one replica, by which candidates are ordered."""
        price = self.type.price_per_hour
        return None if price is None else price * self.estimate.nodes

    @property
    def shown_price(self) -> float | None:
        """Price of all nodes of one replica, own or of the list."""
        price = self.type.shown_price
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
        """The built-in table, with the cloud APIs' instance types and the Environment's prices; without types that
        no label of a node names.

        Prices of unknown types are left out: they may be those of live nodes.
        """
        found = cls(each for each in cls.builtin().types if not each.attached)
        if snapshot.instance_types:
            found = found.with_types(snapshot.instance_types)
        settings = snapshot.environment.spec.catalog
        found = found.with_discount(settings.discount_percent)
        known = {name: price for name, price in settings.prices.items() if found.lookup(name)}
        return found.with_own_prices(known, settings.currency) if settings.prices else found

    def launched_by(self, group: str) -> Iterator[InstanceType]:
        """The types that a NodePool launches for pods with GPUs if it names none, by the API group of its node
        class: those on which the cloud's provider is known to count GPUs."""
        for each in self.types:
            here = group == KWOK or each.cloud == CLOUDS.get(group)
            if here and not each.retired and (each.karpenter_gpus or not each.nvidia):
                yield each

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
        return next((product for pattern, product in other_vendors() if pattern.fullmatch(written)), "")

    def attached_to(self, machine_type: str) -> tuple[InstanceType, ...]:
        """The types whose GPUs are attached to this machine type, which is in no catalog itself; by name."""
        wanted = machine_type.strip().casefold()
        return tuple(each for each in self.types if each.attached and each.machine_type.casefold() == wanted)

    def near(self, name: str) -> tuple[str, ...]:
        """At most three similar names of types with NVIDIA GPUs, closest first."""
        return nearest(name, [each.name for each in self.types if each.nvidia])

    def with_types(self, types: Iterable[InstanceType]) -> Self:
        """A catalog with live types merged over this one; contradictions are recorded.

        The GPUs of a live type take precedence, except names and memory of a cloud's API, which are not those of
        labels. Other figures are kept where a live type does not report them.
        """
        merged = dict(self._types)
        differences = list(self.differences)
        for live in types:
            key = live.name.casefold()
            known = merged.get(key)
            if known is None:
                merged[key] = live
                continue
            alike = _alike(known, live)
            if not alike:
                differences.append(Difference(known, live))
            merged[key] = _merged(known, live, alike=alike)
        return type(self)(merged.values(), differences)

    def with_own_prices(self, prices: Mapping[str, float], currency: str | None = None) -> Self:
        """A catalog with own prices of one instance per hour, by instance type, case-insensitive. List prices in
        another currency than `currency` are left out, so that all prices can be added.

        Raises UnknownInstanceTypeError for a name that the catalog does not contain.
        """
        priced = {
            key: replace(each, list_price=None) if each.list_price and each.list_price.currency != currency else each
            for key, each in self._types.items()
        }
        for name, price in prices.items():
            known = self.lookup(name)
            if known is None:
                raise UnknownInstanceTypeError(name, self.near(name))
            priced[known.name.casefold()] = replace(known, price_per_hour=price)
        return type(self)(priced.values(), self.differences)

    def with_discount(self, percent: float) -> Self:
        """A catalog whose list prices are so much less, in percent."""
        if not percent:
            return self
        priced = (replace(each, list_price=each.list_price and each.list_price.less(percent)) for each in self.types)
        return type(self)(priced, self.differences)

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
        choice. `context_length` is the context length that must fit, in tokens. Types whose memory is not known are
        left out, and retired ones unless `names` has them.

        Sorted by the own price of all nodes of a replica. Types without one come last, by fewest GPUs, then least GPU
        memory, fewest nodes, fewest vCPUs.
        """
        wanted = None if names is None else {name.casefold() for name in names}
        found = []
        for each in self.types:
            gpus = each.node_gpus
            if not each.nvidia or gpus is None or (clouds is not None and each.cloud not in clouds):
                continue
            if (each.retired if wanted is None else each.name.casefold() not in wanted) or not allows(each):
                continue
            outcome = estimate(need, gpus, settings, context_length)
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
        nodes * kind.gpus * (kind.gpu_memory_mib or 0),
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
    if kind.price_per_hour is not None:
        reasons.append(f"{figure(kind.price_per_hour * outcome.nodes)} an hour for {nodes}")
    elif kind.list_price is None:
        reasons.append("price not known: ranked by GPUs, then GPU memory, nodes, vCPUs")
    else:
        price = replace(kind.list_price, amount=kind.list_price.amount * outcome.nodes)
        reasons.append(f"{price} for {nodes}, ranked by GPUs, then GPU memory, nodes, vCPUs")
    return tuple(reasons)


def _alike(declared: InstanceType, live: InstanceType) -> bool:
    """Whether both can be the same GPUs: as many, with the same name in the cloud's API, else with about the same
    memory and a common product name. A guess contradicts nothing."""
    if declared.gpus != live.gpus:
        return False
    if _of_api(live, declared):
        return not declared.api_gpu_name or not live.api_gpu_name or declared.api_gpu_name == live.api_gpu_name
    words, live_words = product_words(declared.product), product_words(live.product)
    same_name = words <= live_words or live_words <= words or not declared.product_source.known
    memory, live_memory = declared.known_memory_mib, live.known_memory_mib
    if memory is None or live_memory is None:
        return same_name
    return same_name and memory * _SAME_MEMORY <= live_memory <= memory / _SAME_MEMORY


def _of_api(live: InstanceType, known: InstanceType) -> bool:
    """Whether the live type has names of a cloud's API, and the known one labels."""
    return live.product_source is Evidence.NOMINAL and known.product_source is not Evidence.NOMINAL


def _merged(known: InstanceType, live: InstanceType, *, alike: bool) -> InstanceType:
    """The known type with what the live one says."""
    merged = replace(
        known,
        gpus=live.gpus,
        cloud=live.cloud or known.cloud,
        vcpus=live.vcpus or known.vcpus,
        memory_mib=live.memory_mib or known.memory_mib,
        arch=live.arch or known.arch,
        disk_gib=known.disk_gib if live.disk_gib is None else live.disk_gib,
        max_pods=live.max_pods or known.max_pods,
        api_gpu_name=live.api_gpu_name or known.api_gpu_name,
        api_gpu_memory_mib=live.api_gpu_memory_mib or known.api_gpu_memory_mib,
        karpenter_gpus=known.karpenter_gpus if live.karpenter_gpus is None else live.karpenter_gpus,
        price_per_hour=known.price_per_hour if live.price_per_hour is None else live.price_per_hour,
        announced=live.announced or known.resource,
        source=live.source,
    )
    if _of_api(live, known):
        return replace(merged, source=f"{known.source} and {live.source}")
    return replace(
        merged,
        gpu_memory_mib=live.gpu_memory_mib,
        memory_source=live.memory_source,
        product=live.product,
        product_source=live.product_source,
        compute_capability=known.compute_capability if alike else "",
        family=known.family if alike else "",
    )


@cache
def _builtin() -> Catalog:
    return Catalog(builtin_types())
