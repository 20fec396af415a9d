"""NodeClaims that an autoscaler created for capacity requests: their stage, and which of them failed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import ClaimStage, DemandPhase
from plimsoll.model.karpenter import ClaimEvent, NodeClaim
from plimsoll.plan.owned import GPUS, MESSAGE_LENGTH, ClaimProgress, Wait, format_time, parse_time
from plimsoll.plan.requests.answers import KARPENTER, Answer, refusal_of
from plimsoll.plan.requests.capacity_request import CapacityRequest, by_kind

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

    `requests` are sorted by age; `missing` is the number of nodes without a NodeClaim, by request name. Each NodeClaim
    counts once, and only for requests that are older than the event. The NodePool and instance types are those of the
    NodeClaim where it was observed. Otherwise the NodePool follows from the NodeClaim's name, and the instance type
    from the event's message. If the message names none and the requests to this NodePool differ in instance types, the
    event is ignored, and Karpenter tries again.
    """
    gone = {claim.name: claim for claim in snapshot.gone_claims}
    alive = {claim.name for claim in snapshot.node_claims if not claim.deleting}
    lost = {name for request in requests for name in request.lost}
    events = {event.claim: event for event in sorted(snapshot.claim_events, key=_order, reverse=True)}
    alike: dict[_Kinds, list[CapacityRequest]] = {}
    for request in requests:
        alike.setdefault((request.node_request.node_pool, request.node_request.instance_types), []).append(request)
    left = {kinds: list(several) for kinds, several in alike.items()}
    lacking: dict[str, list[NoCapacity]] = {}
    for event in sorted(events.values(), key=_order):
        claim, event_time = gone.get(event.claim), parse_time(event.creation_timestamp)
        born = (claim or event).creation_timestamp
        if event_time is None or event.claim in alive or event.claim in lost:
            continue
        types = _types(event, claim, [kinds for kinds, several in alike.items() if _age(several[0])[0] <= born])
        short = [(_age(left[kinds][0]), kinds) for kinds in types if left[kinds] and _age(left[kinds][0])[0] <= born]
        if short:
            (_, name), kinds = min(short)
            lacking.setdefault(name, []).append(NoCapacity(types[kinds], event.detail, [event.claim], [event_time]))
            if len(lacking[name]) == missing[name]:
                del left[kinds][0]
        elif types:
            # Another attempt for a node that already lacks capacity.
            again = lacking[alike[next(iter(types))][0].name][-1]
            again.claims.append(event.claim)
            again.event_times.append(event_time)
    return lacking


def served_by(
    claim: NodeClaim, requests: Mapping[tuple[str, str], Sequence[CapacityRequest]], left: Mapping[str, int]
) -> CapacityRequest | None:
    """The oldest request for which the NodeClaim can have been created: same NodePool, a common instance type, not
    younger. `requests` are as of `by_kind`; those without nodes `left` by their name do not count."""
    of_kinds = (requests.get((claim.labels.get(NODEPOOL, ""), kind), ()) for kind in claim.possible_types)
    oldest = (next((request for request in several if left[request.name] > 0), None) for several in of_kinds)
    able = (
        request
        for request in oldest
        if request is not None and claim.creation_timestamp >= request.obj.creation_timestamp
    )
    return min(able, key=_age, default=None)


_Kinds = tuple[str, tuple[str, ...]]
"""NodePool and instance types of a request."""


def _age(request: CapacityRequest) -> tuple[str, str]:
    """Sort key, oldest first."""
    return request.obj.creation_timestamp, request.name


