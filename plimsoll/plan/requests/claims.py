"""NodeClaims that an autoscaler made for what demand asked: how far each has come, and which failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.labels import INSTANCE_TYPE, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import ClaimStage
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned import ClaimProgress, Wait
from plimsoll.plan.requests.asked import Asked
from plimsoll.plan.requests.sold_out import ELSEWHERE, SoldOut, answers, sold_out

WORDS_LENGTH: Final = 400
"""Characters that are kept of what Karpenter or a provider says."""


@dataclass(frozen=True)
class FollowedClaim:
    """A NodeClaim with the object that asked for it."""

    name: str
    asked: str
    stage: ClaimStage
    instance_types: tuple[str, ...]
    """The one that it was launched as, else those that it may become."""
    message: str = ""
    due: datetime | None = None
    """When it will have failed, as it stands now."""
    came: bool = False
    """Whether its node has come already."""


@dataclass(frozen=True)
class Lost:
    """What will not come of what one object asked for."""

    nodes: int = 0
    claims: tuple[FollowedClaim, ...] = ()
    """Those that failed; several where an autoscaler tried again for the same node."""


class ClaimMonitor:
    """Follows the claims of one snapshot.

    Karpenter does not say for which pod it makes one: a claim of the pool and the types, made after something was
    asked for, answers the oldest of what is outstanding. Those that are late answer last: each of them is one node
    that does not come, whoever else waits beside it.
    """

    def __init__(self, snapshot: Snapshot, asked: Sequence[Asked], now: datetime) -> None:
        self._progress = ClaimProgress(snapshot.nodes, snapshot.environment.spec)
        self._now = now
        self._following: dict[str, list[FollowedClaim]] = {}
        self._left = {each.name: each.outstanding for each in asked}
        if not asked:
            self._sold: Mapping[str, Sequence[SoldOut]] = {}
            return
        self._follow_living(snapshot, asked)
        waiting = [each for each in asked if self._left[each.name]]
        self._sold = sold_out(snapshot, waiting, self._left) if waiting else {}

    def _follow_living(self, snapshot: Snapshot, asked: Sequence[Asked]) -> None:
        came = {node: each for each in asked for node in each.came}
        lost = {name for each in asked for name in each.lost}
        late: list[tuple[NodeClaim, Wait | None]] = []
        for claim in sorted(snapshot.node_claims, key=lambda claim: (claim.creation_timestamp, claim.name)):
            if WORKSPACE in claim.labels or claim.deleting or claim.name in lost:
                continue
            wait = self._progress.wait(claim, gpus_known=True, recorded=None, now=self._now)
            owner = came.get(claim.node_name)
            if owner is not None:
                self._follow(claim, wait, owner, came=True)
            elif wait is not None and self._now > wait.due:
                late.append((claim, wait))
            elif wait is not None:  # one that serves, and came for none of these, answers none of them
                self._give(claim, wait, asked)
        for claim, wait in late:
            self._give(claim, wait, asked)

    def _give(self, claim: NodeClaim, wait: Wait | None, asked: Sequence[Asked]) -> None:
        owner = next((each for each in asked if self._left[each.name] and answers(claim, each)), None)
        if owner is not None:
            self._left[owner.name] -= 1
            self._follow(claim, wait, owner)

    def _follow(self, claim: NodeClaim, wait: Wait | None, owner: Asked, *, came: bool = False) -> None:
        launched = claim.labels.get(INSTANCE_TYPE)
        kinds = (launched,) if launched else tuple(t for t in claim.instance_types if t in owner.ask.instance_types)
        late = wait is not None and self._now > wait.due and not came
        followed = FollowedClaim(
            name=claim.name,
            asked=owner.name,
            stage=ClaimStage.FAILED if late else _stage(claim, wait),
            instance_types=kinds or owner.ask.instance_types,
            message=_words(wait, late),
            due=wait.due if wait is not None and not late and not came else None,
            came=came,
        )
        self._following.setdefault(owner.name, []).append(followed)

    def of(self, asked: Asked) -> Sequence[FollowedClaim]:
        """Living claims."""
        return self._following.get(asked.name, ())

    def coming(self, asked: Asked) -> int:
        """Nodes still to come for which there is a claim that has not failed."""
        return sum(not each.came and each.stage is not ClaimStage.FAILED for each in self.of(asked))

    def lost(self, asked: Asked) -> Lost:
        """Nodes whose claims are late, and those that the provider had no capacity for."""
        late = tuple(each for each in self.of(asked) if each.stage is ClaimStage.FAILED)
        ripe = [each for each in self._sold.get(asked.name, ()) if self._now >= each.said[0] + ELSEWHERE]
        claims = tuple(
            FollowedClaim(claim, asked.name, ClaimStage.FAILED, each.instance_types, each.words[:WORDS_LENGTH])
            for each in ripe
            for claim in each.claims
        )
        return Lost(len(late) + len(ripe), late + claims)

    def looks(self, asked: Asked) -> list[datetime]:
        """When claims will be late, and when nothing is expected any more of what found no capacity."""
        due = [each.due for each in self.of(asked) if each.due is not None]
        ripe = [each.said[0] + ELSEWHERE for each in self._sold.get(asked.name, ())]
        return due + [each for each in ripe if each > self._now]


def _stage(claim: NodeClaim, wait: Wait | None) -> ClaimStage:
    if wait is None:
        return ClaimStage.READY
    if wait.step != "Launched":
        return ClaimStage.REGISTERING
    return ClaimStage.LAUNCHING if claim.conditions else ClaimStage.CREATED


def _words(wait: Wait | None, late: bool) -> str:
    if wait is None or not late:
        return ""
    said = f" ({wait.words[:WORDS_LENGTH]})" if wait.words else ""
    return f"waits for {wait.step} for longer than {int(wait.allowed.total_seconds())} s{said}"
