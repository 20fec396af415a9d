"""Nodes for which the provider had no capacity: Karpenter deletes such a NodeClaim at once, and an event is left."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.labels import INSTANCE_TYPE, NODEPOOL, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.karpenter import ClaimEvent, NodeClaim
from plimsoll.plan.owned import parse_time
from plimsoll.plan.requests.asked import Asked

ELSEWHERE: Final = timedelta(seconds=30)
"""How long Karpenter may look for another offering of what it was asked for, after a provider had none."""
_SUFFIX: Final = 5
"""Characters that the apiserver adds to the name that Karpenter proposes, which is that of the NodePool and a dash."""
_PROPOSED: Final = 58


@dataclass
class SoldOut:
    """One node that was asked for, and the claims that found no capacity for it."""

    instance_types: tuple[str, ...]
    words: str
    claims: list[str] = field(default_factory=list)
    said: list[datetime] = field(default_factory=list)
    """When, the first time first."""


def sold_out(snapshot: Snapshot, asked: Sequence[Asked], missing: Mapping[str, int]) -> Mapping[str, list[SoldOut]]:
    """Nodes without a living claim of which the provider said that it had none, by the name of what asked for them.

    `missing` nodes of each have no claim. Events count once for each claim, and never for what was asked for later. A
    claim that was seen tells its NodePool and types; of one that was not, its name tells the NodePool, and the
    provider's words may tell the type: where they do not, and different types were asked for of the NodePool, the
    event is left alone, for Karpenter tries again.
    """
    gone = {claim.name: claim for claim in snapshot.gone_claims}
    alive = {claim.name for claim in snapshot.node_claims if not claim.deleting}
    lost = {name for each in asked for name in each.lost}
    events = {event.claim: event for event in sorted(snapshot.claim_events, key=_order, reverse=True)}
    found: dict[str, list[SoldOut]] = {}
    for event in sorted(events.values(), key=_order):
        said = parse_time(event.creation_timestamp)
        if said is None or event.claim in alive or event.claim in lost:
            continue
        claim = gone.get(event.claim)
        if claim is not None and event.claim_uid not in ("", claim.uid):
            claim = None
        types = _types_by_asked(event, claim, [each for each in asked if said >= each.since])
        if not types:
            continue
        short = next((name for name in types if len(found.get(name, ())) < missing[name]), None)
        if short is not None:
            found.setdefault(short, []).append(SoldOut(types[short], event.words, [event.claim], [said]))
        else:
            # It was tried again for a node that is known to be lacking.
            again = found[next(name for name in types if name in found)][-1]
            again.claims.append(event.claim)
            again.said.append(said)
    return found


def answers(claim: NodeClaim, asked: Asked) -> bool:
    """Whether the claim can have been made for it."""
    launched = claim.labels.get(INSTANCE_TYPE)
    kinds = (launched,) if launched else claim.instance_types
    return (
        claim.labels.get(NODEPOOL, "") == asked.ask.node_pool
        and claim.creation_timestamp >= asked.thing.creation_timestamp
        and any(kind in asked.ask.instance_types for kind in kinds)
    )


def _types_by_asked(event: ClaimEvent, claim: NodeClaim | None, asked: Sequence[Asked]) -> dict[str, tuple[str, ...]]:
    """Types that the event speaks of, by the name of what can have asked for its claim, the oldest first."""
    if claim is not None:
        launched = claim.labels.get(INSTANCE_TYPE)
        kinds = (launched,) if launched else claim.instance_types
        own = [each for each in asked if WORKSPACE not in claim.labels and answers(claim, each)]
        return {each.name: tuple(kind for kind in each.ask.instance_types if kind in kinds) for each in own}
    own = [each for each in asked if made_of(event.claim, each.ask.node_pool)]
    named = {
        each.name: kinds
        for each in own
        if (kinds := tuple(kind for kind in each.ask.instance_types if _names(event.words, kind)))
    }
    if named or len({each.ask.instance_types for each in own}) > 1:
        return named
    return {each.name: each.ask.instance_types for each in own}


def made_of(claim: str, node_pool: str) -> bool:
    """Whether the name is one that a NodeClaim of the NodePool gets."""
    return claim[:-_SUFFIX] == f"{node_pool}-"[:_PROPOSED]


def _names(words: str, instance_type: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(instance_type)}(?![\w-]|\.\w)", words) is not None


def _order(event: ClaimEvent) -> tuple[str, str]:
    return event.creation_timestamp, event.claim
