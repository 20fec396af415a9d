"""What new nodes of each NodePool and instance type would offer."""

from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll.cluster.pools import PoolProfiles
from plimsoll.cluster.profiles import Source
from plimsoll.model import Snapshot
from plimsoll.ui.view.filter import Filter


@dataclass(frozen=True, slots=True)
class NewNodeRow:
    """New nodes of one NodePool and instance type, or of a NodeProfile whose NodePool offers none."""

    pool: str
    instance_type: str
    devices: str
    """Empty: the NodePool offers no such nodes."""
    divided: str
    """Why pods cannot share the GPUs, and what to change; empty if they can."""
    source: Source
    seen: str
    """When `status.learned` of the NodeProfile was first seen like this; empty if nothing was learned."""
    seen_on: str
    """The node on which it was seen."""


def new_node_rows(snapshot: Snapshot, wanted: Filter) -> tuple[NewNodeRow, ...]:
    """By NodePool, then by instance type."""
    found = sorted(_rows(snapshot), key=lambda row: (row.pool, row.instance_type))
    return tuple(
        row
        for row in found
        if wanted.matches_text(row.pool, row.instance_type, row.devices) and wanted.type in ("", row.instance_type)
    )


def _rows(snapshot: Snapshot) -> Iterator[NewNodeRow]:
    known = {profile.pair: profile for profile in snapshot.node_profiles}
    for profile in PoolProfiles(snapshot).every:
        of = known.pop((profile.node_pool, profile.instance_type.casefold()), None)
        learned = of.status.learned if of is not None else None
        yield NewNodeRow(
            profile.node_pool,
            profile.instance_type,
            str(profile.device),
            profile.divided,
            profile.source,
            learned.seen if learned is not None else "",
            learned.node if learned is not None else "",
        )
    for of in known.values():
        learned = of.status.learned
        yield NewNodeRow(
            of.spec.node_pool,
            of.spec.instance_type,
            "",
            "",
            Source.LEARNED if learned is not None else Source.DECLARED,
            learned.seen if learned is not None else "",
            learned.node if learned is not None else "",
        )
