"""Rows of the history: the deltas that the Environment's status records."""

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.model import Snapshot
from plimsoll.model.api import DeltaChange
from plimsoll.text import shortlist
from plimsoll.ui.view.filter import Filter
from plimsoll.ui.view.owners import OwnerFacts, owner_facts, owner_shown


@dataclass(frozen=True, slots=True)
class ChangeRow:
    sign: str
    what: str
    """`3 x NodeClaim a, b, c`"""
    owner: str
    reason: str
    failure: str


@dataclass(frozen=True, slots=True)
class DeltaRow:
    time: str
    seconds: float
    stacks: str
    changes: tuple[ChangeRow, ...]
    more: int
    """Operations that are not listed."""


_SIGNS = {"create": "+", "update": "~", "delete": "-"}


def delta_rows(snapshot: Snapshot, wanted: Filter) -> tuple[DeltaRow, ...]:
    """Newest first; deltas of which no change is shown are left out."""
    rows = []
    facts = owner_facts(snapshot, wanted)
    for record in snapshot.environment.status.deltas:
        changes = tuple(_change(each) for each in record.changes if _shown(each, wanted, facts))
        if changes or not wanted:
            rows.append(DeltaRow(record.time, record.seconds, ", ".join(record.stacks), changes, record.more))
    return tuple(rows)


def _change(change: DeltaChange) -> ChangeRow:
    more = change.count - len(change.names)
    names = shortlist(change.names) + (f" and {more} more" if more else "")
    what = f"{change.count} x {change.kind} {names}" if change.count > 1 else f"{change.kind} {names}"
    return ChangeRow(_SIGNS[change.operation], what, change.owner, change.reason, change.failure)


def _shown(change: DeltaChange, wanted: Filter, facts: Mapping[str, OwnerFacts]) -> bool:
    namespace = change.owner.partition(" ")[2].partition("/")[0] if "/" in change.owner else ""
    return owner_shown(change.owner, namespace, wanted, facts) and wanted.matches_text(
        *change.names, change.kind, change.owner, change.reason
    )
