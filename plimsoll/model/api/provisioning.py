"""The progress of a Workspace's NodeClaims, as its status records it.

Karpenter deletes a NodeClaim that the provider could not launch, so the number of attempts must be recorded elsewhere.
"""

from typing import Final, NamedTuple

from pydantic import Field

from plimsoll.model.meta import Reported

MOST_ALTERNATIVES: Final = 48
"""As many as a Workspace can name: 16 instance types, each paid for in 3 ways."""


class Alternative(NamedTuple):
    """One of several instance types, and how it is paid for."""

    instance_type: str
    capacity_type: str = ""
    """Empty: as the Workspace, the Environment or the NodePool says."""

    def __str__(self) -> str:
        return f"{self.instance_type} ({self.capacity_type})" if self.capacity_type else self.instance_type

    def same(self, other: "Alternative") -> bool:
        """Whether they are the same but for the letter case of the instance type."""
        return (self.instance_type.casefold(), self.capacity_type) == (
            other.instance_type.casefold(),
            other.capacity_type,
        )


class FailedAlternative(Reported):
    """An alternative whose NodeClaims failed since one last became Ready."""

    instance_type: str = Field(default="", validation_alias="instanceType")
    capacity_type: str = Field(default="", validation_alias="capacityType")
    failures: int = 0
    last_failure: str = Field(default="", validation_alias="lastFailure")
    """RFC 3339; start of its back-off."""
    message: str = ""

    @property
    def alternative(self) -> Alternative:
        return Alternative(self.instance_type, self.capacity_type)


class PendingClaim(Reported):
    """A NodeClaim that is not Ready yet."""

    name: str
    step: str
    """The first step that is not completed: Launched, Registered, Initialized or GPUs."""
    since: str = ""
    """Since when its GPUs are awaited, RFC 3339; the times of other steps are in the NodeClaim."""
    message: str = ""
    """Karpenter's message on the step."""


class Tries(Reported):
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


class Provisioning(Tries):
    """The NodeClaims of a Workspace, and what was chosen of several alternatives."""

    instance_type: str = Field(default="", validation_alias="instanceType")
    """Of several that the Workspace names, the type of its NodeClaims, also while it has none."""
    capacity_type: str = Field(default="", validation_alias="capacityType")
    """Of several that the Workspace names, how its NodeClaims are paid for."""
    idle_since: str = Field(default="", validation_alias="idleSince")
    """Since when nodes stay though it has no replicas, RFC 3339."""
    alternatives: tuple[FailedAlternative, ...] = ()
    """Those of several that failed since a NodeClaim last became Ready, the newest failure first."""
    omitted_alternatives: int = Field(default=0, validation_alias="omittedAlternatives")
    """How many entries were left out of `alternatives`, which keeps as many as a Workspace can name."""
    move_back: Tries = Field(default=Tries(), validation_alias="moveBack")
    """NodeClaims of the first alternative while replicas run on another one (`moveBackSeconds`)."""

    @property
    def alternative(self) -> Alternative:
        """What its NodeClaims are of, where the Workspace names several."""
        return Alternative(self.instance_type, self.capacity_type)

    def with_failed(self, newest: FailedAlternative) -> "Provisioning":
        """With this entry of an alternative instead of an earlier one.

        Only alternatives that a Workspace named before are left out: who changes it again and again gets no longer
        status, and none that it names now is tried before its back-off.
        """
        others = (each for each in self.alternatives if not each.alternative.same(newest.alternative))
        failed = (newest, *others)
        omitted = self.omitted_alternatives + len(failed[MOST_ALTERNATIVES:])
        return self.model_copy(update={"alternatives": failed[:MOST_ALTERNATIVES], "omitted_alternatives": omitted})

    def failed(self, on: Alternative) -> FailedAlternative:
        """The failures of an alternative; none, if it has no record."""
        none = FailedAlternative(instance_type=on.instance_type, capacity_type=on.capacity_type)
        return next((each for each in self.alternatives if each.alternative.same(on)), none)
