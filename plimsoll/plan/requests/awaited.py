"""What the outstanding nodes of a capacity request wait for, and until when."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from plimsoll.model.api import ClaimStage, DemandPhase
from plimsoll.plan.requests.answers import Answer
from plimsoll.plan.requests.capacity_request import CapacityRequest
from plimsoll.plan.requests.claims import AssignedClaim

_PHASES: Final = {
    ClaimStage.CREATED: DemandPhase.LAUNCHING,
    ClaimStage.LAUNCHING: DemandPhase.LAUNCHING,
    ClaimStage.REGISTERING: DemandPhase.REGISTERING,
    ClaimStage.INITIALIZING: DemandPhase.INITIALIZING,
}
"""What a node waits for, by the stage of its NodeClaim."""
_ORDER: Final = (
    DemandPhase.REFUSED,
    DemandPhase.SCHEDULED,
    DemandPhase.LAUNCHING,
    DemandPhase.REGISTERING,
    DemandPhase.INITIALIZING,
)
"""Furthest behind first."""


@dataclass(frozen=True)
class Awaited:
    """The outstanding nodes of one request."""

    phase: DemandPhase
    """What the node that is furthest behind waits for."""
    refusals: tuple[Answer, ...]
    """Why nodes do not come for now."""
    refused: Mapping[str, Answer] = field(default_factory=dict)
    """Why the autoscaler refuses a node, by the name of the requested node."""
    deadline: datetime | None = None
    """When the first of them is given up; None if that is not known."""


def awaited(
    request: CapacityRequest,
    answer: Answer | None,
    claims: Sequence[AssignedClaim],
    without_capacity: Sequence[Answer],
    deadlines: Iterable[datetime],
) -> Awaited:
    """`answer` is the newest one to the request, `claims` are those of its outstanding nodes, `without_capacity` what
    providers said whose other offerings Karpenter may still try, and `deadlines` are those of the nodes.

    A refusal applies to the nodes without a NodeClaim. If each node has one and the refusal is newer than all of them,
    they were created for other requests, although Karpenter did not say so.
    """
    unclaimed = request.requested_nodes[len(claims) :]
    refusals = [claim.refusal for claim in claims if claim.refusal is not None]
    phases = [DemandPhase.REFUSED if claim.refusal is not None else _PHASES[claim.stage] for claim in claims]
    if unclaimed:
        phases.append(DemandPhase.SCHEDULED if answer is None else answer.phase)
        phases += [answer.phase for answer in without_capacity]
        refusals += without_capacity
    refused = {}
    if answer is not None and answer.refused and (unclaimed or all(answer.after(claim.created) for claim in claims)):
        phases.append(answer.phase)
        refusals.append(answer)
        refused = {node.name: answer for node in unclaimed or request.requested_nodes}
    return Awaited(furthest_behind(phases), tuple(refusals), refused, min(deadlines, default=None))


def furthest_behind(phases: Iterable[DemandPhase]) -> DemandPhase:
    """The phase of several nodes; Scheduled if there are none."""
    return min(phases, key=_ORDER.index, default=DemandPhase.SCHEDULED)
