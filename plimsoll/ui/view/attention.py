"""What needs attention first: what is refused, blocked, given up, contradictory, failed or not current."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import DemandPhase, GPUDemandStatus
from plimsoll.text import counted, shortlist
from plimsoll.ui.view.demands import demand_rows
from plimsoll.ui.view.filter import Filter
from plimsoll.ui.view.nodes import NodeRow

_LISTED = 3
"""Names of a kind."""


class Kind(StrEnum):
    STALE = "Stale data"
    REFUSED = "Refused"
    QUOTA = "Blocked by quota"
    GIVEN_UP = "Given up"
    FAILED = "Failed updates"
    WITHHELD = "Withheld by policy"
    CONTRADICTIONS = "Contradictions"


class Attention(NamedTuple):
    """One entry of the strip."""

    kind: Kind
    text: str
    """What and how many, with some of the names."""
    href: str
    """The page that says more."""


def attention_rows(snapshot: Snapshot, plan: Plan, rows: Iterable[NodeRow]) -> tuple[Attention, ...]:
    """In the order of `Kind`, each at most once but for those of Workspaces and of demand."""
    statuses = {each.name: each.status for each in snapshot.gpu_demands}
    statuses |= {each.name: each.status for each in plan.demands if each.status is not None}
    names = _Names(snapshot, plan)
    return (
        *_stale(snapshot),
        *_refused(plan, statuses, names),
        *_in_phase(Kind.QUOTA, statuses, names, DemandPhase.QUOTA_BLOCKED),
        *_in_phase(Kind.GIVEN_UP, statuses, names, DemandPhase.EXPIRED, DemandPhase.FAILED),
        *_failed(snapshot),
        *_withheld(plan),
        *_contradictions(rows),
    )


class _Names:
    """How demands are named: by what they serve, their own name last. Read once something needs attention."""

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self._snapshot = snapshot
        self._plan = plan

    def of(self, names: Iterable[str]) -> str:
        """Of a demand whose pods are not known, its name only."""
        return shortlist(
            [f"{self._titles[name]} ({name})" if name in self._titles else name for name in names], _LISTED
        )

    @cached_property
    def _titles(self) -> Mapping[str, str]:
        return {row.name: row.title for row in demand_rows(self._snapshot, self._plan, Filter()) if row.waiting}


def _stale(snapshot: Snapshot) -> Iterator[Attention]:
    if snapshot.stale:
        number = counted(len(snapshot.stale), "reason")
        yield Attention(
            Kind.STALE,
            f"the last known state is shown, for {number}",
            "#state-warnings",
        )


def _refused(plan: Plan, statuses: Mapping[str, GPUDemandStatus], names: _Names) -> Iterator[Attention]:
    if plan.refusals:
        listed = shortlist([f"{each.workspace} ({each.reason.value})" for each in plan.refusals], _LISTED)
        yield Attention(Kind.REFUSED, f"{counted(len(plan.refusals), 'Workspace')}: {listed}", "/workspaces")
    refused = {
        name: status.refused_pods
        for name, status in statuses.items()
        if status.refused_pods and status.phase is not DemandPhase.QUOTA_BLOCKED
    }
    if refused:
        text = f"{counted(sum(refused.values()), 'pod')} without capacity, of {names.of(sorted(refused))}"
        yield Attention(Kind.REFUSED, text, "/demand")
    yield from _in_phase(Kind.REFUSED, statuses, names, DemandPhase.REFUSED)


def _in_phase(
    kind: Kind, statuses: Mapping[str, GPUDemandStatus], names: _Names, *phases: DemandPhase
) -> Iterator[Attention]:
    found = {name: status for name, status in sorted(statuses.items()) if status.phase in phases}
    if found:
        pods = counted(sum(status.pod_count for status in found.values()), "pod")
        text = f"{pods} of {counted(len(found), 'demand')}: {names.of(found)}"
        yield Attention(kind, text, f"/demand?q={phases[0].value}" if len(phases) == 1 else "/demand")


def _failed(snapshot: Snapshot) -> Iterator[Attention]:
    """Of the newest delta: what failed before and was not tried again is in the history."""
    last = snapshot.environment.status.deltas[:1]
    failed = [change for delta in last for change in delta.changes if change.failure]
    if failed:
        number = counted(sum(change.count for change in failed), "operation")
        yield Attention(Kind.FAILED, f"{number} of the last update: {failed[0].failure}", "/history")


def _withheld(plan: Plan) -> Iterator[Attention]:
    if plan.withheld:
        names = shortlist([str(each.key) for each in plan.withheld], _LISTED)
        yield Attention(Kind.WITHHELD, f"{counted(len(plan.withheld), 'object')}: {names}", "/plan#withheld")


def _contradictions(rows: Iterable[NodeRow]) -> Iterator[Attention]:
    names = [row.name for row in rows if row.problems]
    if names:
        yield Attention(Kind.CONTRADICTIONS, f"{counted(len(names), 'node')}: {shortlist(names, _LISTED)}", "#warnings")
