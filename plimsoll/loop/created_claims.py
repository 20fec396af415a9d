"""The snapshot with the objects that were just created, before the watches show them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from plimsoll.model import Change, Snapshot
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned import format_time


def with_claims(snapshot: Snapshot, creations: Iterable[Change], now: datetime) -> Snapshot:
    """Adds the created NodeClaims, so that a status that counts them need not be written again when the watches show
    them."""
    created = [each for each in creations if each.key.kind == "NodeClaim"]
    known = {claim.name for claim in snapshot.node_claims} if created else set()
    made = [NodeClaim.read(_created(each.manifest, now)) for each in created if each.key.name not in known]
    return snapshot.model_copy(update={"node_claims": (*snapshot.node_claims, *made)}) if made else snapshot


def _created(manifest: dict[str, Any], now: datetime) -> dict[str, Any]:
    created = {"creationTimestamp": format_time(now)}
    return {**manifest, "metadata": {**manifest["metadata"], **created}}