def _types(event: ClaimEvent, claim: NodeClaim | None, requested: Sequence[_Kinds]) -> dict[_Kinds, tuple[str, ...]]:
    """Instance types that the event is about, for each of those `requested` that its NodeClaim may be for."""
    if claim is not None:
        node_pool, possible = claim.labels.get(NODEPOOL, ""), () if WORKSPACE in claim.labels else claim.possible_types
        observed = {key: tuple(kind for kind in key[1] if kind in possible) for key in requested if key[0] == node_pool}
        return {key: kinds for key, kinds in observed.items() if kinds}
    in_pool = [key for key in requested if named_after_pool(event.claim, key[0])]
    named = {key: kinds for key in in_pool if (kinds := tuple(kind for kind in key[1] if _names(event.detail, kind)))}
    return named if named or len({types for _, types in in_pool}) > 1 else {key: key[1] for key in in_pool}


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
    created: datetime | None = None
    message: str = ""
    """What Karpenter says of the current step, or why the NodeClaim failed."""
    refusal: Answer | None = None
    """Why the current step fails for now."""
    due: datetime | None = None
    """Deadline of the current step."""
    registered: bool = False
    """Whether its node is one of those that have registered for the request."""
    initializing: bool = False
    """Whether its node has joined the cluster, and Karpenter has not initialized it: it may lack its GPUs."""


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
        self._left = {request.name: request.outstanding for request in requests}
        if not requests:
            self._no_capacity: Mapping[str, Sequence[NoCapacity]] = {}
            return
        self._assign_claims(snapshot, requests)
        waiting = [request for request in requests if self._left[request.name]]
        self._no_capacity = no_capacity(snapshot, waiting, self._left) if waiting else {}

    def _assign_claims(self, snapshot: Snapshot, requests: Sequence[CapacityRequest]) -> None:
        registered = {node: request for request in requests for node in request.registered}
        lost, of_kind = {name for request in requests for name in request.lost}, by_kind(requests)
        pending: list[tuple[bool, NodeClaim, Wait]] = []
        for claim in sorted(snapshot.node_claims, key=lambda claim: (claim.creation_timestamp, claim.name)):
            if WORKSPACE in claim.labels or claim.deleting or claim.name in lost:
                continue
            wait = self._progress.wait(claim, gpus_known=True, recorded=None, now=self._now)
            owner = registered.get(claim.node_name)
            if owner is not None:
                self._record(claim, wait, owner, registered=True)
            elif wait is not None:  # else its node is Ready, so no outstanding request waits for it
                pending.append((self._now > wait.due, claim, wait))
        for _, claim, wait in sorted(pending, key=lambda each: each[0]):
            owner = served_by(claim, of_kind, self._left)
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
            created=parse_time(claim.creation_timestamp),
            message=_detail(wait, late),
            refusal=refusal_of(claim, wait.step) if wait is not None and not late else None,
            # The monitor has no record of since when a node lacks its GPUs: the deadline of the request applies.
            due=wait.due if wait is not None and wait.step != GPUS and not late and not registered else None,
            registered=registered,
            initializing=wait is not None and wait.step == "Initialized",
        )
        self._assigned.setdefault(owner.name, []).append(followed)

    def of(self, request: CapacityRequest) -> Sequence[AssignedClaim]:
        """The request's NodeClaims that exist."""
        return self._assigned.get(request.name, ())

    def launching(self, request: CapacityRequest) -> list[AssignedClaim]:
        """The NodeClaims of outstanding nodes that have not failed."""
        return [claim for claim in self.of(request) if not claim.registered and claim.stage is not ClaimStage.FAILED]

    def lost(self, request: CapacityRequest) -> tuple[int, tuple[AssignedClaim, ...]]:
        """Number of nodes whose NodeClaims missed their deadline or without capacity at the provider, and their
        NodeClaims: several where the autoscaler tried again for the same node."""
        late = tuple(claim for claim in self.of(request) if claim.stage is ClaimStage.FAILED)
        without = self._no_capacity.get(request.name, ())
        expired = [lacking for lacking in without if self._now >= lacking.event_times[0] + OTHER_OFFERING_DELAY]
        claims = tuple(
            AssignedClaim(
                claim, request.name, ClaimStage.FAILED, lacking.instance_types, message=lacking.detail[:MESSAGE_LENGTH]
            )
            for lacking in expired
            for claim in lacking.claims
        )
        return len(late) + len(expired), late + claims

    def without_capacity(self, request: CapacityRequest) -> list[Answer]:
        """Refusals of providers for nodes that are not given up yet, because Karpenter may find another offering."""
        return [
            Answer(
                by=KARPENTER,
                reason="InsufficientCapacityError",
                message=f"NodeClaim {lacking.claims[0]}: {lacking.detail}"[:MESSAGE_LENGTH],
                since=format_time(lacking.event_times[0]),
                time=lacking.event_times[0],
                phase=DemandPhase.REFUSED,
            )
            for lacking in self._no_capacity.get(request.name, ())
            if self._now < lacking.event_times[0] + OTHER_OFFERING_DELAY
        ]

    def deadlines(self, request: CapacityRequest) -> list[datetime]:
        """When NodeClaims miss their deadline, and when nodes without capacity are given up."""
        due = [claim.due for claim in self.of(request) if claim.due is not None]
        given_up = [
            lacking.event_times[0] + OTHER_OFFERING_DELAY for lacking in self._no_capacity.get(request.name, ())
        ]
        return due + [time for time in given_up if time > self._now]


def _stage(claim: NodeClaim, wait: Wait | None) -> ClaimStage:
    if wait is None:
        return ClaimStage.READY
    if wait.step == "Registered":
        return ClaimStage.REGISTERING
    if wait.step != "Launched":
        return ClaimStage.INITIALIZING
    return ClaimStage.LAUNCHING if claim.conditions else ClaimStage.CREATED


def _detail(wait: Wait | None, late: bool) -> str:
    detail = wait.detail[:MESSAGE_LENGTH] if wait is not None else ""
    if wait is None or not late:
        return detail
    message = f" ({detail})" if detail else ""
    return f"is not {wait.step} after {int(wait.allowed.total_seconds())} s{message}"
