"""What becomes of a Workspace's NodeClaims until they are Ready, as its status remembers it.

A claim that the provider could not launch is deleted by Karpenter: what is gone cannot tell how often it was tried.
"""

from pydantic import Field

from plimsoll.model.meta import Reported


class PendingClaim(Reported):
    """A NodeClaim that is not Ready yet."""

    name: str
    step: str
    """The first step that it has not done: Launched, Registered, Initialized, or GPUs."""
    since: str = ""
    """Since when its GPUs are waited for, RFC 3339; the claim itself tells it of the other steps."""
    message: str = ""
    """What Karpenter says of the step."""


class Provisioning(Reported):
    """Claims on their way, and those that failed since one last became Ready."""

    pending: tuple[PendingClaim, ...] = ()
    failures: int = 0
    """Tries that failed one after the other: a late or lost claim, and what fails with it, is one."""
    tries: int = 0
    """Tries that failed over the Workspace's life: part of the names of new claims."""
    last_failure: str = Field(default="", validation_alias="lastFailure")
    """RFC 3339; the back-off counts from here."""
    claim: str = ""
    """Name of the claim that failed last."""
    reason: str = ""
    message: str = ""
    """What failed last: the claim, its step, how long that was waited for, the provider's words."""
