"""A chain as text: what is decisive, each step, and what would help."""

from typing import Any, Final

from rich.table import Table
from rich.text import Text

from plimsoll.cli.shared import OUT, print_table
from plimsoll.explaining import Chain, Remedy, State
from plimsoll.text import counted, figure

_STYLES: Final = {State.PASSED: "green", State.WAITING: "yellow", State.BLOCKED: "red"}


def print_chain(chain: Chain, events: list[dict[str, Any]]) -> None:
    decisive = chain.decisive
    reason = f": {decisive.reason}" if decisive.reason else ""
    _say(Text.assemble((f"{chain.subject}  ", "bold"), (f"{decisive.state.value}{reason}", _STYLES[decisive.state])))
    _say(f"  {decisive.text}\n")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("STEP", "STATE", "WHY"):
        table.add_column(column, overflow="fold")
    for link in chain.links:
        table.add_row(link.step.value, Text(link.state.value, style=_STYLES[link.state]), Text(link.text))
    print_table(table, highlight=False)
    if chain.remedies:
        _say(Text("\nWhat would help, by a plan with it", style="bold"))
        for remedy in chain.remedies:
            _say(Text.assemble(("  + ", "green"), "; ".join(remedy.changes), (f"  ({_effect(remedy)})", "dim")))
    elif chain.blocked:
        _say("\nNo change was found that helps without taking capacity from others.")
    for note in chain.notes:
        _say(f"  {note}")
    for event in events:
        _say(Text.assemble((f"  {event['time']}  {event['reason']}  ", "dim"), str(event["note"])))


def _effect(remedy: Remedy) -> str:
    if remedy.nodes > 0:
        price = "price not known" if remedy.price is None else f"{figure(remedy.price)} an hour more"
        gpus = f" with {counted(remedy.gpus, 'GPU')}" if remedy.gpus else ""
        cost = f"{counted(remedy.nodes, 'node')} more{gpus}, {price}"
    else:
        cost = "no node more"
    return f"helps {remedy.helped}; {cost}; changes {remedy.touches}"


def _say(text: str | Text) -> None:
    OUT.print(text, highlight=False, soft_wrap=True)
