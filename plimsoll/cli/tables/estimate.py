"""The output of `plimsoll estimate`: the sum line by line, or a table of the instance types that fit."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final, NamedTuple

import typer
from rich import box
from rich.table import Table

from plimsoll.cli.shared import ERR, OUT, REFUSED, Format, print_document, print_table
from plimsoll.cluster.catalog import Candidate
from plimsoll.cost import UNPRICED, PriceBasis
from plimsoll.estimating import Estimate, Infeasible, ModelNeed, unknown_context
from plimsoll.model.cluster import Device, InstanceType
from plimsoll.presets import DISK_HEADROOM_GIB
from plimsoll.text import counted, figure
from plimsoll.yaml_text import write_yaml

MILLION: Final = 1_000_000


class Ranking(StrEnum):
    """What the table of instance types is ordered by."""

    PRICE = "price"
    KV_CACHE = "kv-cache"


class Model(NamedTuple):
    """What is estimated."""

    name: str
    need: ModelNeed
    origin: str
    """Where the figures come from."""

    def unknown(self, asked: int | None) -> str:
        """A warning where the model's own maximum context is not known; `asked` is the one that is given."""
        why = unknown_context(self.need, asked) if self.need.shape is not None else ""
        return why and f"the context is {why}: set --context-length"

    @property
    def figures(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "size_gib": self.need.size_gib,
            "bytes_per_token": self.need.bytes_per_token,
            "spans_nodes": self.need.spans_nodes,
            "disk_gib": int(self.need.size_gib + DISK_HEADROOM_GIB),
            "origin": self.origin,
        }


def show_estimate(
    model: Model,
    gpus: Device,
    kind: InstanceType | None,
    outcome: Estimate | Infeasible,
    *,
    warnings: list[str],
    output: Format,
    basis: PriceBasis = UNPRICED,
) -> None:
    """Prints the estimate for one kind of node; `basis` is where its price is from. Raises Exit(2) if the model
    does not fit."""
    reason = outcome.reason if isinstance(outcome, Infeasible) else None
    price = Candidate(kind, outcome, ()).shown_price if kind is not None and isinstance(outcome, Estimate) else None
    if output.document:
        print_document(
            {
                **model.figures,
                "instance_type": None if kind is None else kind.name,
                "gpus_per_node": gpus.count,
                "gpu_memory_gib": gpus.memory_gib,
                "feasible": outcome.feasible,
                "reason": reason,
                "min_gpus": outcome.min_gpus,
                "nodes": outcome.nodes,
                "price_per_hour": price,
                "prices": basis.as_json(),
                "serving": _serving(outcome),
                "lines": [
                    {"name": line.name, "value": line.value, "unit": line.unit, "sum": line.sum}
                    for line in outcome.lines
                ],
                "warnings": warnings,
            },
            output,
        )
    else:
        _print_sum(model, gpus, kind, outcome)
        if price is not None:
            unit = f" {basis.currency}" if basis.currency else ""
            OUT.print(f"{figure(price)}{unit} an hour for {counted(outcome.nodes or 0, 'node')}", highlight=False)
        if kind is not None:
            OUT.print(str(basis), highlight=False, soft_wrap=True)
        _print_warnings(warnings)
        if reason is not None:
            ERR.print(f"does not fit: {reason}", style="bold red", highlight=False, soft_wrap=True)
    if reason is not None:
        raise typer.Exit(REFUSED)


