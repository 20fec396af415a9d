"""NodeClaims that an autoscaler created for capacity requests: their stage, and which of them failed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import ClaimStage
from plimsoll.model.karpenter import ClaimEvent, NodeClaim
from plimsoll.plan.owned import MESSAGE_LENGTH, ClaimProgress, Wait, parse_time
from plimsoll.plan.requests.capacity_request import CapacityRequest

OTHER_OFFERING_DELAY: Final = timedelta(seconds=30)
"""How long Karpenter may look for another offering after a provider reported insufficient capacity."""
_SUFFIX: Final = 5
"""Random characters that the apiserver appends to the generateName of a NodeClaim (the NodePool's name and a dash)."""
_PROPOSED: Final = 58
"""Characters of a generateName that the apiserver keeps, so that a name has at most 63."""


@dataclass
class NoCapacity:
    """A requested node, with the NodeClaims that failed for insufficient capacity."""

    instance_types: tuple[str, ...]
    detail: str
    claims: list[str] = field(default_factory=list)
    event_times: list[datetime] = field(default_factory=list)
    """Oldest first."""


def no_capacity(
    snapshot: Snapshot, requests: Sequence[CapacityRequest], missing: Mapping[str, int]
) -> Mapping[str, list[NoCapacity]]:
    """Requested nodes for which the provider reported insufficient capacity, by request name.

    `missing` is the number of nodes without a NodeClaim, by request name. Each NodeClaim counts once, and only for
    requests that are older than the event. The NodePool and instance types are those of the NodeClaim where it was
    observed. Otherwise the NodePool follows from the NodeClaim's name, and the instance type from the event's message.
    If the message names none and the requests to this NodePool differ in instance types, the event is ignored, and
    Karpenter tries again.
    """
    gone = {claim.name: claim for claim in snapshot.gone_claims}
    alive = {claim.name for claim in snapshot.node_claims if not claim.deleting}
    lost = {name for each in requests for name in each.lost}
    events = {event.claim: event for event in sorted(snapshot.claim_events, key=_order, reverse=True)}
    found: dict[str, list[NoCapacity]] = {}
    for event in sorted(events.values(), key=_order):
        event_time = parse_time(event.creation_timestamp)
        if event_time is None or event.claim in alive or event.claim in lost:
            continue
        older = [each for each in requests if each.since is None or event_time >= each.since]
        types = _types_by_request(event, gone.get(event.claim), older)
        if not types:
            continue
        short = next((name for name in types if len(found.get(name, ())) < missing[name]), None)
        if short is not None:
            found.setdefault(short, []).append(NoCapacity(types[short], event.detail, [event.claim], [event_time]))
        else:
            # Another attempt for a node that already lacks capacity.
            again = found[next(name for name in types if name in found)][-1]
            again.claims.append(event.claim)
            again.event_times.append(event_time)
    return found


def may_serve(claim: NodeClaim, request: CapacityRequest) -> bool:
    """Whether the NodeClaim can have been created for the request: same NodePool, a common instance type, not older."""
    return (
        claim.labels.get(NODEPOOL, "") == request.node_request.node_pool
        and claim.creation_timestamp >= request.obj.creation_timestamp
        and any(kind in request.node_request.instance_types for kind in claim.possible_types)
    )


def served_by(claim: NodeClaim, requests: Sequence[CapacityRequest], left: Mapping[str, int]) -> CapacityRequest | None:
    """The first request, of those with nodes `left` by its name, for which the NodeClaim can have been created."""
    return next((each for each in requests if left[each.name] > 0 and may_serve(claim, each)), None)


def _types_by_request(
    event: ClaimEvent, claim: NodeClaim | None, requests: Sequence[CapacityRequest]
) -> dict[str, tuple[str, ...]]:
    """Instance types that the event is about, by the name of each request that its NodeClaim may belong to, oldest
    first."""
    if claim is not None:
        kinds = claim.possible_types
        own = [each for each in requests if WORKSPACE not in claim.labels and may_serve(claim, each)]
        return {each.name: tuple(kind for kind in each.node_request.instance_types if kind in kinds) for each in own}
    own = [each for each in requests if named_after_pool(event.claim, each.node_request.node_pool)]
    named = {
        each.name: kinds
        for each in own
        if (kinds := tuple(kind for kind in each.node_request.instance_types if _names(event.detail, kind)))
    }
    if named or len({each.node_request.instance_types for each in own}) > 1:
        return named
    return {each.name: each.node_request.instance_types for each in own}


def named_after_pool(claim: str, node_pool: str) -> bool:
    """Whether a NodeClaim of the NodePool can have this name."""
    return claim[:-_SUFFIX] == f"{node_pool}-"[:_PROPOSED]


def _names(detail: str, instance_type: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(instance_type)}(?![\w-]|\.\w)", detail) is not None


def _order(event: ClaimEvent) -> tuple[str, str]:
    return event.creation_timestamp, event.claim


@dataclass(frozen=True)
class AssignedClaim:
    """A NodeClaim, with the request that it belongs to."""

    name: str
    request: str
    stage: ClaimStage
    instance_types: tuple[str, ...]
    """The launched instance type, or the ones that the requirements allow."""
    message: str = ""
    due: datetime | None = None
    """Deadline of the current step."""
    registered: bool = False
    """Whether its node has registered."""


@dataclass(frozen=True)
class Lost:
    """Nodes of one request that failed."""

    nodes: int = 0
    claims: tuple[AssignedClaim, ...] = ()
    """The NodeClaims that failed; several where the autoscaler tried again for the same node."""


class ClaimMonitor:
    """Assigns the NodeClaims of one snapshot to capacity requests.

    Karpenter does not record for which pod it creates a NodeClaim. A NodeClaim of the same NodePool and instance types,
    created after a request, is assigned to the oldest outstanding request. NodeClaims that missed their deadline are
    assigned last; each counts as one failed node, whatever else is outstanding.
    """

    def __init__(
        self, snapshot: Snapshot, requests: Sequence[CapacityRequest], progress: ClaimProgress, now: datetime
    ) -> None:
        self._progress = progress
        self._now = now
        self._assigned: dict[str, list[AssignedClaim]] = {}
        self._left = {each.name: each.outstanding for each in requests}
        if not requests:
            self._no_capacity: Mapping[str, Sequence[NoCapacity]] = {}
            return
        self._assign_claims(snapshot, requests)
        waiting = [each for each in requests if self._left[each.name]]
        self._no_capacity = no_capacity(snapshot, waiting, self._left) if waiting else {}

    def _assign_claims(self, snapshot: Snapshot, requests: Sequence[CapacityRequest]) -> None:
        registered = {node: each for each in requests for node in each.registered}
        lost = {name for each in requests for name in each.lost}
        late: list[tuple[NodeClaim, Wait | None]] = []
        for claim in sorted(snapshot.node_claims, key=lambda claim: (claim.creation_timestamp, claim.name)):
            if WORKSPACE in claim.labels or claim.deleting or claim.name in lost:
                continue
            wait = self._progress.wait(claim, gpus_known=True, recorded=None, now=self._now)
            owner = registered.get(claim.node_name)
            if owner is not None:
                self._record(claim, wait, owner, registered=True)
            elif wait is not None and self._now > wait.due:
                late.append((claim, wait))
            elif wait is not None:  # else its node is Ready, so no outstanding request waits for it
                self._assign(claim, wait, requests)
        for claim, wait in late:
            self._assign(claim, wait, requests)

    def _assign(self, claim: NodeClaim, wait: Wait | None, requests: Sequence[CapacityRequest]) -> None:
        owner = served_by(claim, requests, self._left)
        if owner is not None:
            self._left[owner.name] -= 1
            self._record(claim, wait, owner)

    def _record(self, claim: NodeClaim, wait: Wait | None, owner: CapacityRequest, *, registered: bool = False) -> None:
        kinds = tuple(each for each in claim.possible_types if each in owner.node_request.instance_types)
        late = wait is not None and self._now > wait.due and not registered
        followed = AssignedClaim(
            name=claim.name,
            request=owner.name,
            stage=ClaimStage.FAILED if late else _stage(claim, wait),
            instance_types=kinds or owner.node_request.instance_types,
            message=_detail(wait, late),
            due=wait.due if wait is not None and not late and not registered else None,
            registered=registered,
        )
        self._assigned.setdefault(owner.name, []).append(followed)

    def of(self, request: CapacityRequest) -> Sequence[AssignedClaim]:
        """The request's NodeClaims that exist."""
        return self._assigned.get(request.name, ())

    def launching(self, request: CapacityRequest) -> int:
        """Outstanding nodes whose NodeClaim has not failed."""
        return sum(not each.registered and each.stage is not ClaimStage.FAILED for each in self.of(request))

    def lost(self, request: CapacityRequest) -> Lost:
        """Nodes whose NodeClaims missed their deadline, and nodes without capacity at the provider."""
        late = tuple(each for each in self.of(request) if each.stage is ClaimStage.FAILED)
        without = self._no_capacity.get(request.name, ())
        expired = [each for each in without if self._now >= each.event_times[0] + OTHER_OFFERING_DELAY]
        claims = tuple(
            AssignedClaim(claim, request.name, ClaimStage.FAILED, each.instance_types, each.detail[:MESSAGE_LENGTH])
            for each in expired
            for claim in each.claims
        )
        return Lost(len(late) + len(expired), late + claims)

    def deadlines(self, request: CapacityRequest) -> list[datetime]:
        """When NodeClaims miss their deadline, and when nodes without capacity are given up."""
        due = [each.due for each in self.of(request) if each.due is not None]
        given_up = [each.event_times[0] + OTHER_OFFERING_DELAY for each in self._no_capacity.get(request.name, ())]
        return due + [each for each in given_up if each > self._now]


def _stage(claim: NodeClaim, wait: Wait | None) -> ClaimStage:
    if wait is None:
        return ClaimStage.READY
    if wait.step != "Launched":
        return ClaimStage.REGISTERING
    return ClaimStage.LAUNCHING if claim.conditions else ClaimStage.CREATED


def _detail(wait: Wait | None, late: bool) -> str:
    if wait is None or not late:
        return ""
    message = f" ({wait.detail[:MESSAGE_LENGTH]})" if wait.detail else ""
    return f"is not {wait.step} after {int(wait.allowed.total_seconds())} s{message}"
