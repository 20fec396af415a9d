"""GPUs that a trace's shares take: KAI's formula, best fit decreasing, ours, and the lower bound.

    python -m bench.openb PODS.csv [PODS.csv ...] [--nodes NODES.csv] [--output json] [--duals]

A share is a row with num_gpu 1 and gpu_milli from 1 to 999. The figures of a file and its bins are about the shares
without gpu_spec; `constrained` is about all shares, each on a model that it allows; `all_pods` adds the pods that ask
for whole GPUs. Rows without GPUs are counted and take none.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from bench.trace import TracePod, read_pods
from plimsoll.cli.output import FAILED, OUT, Format, Output, print_error, print_json
from plimsoll.model.errors import PlimsollError
from plimsoll.plan.packing import ANY, FreeGPU, Item, Packing, pack


@dataclass(frozen=True, slots=True)
class Held:
    """Shares that each number of GPUs could really hold."""

    kai_sum: int
    best_fit: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Figures:
    shares: int
    kai_sum: int
    """GPUs that KAI's node-scale-adjuster asks for at first: the sum of hundredths, rounded up."""
    best_fit: int
    gpus: int
    lower_bound: float
    """The optimum of the linear program over patterns; the optimum is `exact`."""
    lower_bound_gpus: int
    exact: bool
    rounds: int
    """Times that GPUs were asked for until every share had its place."""
    solve_seconds: float
    held: Held


@dataclass(frozen=True, slots=True)
class Constrained:
    """All shares, each on a model that its gpu_spec allows, packed together."""

    shares: int
    shares_by_gpu_spec: dict[str, int]
    kai_sum: int
    best_fit: int
    gpus: int
    gpus_by_models: dict[str, int]
    """By the models that can hold what the GPU is to hold; `any`: every one."""
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
    bins: list[list[str]]
    duals: dict[str, float] = field(default_factory=dict)

    def as_json(self, duals: bool) -> dict[str, Any]:
        whole = {"constrained": asdict(self.constrained), "all_pods": asdict(self.all_pods)}
        proof = {"duals": self.duals} if duals else {}
        return {"file": self.file, **asdict(self.figures), **proof, **whole, "bins": self.bins}


def measure(path: Path) -> Report:
    """Reads a trace and packs it; the time is that of packing alone."""
    pods = read_pods(path)
    shares = [pod for pod in pods if pod.shares]
    free = [pod for pod in shares if not pod.models]
    start = time.perf_counter()
    packing = pack(_items(free), clock=time.perf_counter)
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
        rounds=rounds(free, packing),
        solve_seconds=round(seconds, 6),
        held=Held(held(free, kai), len(free), sum(len(each.items) for each in packing.bins)),
    )
    start = time.perf_counter()
    together = pack(_items(shares), clock=time.perf_counter)
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
    return Report(path.name, figures, constrained, everything, bins, duals)


def kai_sum(pods: Sequence[TracePod]) -> int:
    """ceil(sum of round(fraction * 100) * devices / 100), as the adjuster computes it."""
    return math.ceil(sum(math.floor(pod.gpu_milli / 1000 * 100 + 0.5) * pod.gpus for pod in pods) / 100)


def held(pods: Sequence[TracePod], gpus: int) -> int:
    """The most of these shares that so many GPUs can hold: the smallest ones, packed as ours."""
    ordered = sorted(pods, key=lambda pod: (pod.gpu_milli, pod.key))
    fits, over = 0, len(ordered) + 1
    while over - fits > 1:
        middle = (fits + over) // 2
        if pack(_items(ordered[:middle])).gpus <= gpus:
            fits = middle
        else:
            over = middle
    return fits


def rounds(pods: Sequence[TracePod], packing: Packing) -> int:
    """How often GPUs are asked for when those asked before have come, and nothing is bound yet."""
    items = _items(pods)
    supply: list[FreeGPU] = []
    asked = 0
    while packing.gpus:
        asked += 1
        kinds = [each.kinds[0] for each in packing.bins if each.gpu is None]
        supply += [FreeGPU(f"{asked}/{number}", kind, 1000) for number, kind in enumerate(kinds)]
        packing = pack(items, supply, clock=time.perf_counter)
    return asked


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
        rounds=rounds(shares, packing),
        solve_seconds=round(seconds, 6),
    )


def _print(reports: Sequence[Report]) -> None:
    table = Table("trace", title="GPUs for the shares of each trace", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for column in ("shares", "KAI", "holds", "best fit", "ours", "bound", "rounds", "s"):
        table.add_column(column, justify="right", no_wrap=True)
    table.columns[0].no_wrap = True
    for report in reports:
        own, whole, every = report.figures, report.constrained, report.all_pods
        name = report.file.removeprefix("openb_pod_list_").removesuffix(".csv")
        for title, figures, fitting in ((name, own, f"{own.held.kai_sum}"), ("  and gpu_spec", whole, "")):
            table.add_row(
                title, f"{figures.shares}", f"{figures.kai_sum}", fitting, f"{figures.best_fit}", f"{figures.gpus}",
                f"{figures.lower_bound:.3f}{'' if figures.exact else '*'}",
                f"{figures.rounds}", f"{figures.solve_seconds:.3f}",
            )  # fmt: skip
        table.add_row(
            f"  all {every.pods}", "", "", "", "", f"{every.gpus}", f"{every.lower_bound_gpus}",
            f"{every.rounds}", f"{every.solve_seconds:.3f}", end_section=True,
        )  # fmt: skip
    OUT.print(table)
    OUT.print(
        "The first line of a trace is about its shares without gpu_spec, the second about all of them, the third adds"
        " whole GPUs.\nKAI: the sum of fractions; holds: the most shares that so many GPUs can hold, the smallest"
        " first. Best fit and ours hold all."
    )
    if not all(each.figures.exact and each.constrained.exact for each in reports):
        OUT.print("* time ran out: the optimum of the linear program may be higher.")


def main(
    pods: Annotated[list[Path], typer.Argument(help="CSV files of pods", metavar="PODS.csv...")],
    output: Output = Format.TEXT,
    duals: Annotated[bool, typer.Option("--duals", help="with json: the dual price of each gpu_milli")] = False,
) -> None:
    """GPUs that a trace's shares take: KAI's formula, best fit decreasing, ours, and the lower bound."""
    try:
        pack([Item("first", {ANY: 600}), Item("second", {ANY: 500})])  # loads the solver, which is no part of solving
        reports = [measure(path) for path in pods]
    except PlimsollError as error:
        print_error(error)
        raise typer.Exit(FAILED) from None
    if output is Format.JSON:
        objects = [report.as_json(duals) for report in reports]
        print_json(objects[0] if len(objects) == 1 else objects)
    else:
        _print(reports)


if __name__ == "__main__":
    typer.run(main)
