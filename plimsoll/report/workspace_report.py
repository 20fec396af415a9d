"""What is to be written about each Workspace: its status, where it changed, and events on the change."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from plimsoll.model import Verdict
from plimsoll.model.api import WorkspaceStatus
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.report.conditions import differs, refused_status, scale_status, status_of
from plimsoll.report.events import Event, interruption_event, provisioning_event, verdict_event

Key = tuple[str, str]
"""(namespace, name)"""


class WorkspaceReport(NamedTuple):
    """The news of one Workspace."""

    status: dict[str, Any] | None
    """The wanted status, if it differs from the previous one."""
    judged: Event | None
    """The event for a verdict that changed."""
    provisioned: tuple[Event, ...]
    """Events on its NodeClaims."""
    settled: bool
    """Whether the status stays wanted as time passes."""

    def lasts(self) -> bool:
        """Whether there is no news in any round until something changes."""
        return self.settled and self.status is None and self.judged is None


def report_on(
    verdicts: Mapping[Key, Verdict],
    previous: Mapping[Key, WorkspaceStatus],
    view: ClusterView,
    nodes: WorkspaceNodes,
    now: datetime,
) -> Mapping[Key, WorkspaceReport]:
    """The news of the Workspaces with these verdicts and statuses, known while nothing that they depend on changes."""
    holdings = view.holdings

    def reads(key: Key) -> tuple[object, ...]:
        holding, verdict = holdings.get(key), verdicts[key]
        of_cluster = (view.ownership,) if holding is None else nodes.read_of(holding.workspace, verdict)
        return holding, verdict, previous[key], view.settings, *of_cluster

    return view.known.each(
        "report",
        (holdings, verdicts, previous, view.settings, view.ownership, *nodes.read),
        verdicts,
        reads,
        lambda key: _report(verdicts[key], previous[key], view, nodes, now),
        lasts=WorkspaceReport.lasts,
    )


def _report(
    verdict: Verdict, previous: WorkspaceStatus, view: ClusterView, nodes: WorkspaceNodes, now: datetime
) -> WorkspaceReport:
    holding = view.holdings.get((verdict.workspace.namespace, verdict.workspace.name))
    if holding is None:
        wanted = refused_status(verdict, None, now, previous, scale=scale_status(verdict.workspace, nodes))
        return _news(verdict, previous, wanted, settled=True)
    wanted = status_of(holding.declared, verdict, nodes, now, previous)
    # While a NodeClaim is awaited, or one failed, the record says so.
    passing = {"pending", "failures", "moveBack"} & (wanted.get("provisioning") or {}).keys()
    return _news(verdict, previous, wanted, settled=not (verdict.accepted and passing) and not nodes.dropped)


def _news(verdict: Verdict, previous: WorkspaceStatus, wanted: dict[str, Any], *, settled: bool) -> WorkspaceReport:
    judged = verdict_event(verdict, previous)
    if not differs(previous, wanted):
        return WorkspaceReport(None, judged, (), settled)
    ref, status = verdict.workspace, WorkspaceStatus.model_validate(wanted)
    events = (provisioning_event(ref, previous, status), interruption_event(ref, previous, status))
    return WorkspaceReport(wanted, judged, tuple(event for event in events if event is not None), settled)