def _print_sum(model: Model, gpus: Device, kind: InstanceType | None, outcome: Estimate | Infeasible) -> None:
    each = f"{gpus.memory_gib:.6g} GiB"
    slices = "a MIG slice" if gpus.separate else f"{gpus.count} x {gpus.product or 'GPU'}"
    place = f"{slices} of {each}" if kind is None else f"{kind.name} ({kind.describe_gpus()})"
    table = _table(f"{model.name} on {place}", model.origin)
    table.add_column("what", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("how")
    for line in outcome.lines:
        value = f"{line.value:.2f} GiB" if line.unit == "GiB" else f"{line.value:.0f}"
        table.add_row(line.name, value, line.sum)
    if isinstance(outcome, Estimate):
        table.add_row("parallelism", outcome.serving.tier.value, str(outcome.serving))
        if outcome.serving.unused:
            table.add_row(
                "unused GPUs", str(outcome.serving.unused), "of each node; the model's heads and widths allow no more"
            )
    table.add_row("disk", f"{model.figures['disk_gib']} GiB", f"{model.need.size_gib:g} + {DISK_HEADROOM_GIB} GiB")
    print_table(table, highlight=False)


def ranked(candidates: tuple[Candidate, ...], by: Ranking) -> tuple[Candidate, ...]:
    """The candidates in the order that is asked for; by price, the catalog has ordered them."""
    if by is Ranking.PRICE:
        return candidates
    return tuple(sorted(candidates, key=lambda each: (_cache_price(each) is None, _cache_price(each) or 0)))


def unranked(model: Model, candidates: tuple[Candidate, ...], by: Ranking) -> str:
    """Why the candidates cannot be ordered as asked; empty where at least one can, or there are none."""
    if by is Ranking.PRICE or not candidates or any(_cache_price(each) is not None for each in candidates):
        return ""
    if all(each.shown_price is None for each in candidates):
        missing = "no prices are known: set --prices, or catalog.prices of the Environment"
    else:
        missing = f"the layers and heads of {model.name} are not known: give its config.json"
    return f"--by kv-cache has no effect, because {missing}"


def _cache_price(candidate: Candidate) -> float | None:
    """Price of an hour for each million tokens of KV cache; None where one of them is not known."""
    price, tokens = candidate.shown_price, candidate.estimate.serving.cache_tokens
    return None if price is None or not tokens else price / tokens * MILLION


def _serving(outcome: Estimate | Infeasible) -> dict[str, Any] | None:
    return outcome.serving.model_dump(mode="json") if isinstance(outcome, Estimate) else None


def show_candidates(
    model: Model,
    candidates: tuple[Candidate, ...],
    warnings: list[str],
    output: Format,
    *,
    by: Ranking = Ranking.PRICE,
    basis: PriceBasis = UNPRICED,
    why_none: str = "",
    recommend: int | None = None,
) -> None:
    """Prints the instance types that one replica fits, cheapest first, or the first `recommend` as fields of a
    Workspace; raises Exit(2) if there is none."""
    if candidates and recommend is not None:
        _print_recommended(candidates, recommend, output)
        return
    reason = None if candidates else why_none or "one replica fits no instance type of the catalog"
    if output.document:
        print_document(
            {
                **model.figures,
                "feasible": bool(candidates),
                "reason": reason,
                "candidates": [_candidate(each) for each in candidates],
                "prices": basis.as_json(),
                "warnings": warnings,
            },
            output,
        )
    else:
        if candidates:
            _print_candidates(model, candidates, by)
            OUT.print(str(basis), highlight=False, soft_wrap=True)
        _print_warnings(warnings)
        if reason is not None:
            ERR.print(reason, style="bold red", highlight=False, soft_wrap=True)
    if reason is not None:
        raise typer.Exit(REFUSED)


def _print_recommended(candidates: Sequence[Candidate], number: int, output: Format) -> None:
    """Prints the `resource` of a Workspace with the first types, of the cloud of the first one: nodes of a cluster are
    of one cloud."""
    cloud = candidates[0].type.cloud
    names = [each.type.name for each in candidates if each.type.cloud == cloud][:number]
    fields = {"resource": {"instanceTypes": names}}
    if output.document:
        print_document(fields, output)
    else:
        sys.stdout.write(write_yaml(fields))


def _candidate(candidate: Candidate) -> dict[str, Any]:
    kind = candidate.type
    return {
        "instance_type": kind.name,
        "cloud": kind.cloud,
        "gpus_per_node": kind.gpus,
        "gpu_memory_mib": kind.gpu_memory_mib,
        "memory_source": kind.memory_source,
        "product": kind.product,
        "product_source": kind.product_source,
        "min_gpus": candidate.estimate.min_gpus,
        "nodes": candidate.estimate.nodes,
        "price_per_hour": candidate.shown_price,
        "list_price": None if kind.list_price is None or kind.price_per_hour is not None else asdict(kind.list_price),
        "price_per_hour_of_a_million_cached_tokens": _cache_price(candidate),
        "serving": _serving(candidate.estimate),
        "source": kind.source,
        "reasons": candidate.reasons,
    }


def _print_candidates(model: Model, candidates: tuple[Candidate, ...], by: Ranking) -> None:
    priced = any(each.shown_price is not None for each in candidates)
    own = any(each.price_per_hour is not None for each in candidates)
    order = "own price, then GPUs, GPU memory, nodes" if own else "fewest GPUs, then GPU memory, nodes, vCPUs"
    if by is Ranking.KV_CACHE and not unranked(model, candidates, by):
        order = "price of a million tokens of KV cache"
    title = f"Instance types for one replica of {model.name}, {'cheapest' if own else 'smallest'} first"
    table = _table(title, f"ordered by {order}; {model.origin}")
    by_tokens = priced and (own or by is Ranking.KV_CACHE)
    table.add_column("type", no_wrap=not by_tokens)  # where there is room
    table.add_column("GPUs of a node")
    table.add_column("parallelism", no_wrap=True)
    prices = [*(["an hour"] if priced else []), *(["M tokens"] if by_tokens else [])]
    for column in ("GPUs", "nodes", "context", *prices):
        table.add_column(column, justify="right", no_wrap=True)
    for each in candidates:
        row = [each.type.name, each.type.describe_gpus()]
        serving = each.estimate.serving
        row += [serving.tier.value, str(each.estimate.min_gpus), str(each.estimate.nodes), str(serving.context_length)]
        shown = (each.shown_price, _cache_price(each))[: len(prices)]
        row += ["" if price is None else figure(price) for price in shown]
        table.add_row(*row)
    print_table(table, highlight=False)


def _table(title: str, caption: str) -> Table:
    return Table(
        box=box.SIMPLE_HEAD,
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        show_edge=False,
        padding=(0, 1, 0, 0),
    )


def _print_warnings(warnings: list[str]) -> None:
    for warning in warnings:
        ERR.print(f"warning: {warning}", style="yellow", highlight=False, soft_wrap=True)
