"""The progress of a Workspace's NodeClaims, as its status records it.

Karpenter deletes a NodeClaim that the provider could not launch, so the number of attempts must be recorded elsewhere.
"""

from pydantic import Field

from plimsoll.model.meta import Reported


class PendingClaim(Reported):
    """A NodeClaim that is not Ready yet."""

    name: str
    step: str
    """The first step that is not completed: Launched, Registered, Initialized or GPUs."""
    since: str = ""
    """Since when its GPUs are awaited, RFC 3339; the times of other steps are in the NodeClaim."""
    message: str = ""
    """Karpenter's message on the step."""


class Provisioning(Reported):
    """NodeClaims that are pending, and failures since one last became Ready."""

    pending: tuple[PendingClaim, ...] = ()
    failures: int = 0
    """Consecutive failed attempts; everything that fails in one attempt counts once."""
    tries: int = 0
    """Failed attempts over the life of the Workspace; part of the names of new NodeClaims."""
    last_failure: str = Field(default="", validation_alias="lastFailure")
    """RFC 3339; start of the back-off."""
    claim: str = ""
    """Name of the NodeClaim that failed last."""
    reason: str = ""
    message: str = ""
    """The last failure: NodeClaim, step, time allowed, the provider's message."""
