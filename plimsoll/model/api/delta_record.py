"""DeltaRecord: one applied delta, as the Environment's status keeps it."""

from typing import Annotated, Final, Literal

from pydantic import Field

from plimsoll.model.meta import Reported

MAX_RECORDS: Final = 20
"""Records that a status keeps."""
MAX_CHANGES: Final = 10
"""Changes that a record lists."""
MAX_NAMES: Final = 3
"""Names that a change lists."""


class DeltaChange(Reported):
    """Operations of one delta with the same kind, owner, reason and result."""

    operation: Literal["create", "update", "delete"]
    kind: str
    owner: str = ""
    """`Workspace namespace/name`, or the kind and name of a cluster-scoped owner."""
    count: Annotated[int, Field(ge=1)] = 1
    names: tuple[str, ...] = ()
    """At most 3 of the objects."""
    reason: str = ""
    failure: str = ""
    """Why the operations failed; empty if they succeeded."""


class DeltaRecord(Reported):
    """One delta."""

    time: str
    """RFC 3339: when the delta was applied."""
    seconds: Annotated[float, Field(ge=0)] = 0.0
    """Duration of its longest stack update, in seconds."""
    stacks: tuple[str, ...] = ()
    """Capacity stacks that it updated; `pulumi stack history` lists their updates."""
    changes: tuple[DeltaChange, ...] = ()
    """At most 10."""
    more: Annotated[int, Field(ge=0)] = 0
    """Operations that are not listed."""
