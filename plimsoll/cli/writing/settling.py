"""When a job may end: nothing is left to do, all nodes that the controller requested are ready, and the workloads are
created. Their pods may load weights for an hour, and report it in the condition WorkloadReady."""

import time
from collections.abc import Callable

from plimsoll.loop import RoundResult
from plimsoll.model import Plan
from plimsoll.plan.owned import alive, request_objects
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
    if result.outcome.failed:
        return "failed: " + shortlist([f"{key} ({failure})" for key, failure in result.outcome.failed.items()])
    if not plan.empty:
        return "the Plan is applied, and the watches have not delivered the result yet"
    if (gates := len(plan.gate_removals) - result.gates_removed) > 0:
        return f"failed: {counted(gates, 'capacity gate')} not removed from pods, see the log"
    holdings = WorkspaceNodes(result.snapshot, plan.verdicts)
    accepted = {verdict.workspace for verdict in plan.verdicts if verdict.accepted}
    withheld = {each.owner for each in plan.withheld}
    waiting = []
    for workspace in result.snapshot.workspaces:
        if workspace.ref not in accepted or workspace.ref in withheld or workspace.deleting:
            continue
        claims = alive(holdings.ownership.claims_of(workspace))
        if late := [claim.name for claim in claims if not claim.ready]:
            waiting.append(f"{workspace.ref}: NodeClaims not ready: {shortlist(late)}")
        elif (missing := holdings.ownership.requested_for(workspace) - len(claims)) > 0:
            waiting.append(
                f"{workspace.ref}: Karpenter has not created {counted(missing, 'NodeClaim')} of its NodePool"
            )
        elif workspace.spec.inference is not None and not holdings.ownership.workloads_of(workspace):
            waiting.append(f"{workspace.ref}: its workload is created when its nodes are ready")
    deleting = [claim.name for claim in holdings.ownership.claims if claim.deleting]
    if deleting:
        waiting.append(f"NodeClaims under deletion: {shortlist(deleting)}")
    requested = [
        each for obj in request_objects(result.snapshot) if (each := read_request(obj)) is not None and each.outstanding
    ]
    if requested:
        waiting.append(f"nodes for demand: {shortlist([each.name for each in requested])}")
    if not waiting and plan.next_deadline is not None:
        waiting.append(f"the next deadline, or request for capacity, is at {plan.next_deadline:%H:%M:%S} UTC")
    return f"not settled: {shortlist(waiting)}" if waiting else ""
