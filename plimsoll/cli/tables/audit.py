"""Audits as text, as documents, and as one HTML page that needs no other file."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from rich.text import Text

from plimsoll.cli.shared import OUT, print_warnings
from plimsoll.explaining import Audit, AuditFinding, Section
from plimsoll.text import counted, figure

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #d8dee4;"
    "vertical-align:top}td:last-child,th:last-child{text-align:right;white-space:nowrap}h1 small{font-weight:400}"
    "@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}td,th{border-color:#30363d}}"
)


@dataclass(frozen=True)
class Audited:
    """A cluster with its audit, or with the error for which it could not be read."""

    cluster: str
    audit: Audit | None = None
    warnings: tuple[str, ...] = ()
    error: str = ""
    hint: str = ""


def as_json(audited: Audited) -> dict[str, Any]:
    if audited.audit is None:
        return {"cluster": audited.cluster, "error": audited.error, "hint": audited.hint}
    return {"cluster": audited.cluster, "error": "", **audited.audit.as_json(), "warnings": list(audited.warnings)}


def _total(audits: Sequence[Audited]) -> Iterator[str]:
    """Lines about all clusters; a sum for each currency."""
    read = [each.audit for each in audits if each.audit is not None]
    gpus, idle = sum(each.gpus for each in read), sum(each.idle_gpus for each in read)
    nodes = counted(sum(each.nodes for each in read), "node")
    yield f"{counted(len(read), 'cluster')}: {nodes} with {counted(gpus, 'GPU')}, {figure(idle)} idle"
    costs: dict[str, list[Audit]] = defaultdict(list)
    for each in read:
        if each.cost.basis:
            costs[each.cost.basis.currency].append(each)
    for currency, several in sorted(costs.items()):
        hourly, unused = sum(each.cost.hourly for each in several), sum(each.cost.idle for each in several)
        yield f"{figure(hourly)}{f' {currency}' if currency else ''} an hour, {figure(unused)} of it idle"
    if without := sum(sum(each.cost.unpriced.values()) for each in read):
        yield f"{counted(without, 'node')} without a price"
    if missing := len(audits) - len(read):
        yield f"{counted(missing, 'cluster')} could not be read"


def _summary(found: Audit) -> Iterator[str]:
    currency = f" {found.cost.basis.currency}" if found.cost.basis.currency else ""
    idle = f"{figure(found.idle_gpus)} idle"
    yield f"{counted(found.nodes, 'node')} with {counted(found.gpus, 'GPU')}, {idle}"
    without = sum(found.cost.unpriced.values())
    unpriced = f"; {counted(without, 'node')} without a price" if without else ""
    yield f"{figure(found.cost.hourly)}{currency} an hour, {figure(found.cost.idle)} of it idle{unpriced}"
    yield str(found.cost.basis)


def print_audits(audits: Sequence[Audited], *, several: bool) -> None:
    """With a heading for each cluster and the sums of all if there may be `several`."""
    for line in _total(audits) if several else ():
        OUT.print(Text(line, style="bold"), soft_wrap=True)
    for each in audits:
        if several:
            OUT.print(Text(f"\n== {each.cluster}", style="bold"), soft_wrap=True)
        if each.audit is None:
            OUT.print(Text(f"not read: {each.error}", style="red"), soft_wrap=True)
            OUT.print(Text(f"  {each.hint}", style="yellow"), soft_wrap=True)
        else:
            _print_audit(each.audit)
            print_warnings(each.warnings)


def _print_audit(found: Audit) -> None:
    for line in _summary(found):
        OUT.print(Text(line, style="bold"), soft_wrap=True)
    for section in Section:
        findings, count = found.of(section), found.counts.get(section, 0)
        OUT.print(Text(f"\n{section.value}: {count or 'none'}", style="bold"))
        for each in findings:
            OUT.print(Text.assemble(f"  {each.subject}: {each.text}", (_price(each), "dim")), soft_wrap=True)
        if count > len(findings):
            OUT.print(Text(f"  and {count - len(findings)} more", style="dim"))


def _price(finding: AuditFinding) -> str:
    return "" if finding.price is None else f"  ({figure(finding.price)} an hour)"


def as_html(audits: Sequence[Audited]) -> str:
    several = len(audits) > 1
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>GPU audit</title><style>{_STYLE}</style><h1>GPU audit"
        f" <small>{escape(', '.join(each.cluster for each in audits))}</small></h1>",
        *(f"<p>{escape(line)}</p>" for line in (_total(audits) if several else ())),
    ]
    for each in audits:
        if several:
            parts.append(f"<h1>{escape(each.cluster)}</h1>")
        if each.audit is None:
            parts.append(f"<p>not read: {escape(each.error)}</p>")
        else:
            parts += _page_of(each.audit, each.warnings)
    return "\n".join([*parts, "</html>", ""])


def _page_of(found: Audit, warnings: Sequence[str]) -> Iterator[str]:
    yield from (f"<p>{escape(line)}</p>" for line in _summary(found))
    for section in Section:
        findings, count = found.of(section), found.counts.get(section, 0)
        yield f"<h2>{escape(section.value)}: {count or 'none'}</h2>"
        if findings:
            rows = (
                f"<tr><td>{escape(each.subject)}<td>{escape(each.text)}"
                f"<td>{'' if each.price is None else escape(figure(each.price))}"
                for each in findings
            )
            yield f"<table><tr><th>what<th>finding<th>an hour{''.join(rows)}</table>"
        if count > len(findings):
            yield f"<p>and {count - len(findings)} more"
    if warnings:
        yield f"<h2>warnings: {len(warnings)}</h2><ul>{''.join(f'<li>{escape(each)}' for each in warnings)}</ul>"
