"""When a job may end: nothing is left to do, all nodes that the controller requested are ready, and the workloads are
created. Their pods may load weights for an hour, and report it in the condition WorkloadReady."""

import time
from collections.abc import Callable, Iterator

from plimsoll.loop import RoundResult
from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.plan.owned import Ownership, alive, request_objects
from plimsoll.plan.requests import read_request
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.text import counted, shortlist


class Settling:
    """Follows the rounds of a job. `timeout` in seconds."""

    def __init__(self, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline = clock() + timeout
        self._plans: list[Plan] = []
        self.unsettled = "nothing was planned"
        """What is not ready yet; empty when settled."""

    def on_round(self, result: RoundResult) -> bool:
        """Whether to continue."""
        if result.plan is not None:
            self._plans.append(result.plan)
            self.unsettled = _on_its_way(result, result.plan)
        return bool(self.unsettled) and self._clock() < self._deadline

    def whole_plan(self) -> Plan | None:
        """The last verdicts, with the operations of every round; None if no round was planned."""
        if not self._plans:
            return None
        last = self._plans[-1]
        return last.model_copy(
            update={
                "creations": tuple({each.key: each for plan in self._plans for each in plan.creations}.values()),
                "updates": tuple({each.key: each for plan in self._plans for each in plan.updates}.values()),
                "deletions": tuple({each.uid: each for plan in self._plans for each in plan.deletions}.values()),
            }
        )


def _on_its_way(result: RoundResult, plan: Plan) -> str:
    if failed := {**result.waiting, **result.outcome.failed}:
        return "failed: " + shortlist([f"{key} ({failure})" for key, failure in failed.items()])
    if not plan.empty:
        return "the Plan is applied, and the watches have not delivered the result yet"
    if (gates := len(plan.gate_removals) - result.gates_removed) > 0:
        return f"failed: {counted(gates, 'capacity gate')} not removed from pods, see the log"
    waiting = [*_workspaces_on_their_way(result.snapshot, plan), *_requests_on_their_way(result.snapshot)]
    if not waiting and plan.next_deadline is not None:
        waiting.append(f"the next deadline, or request for capacity, is at {plan.next_deadline:%H:%M:%S} UTC")
    return f"not settled: {shortlist(waiting)}" if waiting else ""


def _workspaces_on_their_way(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    ownership = WorkspaceNodes(snapshot, plan.verdicts).ownership
    accepted = {verdict.workspace for verdict in plan.verdicts if verdict.accepted}
    withheld = {operation.owner for operation in plan.withheld}
    for workspace in snapshot.workspaces:
        if workspace.ref in accepted - withheld and not workspace.deleting:
            missing = _missing(workspace, ownership)
            if missing:
                yield f"{workspace.ref}: {missing}"
    deleting = [claim.name for claim in ownership.claims if claim.deleting]
    if deleting:
        yield f"NodeClaims under deletion: {shortlist(deleting)}"


def _missing(workspace: Workspace, ownership: Ownership) -> str:
    claims = alive(ownership.claims_of(workspace))
    if late := [claim.name for claim in claims if not claim.ready]:
        return f"NodeClaims not ready: {shortlist(late)}"
    if (missing := ownership.requested_for(workspace) - len(claims)) > 0:
        return f"Karpenter has not created {counted(missing, 'NodeClaim')} of its NodePool"
    if workspace.spec.inference is not None and not ownership.workloads_of(workspace):
        return "its workload is created when its nodes are ready"
    return ""


def _requests_on_their_way(snapshot: Snapshot) -> Iterator[str]:
    requests = filter(None, map(read_request, request_objects(snapshot)))
    names = [request.name for request in requests if request.outstanding]
    if names:
        yield f"nodes for demand: {shortlist(names)}"
