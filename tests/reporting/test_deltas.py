"""The history of deltas in the Environment's status: what, when, why, and by which stacks; its size is limited."""

from datetime import UTC, datetime

from plimsoll.model import Change, Deletion, DemandRef, ObjectKey, Plan
from plimsoll.model.api import MAX_CHANGES, MAX_NAMES, MAX_RECORDS, DeltaRecord, WorkspaceRef
from plimsoll.report import DeltaHistory, delta_record

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WS = WorkspaceRef(namespace="team", name="ws")


def creating(*names: str, reason: str = "2 of 2 nodes are missing") -> Plan:
    claims = [{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}} for name in names]
    return Plan(creations=tuple(Change(manifest=claim, owner=WS, reason=reason) for claim in claims))


def test_equal_operations_are_one_change_with_some_names() -> None:
    record = delta_record(creating(*(f"c{number}" for number in range(8))), {}, {"shard-0": 0.25, "shard-1": 0.5}, NOW)
    (change,) = record.changes
    assert (change.operation, change.kind, change.owner, change.count) == (
        "create",
        "NodeClaim",
        "Workspace team/ws",
        8,
    )
    assert change.names == ("c0", "c1", "c2")[:MAX_NAMES]
    assert change.reason == "2 of 2 nodes are missing"
    assert (record.time, record.seconds, record.stacks) == ("2026-01-01T00:00:00Z", 0.5, ("shard-0", "shard-1"))


def test_failures_are_listed_separately_with_their_reason() -> None:
    plan = creating("good", "bad")
    record = delta_record(plan, {plan.creations[1].key: "Refused: quota"}, {"shard-0": 1.0}, NOW)
    assert [(each.names, each.failure) for each in record.changes] == [(("good",), ""), (("bad",), "Refused: quota")]


def test_a_record_is_limited_and_counts_what_it_leaves_out() -> None:
    key = ObjectKey(api_version="v1", kind="Pod", namespace="triggers", name="p")
    deletions = tuple(
        Deletion(key=key, uid=str(number), owner=DemandRef(name="d"), reason=f"reason {number}") for number in range(14)
    )
    record = delta_record(Plan(deletions=deletions), {}, {"s": 1.0}, NOW)
    assert (len(record.changes), record.more) == (MAX_CHANGES, 4)
    assert record.changes[0].owner == "GPUDemand d"


def test_the_newest_come_first_and_the_oldest_are_dropped() -> None:
    history = DeltaHistory()
    earlier = tuple(DeltaRecord(time=f"2025-01-01T00:00:{number:02}Z") for number in range(MAX_RECORDS))
    records = history.with_delta(earlier, creating("c"), {}, {"s": 1.0}, NOW)
    assert [each.time for each in records[:2]] == ["2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z"]
    assert len(records) == MAX_RECORDS
    # Before the watches show what was written, nothing is lost.
    assert history.with_delta(earlier, creating("d"), {}, {"s": 1.0}, NOW)[1] == records[0]


def test_a_round_without_an_update_adds_nothing() -> None:
    history = DeltaHistory()
    assert history.with_delta((), creating("c"), {}, {}, NOW) == ()
    assert history.with_delta((), Plan(), {}, {"s": 1.0}, NOW) == ()
