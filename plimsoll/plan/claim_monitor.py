"""NodeClaims that an autoscaler made for what demand asked: how far each has come, and which failed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.model.claim_event import ClaimEvent
from plimsoll.model.gpu_demand import ClaimStage
from plimsoll.model.labels import INSTANCE_TYPE, NODEPOOL, WORKSPACE
from plimsoll.model.node_claim import NodeClaim
from plimsoll.model.snapshot import Snapshot
from plimsoll.plan.asked import Asked
from plimsoll.plan.claim_progress import ClaimProgress, Wait, parse_time

WORDS_LENGTH: Final = 400
"""Characters that are kept of what Karpenter or a provider says."""
ELSEWHERE: Final = timedelta(seconds=30)
"""How long Karpenter may look for another offering of what it was asked for, after a provider had none."""


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


class ClaimMonitor:
    """Follows the claims of one snapshot.

    Karpenter does not say for which pod it makes one: a claim of the pool and the types, made after something was
    asked for, answers the oldest of what is outstanding.
    """

    def __init__(self, snapshot: Snapshot, asked: Sequence[Asked], now: datetime) -> None:
        self._progress = ClaimProgress(snapshot.nodes, snapshot.environment.spec)
        self._now = now
        self._events = snapshot.claim_events
        self._live = {claim.name for claim in snapshot.node_claims}
        self.claims: list[FollowedClaim] = []
        self._following: dict[str, list[FollowedClaim]] = {}
        came = {node: each for each in asked for node in each.came}
        left = {each.name: each.outstanding for each in asked}
        for claim in sorted(snapshot.node_claims, key=lambda claim: (claim.creation_timestamp, claim.name)):
            if WORKSPACE in claim.labels or claim.deleting:
                continue
            owner = came.get(claim.node_name)
            if owner is None:
                owner = next((each for each in asked if left[each.name] and _answers(claim, each)), None)
                if owner is not None:
                    left[owner.name] -= 1
            if owner is not None:
                self._follow(claim, owner)

    def _follow(self, claim: NodeClaim, owner: Asked) -> None:
        wait = self._progress.wait(claim, gpus_known=True, recorded=None, now=self._now)
        launched = claim.labels.get(INSTANCE_TYPE)
        kinds = (launched,) if launched else tuple(t for t in claim.instance_types if t in owner.ask.instance_types)
        late = wait is not None and self._now > wait.due
        followed = FollowedClaim(
            name=claim.name,
            asked=owner.name,
            stage=ClaimStage.FAILED if late else _stage(claim, wait),
            instance_types=kinds or owner.ask.instance_types,
            message=_words(wait, late),
            due=wait.due if wait is not None and not late else None,
        )
        self.claims.append(followed)
        self._following.setdefault(owner.name, []).append(followed)

    def of(self, asked: Asked) -> Sequence[FollowedClaim]:
        return self._following.get(asked.name, ())

    def failed(self, asked: Asked) -> Iterator[FollowedClaim]:
        """Claims that are late, and those that the provider had no capacity for."""
        following = self.of(asked)
        yield from (each for each in following if each.stage is ClaimStage.FAILED)
        if len(following) < asked.outstanding + len(asked.came) and (event := self._sold_out(asked)) is not None:
            words = event.words[:WORDS_LENGTH]
            yield FollowedClaim(event.claim, asked.name, ClaimStage.FAILED, asked.ask.instance_types, words)

    def _sold_out(self, asked: Asked) -> ClaimEvent | None:
        """What the provider said since, where Karpenter has found nothing else since."""
        for event in self._events:
            said = parse_time(event.creation_timestamp)
            if (
                said is not None
                and said >= asked.since
                and event.claim not in self._live
                and event.claim.startswith(f"{asked.ask.node_pool}-")
                and self._now >= said + ELSEWHERE
            ):
                return event
        return None


def _answers(claim: NodeClaim, asked: Asked) -> bool:
    launched = claim.labels.get(INSTANCE_TYPE)
    kinds = (launched,) if launched else claim.instance_types
    return (
        claim.labels.get(NODEPOOL, "") == asked.ask.node_pool
        and claim.creation_timestamp >= asked.thing.creation_timestamp
        and any(kind in asked.ask.instance_types for kind in kinds)
    )


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
