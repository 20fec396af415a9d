"""An audit as text, and as one HTML page that needs no other file."""

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

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


def _summary(found: Audit) -> Iterator[str]:
    currency = f" {found.cost.basis.currency}" if found.cost.basis.currency else ""
    idle = f"{figure(found.idle_gpus)} idle"
    yield f"{counted(found.nodes, 'node')} with {counted(found.gpus, 'GPU')}, {idle}"
    without = sum(found.cost.unpriced.values())
    unpriced = f"; {counted(without, 'node')} without a price" if without else ""
    yield f"{figure(found.cost.hourly)}{currency} an hour, {figure(found.cost.idle)} of it idle{unpriced}"
    yield str(found.cost.basis)


def print_audit(found: Audit, warnings: Iterable[str]) -> None:
    for line in _summary(found):
        OUT.print(Text(line, style="bold"), soft_wrap=True)
    for section in Section:
        findings, count = found.of(section), found.counts.get(section, 0)
        OUT.print(Text(f"\n{section.value}: {count or 'none'}", style="bold"))
        for each in findings:
            OUT.print(Text.assemble(f"  {each.subject}: {each.text}", (_price(each), "dim")), soft_wrap=True)
        if count > len(findings):
            OUT.print(Text(f"  and {count - len(findings)} more", style="dim"))
    print_warnings(warnings)


def _price(finding: AuditFinding) -> str:
    return "" if finding.price is None else f"  ({figure(finding.price)} an hour)"


def as_html(found: Audit, cluster: str) -> str:
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>GPU audit</title><style>{_STYLE}</style><h1>GPU audit <small>{escape(cluster)}</small></h1>",
        *(f"<p>{escape(line)}</p>" for line in _summary(found)),
    ]
    for section in Section:
        findings, count = found.of(section), found.counts.get(section, 0)
        parts.append(f"<h2>{escape(section.value)}: {count or 'none'}</h2>")
        if findings:
            rows = (
                f"<tr><td>{escape(each.subject)}<td>{escape(each.text)}"
                f"<td>{'' if each.price is None else escape(figure(each.price))}"
                for each in findings
            )
            parts.append(f"<table><tr><th>what<th>finding<th>an hour{''.join(rows)}</table>")
        if count > len(findings):
            parts.append(f"<p>and {count - len(findings)} more")
    return "\n".join([*parts, "</html>", ""])
