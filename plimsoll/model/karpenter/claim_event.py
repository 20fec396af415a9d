"""Karpenter's message on a NodeClaim that could not be launched, in an Event that outlives the NodeClaim."""

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject


class ClaimEvent(ObservedObject):
    """A v1 Event about a NodeClaim."""

    claim: str = Field(default="", validation_alias=AliasPath("involvedObject", "name"))
    claim_uid: str = Field(default="", validation_alias=AliasPath("involvedObject", "uid"))
    reason: str = ""
    message: str = ""

    @property
    def detail(self) -> str:
        """The message without Karpenter's prefix."""
        return self.message.removeprefix(f"NodeClaim {self.claim} event: ")
