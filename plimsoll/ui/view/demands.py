"""Rows of demands: what pods ask for, why capacity is missing, and the bound."""

from dataclasses import dataclass

from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import GPUDemandStatus
from plimsoll.ui.view.filter import Filter


@dataclass(frozen=True, slots=True)
class DemandRow:
    """One GPUDemand, with the status that the next Plan would write."""

    name: str
    phase: str
    since: str
    pods: int
    shares: tuple[tuple[str, int], ...]
    """(request, number of pods), most pods first, of the listed pods."""
    gpus: int
    """New GPUs."""
    least: int
    """The fewest that any packing needs."""
    reasons: tuple[str, ...]
    objects: tuple[str, ...]
    claims: tuple[tuple[str, str, str], ...]
    """(name, stage, message) of the NodeClaims that an autoscaler created for it."""
    deadline: str
    failures: int
    blocked: tuple[str, ...]
    """Instance types that are skipped for now."""

    @property
    def gap(self) -> int:
        """GPUs above the bound."""
        return max(0, self.gpus - self.least)


def demand_rows(snapshot: Snapshot, plan: Plan, wanted: Filter) -> tuple[DemandRow, ...]:
    """By name; the Plan's reports take precedence over the statuses in the cluster."""
    statuses = {each.name: each.status for each in snapshot.gpu_demands}
    for report in plan.demands:
        if report.status is None:
            statuses.pop(report.name, None)
        else:
            statuses[report.name] = report.status
    rows = (_row(name, status) for name, status in sorted(statuses.items()))
    return tuple(row for row in rows if wanted.finds(row.name, row.phase, *row.reasons))


def _row(name: str, status: GPUDemandStatus) -> DemandRow:
    shares: dict[str, int] = {}
    for pod in status.pods:
        shares[pod.share] = shares.get(pod.share, 0) + 1
    return DemandRow(
        name=name,
        phase=status.phase.value,
        since=status.since,
        pods=status.pod_count,
        shares=tuple(sorted(shares.items(), key=lambda each: (-each[1], each[0]))),
        gpus=status.gpus,
        least=status.least_gpus,
        reasons=status.reasons,
        objects=tuple(
            f"{each.kind} {f'{each.namespace}/' if each.namespace else ''}{each.name}" for each in status.objects
        ),
        claims=tuple((each.name, each.stage.value, each.message) for each in status.node_claims),
        deadline=status.deadline,
        failures=status.failures,
        blocked=tuple(
            f"{each.instance_type} until {each.until}" + (f": {each.reason}" if each.reason else "")
            for each in status.blocked
        ),
    )
