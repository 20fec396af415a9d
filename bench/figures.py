"""Figures of a trace: GPUs by KAI's formula, by best fit decreasing and by Plimsoll, and the lower bound with its
proof."""

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.node_figures import OnNodes, on_nodes
from bench.request_rounds import rounds
from bench.trace import TracePod, read_pods
from plimsoll.packing.gpus import ANY, Item, Packing, pack
from plimsoll.packing.nodes import NodeShape


@dataclass(frozen=True, slots=True)
class Held:
    """Number of shares that fit each number of GPUs."""

    kai_sum: int
    best_fit: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Figures:
    shares: int
    kai_sum: int
    """GPUs that KAI's node-scale-adjuster requests at first: the sum of hundredths, rounded up."""
    best_fit: int
    gpus: int
    lower_bound: float
    """Lower bound by the linear program over patterns; its optimum if `exact`."""
    lower_bound_gpus: int
    exact: bool
    rounds: int
    """Number of requests until every share had a place."""
    solve_seconds: float
    held: Held


@dataclass(frozen=True, slots=True)
class Constrained:
    """All shares packed together, each on a GPU model that its gpu_spec allows."""

    shares: int
    shares_by_gpu_spec: dict[str, int]
    kai_sum: int
    best_fit: int
    gpus: int
    gpus_by_models: dict[str, int]
    """GPUs by the models that can hold their shares; `any` for all models."""
    lower_bound: float
    lower_bound_gpus: int
    exact: bool
    rounds: int
    solve_seconds: float


@dataclass(frozen=True, slots=True)
class AllPods:
    """Shares and whole GPUs."""

    pods: int
    without_gpus: int
    whole_gpu_pods: int
    whole_gpus: int
    gpus: int
    lower_bound_gpus: int
    rounds: int
    solve_seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    file: str
    figures: Figures
    constrained: Constrained
    all_pods: AllPods
    shares_on_nodes: OnNodes | None
    on_nodes: OnNodes | None
    """Figures of all pods with GPUs."""
    bins: list[list[str]]
    duals: dict[str, float]

    def as_json(self, duals: bool) -> dict[str, Any]:
        proof = {"duals": self.duals} if duals else {}
        whole = {"constrained": asdict(self.constrained), "all_pods": asdict(self.all_pods)}
        packed = {"shares_on_nodes": self.shares_on_nodes, "on_nodes": self.on_nodes}
        nodes = {key: asdict(figures) for key, figures in packed.items() if figures is not None}
        return {"file": self.file, **asdict(self.figures), **proof, **whole, **nodes, "bins": self.bins}


def measure(path: Path, shapes: Sequence[NodeShape] = ()) -> Report:
    """Reads a trace and packs it. Times are those of packing alone."""
    pods = read_pods(path)
    shares = [pod for pod in pods if pod.shares]
    free = [pod for pod in shares if not pod.models]
    start = time.perf_counter()
    packing = pack(_items(free))
    seconds = time.perf_counter() - start
    kai = kai_sum(free)
    figures = Figures(
        shares=len(free),
        kai_sum=kai,
        best_fit=packing.best_fit,
        gpus=packing.gpus,
        lower_bound=packing.lower_bound,
        lower_bound_gpus=packing.least,
        exact=packing.exact,
        rounds=rounds(free),
        solve_seconds=round(seconds, 6),
        held=Held(held(free, kai), len(free), sum(len(each.items) for each in packing.bins)),
    )
    start = time.perf_counter()
    together = pack(_items(shares))
    constrained = _constrained(shares, together, time.perf_counter() - start)
    start = time.perf_counter()
    whole = [pod for pod in pods if pod.whole_gpus]
    whole_gpus = sum(pod.whole_gpus for pod in whole)
    everything = AllPods(
        pods=len(pods),
        without_gpus=sum(not pod.asks_gpus for pod in pods),
        whole_gpu_pods=len(whole),
        whole_gpus=whole_gpus,
        gpus=whole_gpus + together.gpus,
        lower_bound_gpus=whole_gpus + together.least,
        rounds=max(constrained.rounds, int(bool(whole))),
        solve_seconds=round(constrained.solve_seconds + time.perf_counter() - start, 6),
    )
    names = {pod.key: pod.name for pod in free}
    bins = [[names[key] for key in each.items] for each in packing.bins]
    duals = {str(price.milli[0][1]): price.dual for price in packing.prices}
    shares_on, all_on = (
        (on_nodes(shares, shapes), on_nodes((pod for pod in pods if pod.asks_gpus), shapes)) if shapes else (None, None)
    )
    return Report(path.name, figures, constrained, everything, shares_on, all_on, bins, duals)


def kai_sum(pods: Sequence[TracePod]) -> int:
    """ceil(sum of round(fraction * 100) * devices / 100), as the adjuster computes it."""
    return math.ceil(sum(math.floor(pod.gpu_milli / 1000 * 100 + 0.5) * pod.gpus for pod in pods) / 100)


def held(pods: Sequence[TracePod], gpus: int) -> int:
    """The maximum number of these shares that fit this many GPUs: the smallest ones, packed by Plimsoll."""
    ordered = sorted(pods, key=lambda pod: (pod.gpu_milli, pod.key))
    fits, over = 0, len(ordered) + 1
    while over - fits > 1:
        middle = (fits + over) // 2
        if pack(_items(ordered[:middle])).gpus <= gpus:
            fits = middle
        else:
            over = middle
    return fits


def _items(pods: Sequence[TracePod]) -> list[Item]:
    return [Item(pod.key, dict.fromkeys(pod.models or (ANY,), pod.gpu_milli)) for pod in pods]


def _constrained(shares: Sequence[TracePod], packing: Packing, seconds: float) -> Constrained:
    models = Counter("any" if ANY in each.kinds else "|".join(each.kinds) for each in packing.bins)
    specs = Counter("|".join(pod.models) or "any" for pod in shares)
    return Constrained(
        shares=len(shares),
        shares_by_gpu_spec=dict(sorted(specs.items())),
        kai_sum=kai_sum(shares),
        best_fit=packing.best_fit,
        gpus=packing.gpus,
        gpus_by_models=dict(sorted(models.items())),
        lower_bound=packing.lower_bound,
        lower_bound_gpus=packing.least,
        exact=packing.exact,
        rounds=rounds(shares),
        solve_seconds=round(seconds, 6),
    )
