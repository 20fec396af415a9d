"""Created objects count in a status before the watches show them, so that the status does not change afterwards."""

from datetime import UTC, datetime, timedelta

from plimsoll.loop import with_claims
from plimsoll.model import Snapshot
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import AppliedClaims, WorkspaceNodes
from plimsoll.report import status_of
from tests.builders import NC24, a_snapshot, a_workspace
from tests.planning.cluster import after

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def status(snapshot: Snapshot, made: AppliedClaims | None, now: datetime) -> dict[str, object]:
    (workspace,) = snapshot.workspaces
    verdicts = validate(snapshot)
    reported = status_of(workspace, verdicts[0], WorkspaceNodes(snapshot, verdicts, made), now)
    conditions = reported["conditions"]
    return reported | {"conditions": [each | {"lastTransitionTime": ""} for each in conditions]}


def test_a_status_with_created_objects_is_not_written_again_when_they_are_observed() -> None:
    before = a_snapshot(a_workspace(instance_type=NC24, uid="u"), nap=True)
    found = plan(before, validate(before), NOW)
    reported = status(with_claims(before, found.creations, NOW), AppliedClaims(found), NOW)
    later = NOW + timedelta(seconds=20)
    shown = after(before, found)
    shown = shown.model_copy(
        update={
            "node_claims": tuple(
                each.model_copy(update={"creation_timestamp": later.isoformat()}) for each in shown.node_claims
            )
        }
    )
    assert status(shown, None, later) == reported
    assert found.creations[0].key.name in str(reported)


def test_observed_objects_are_not_counted_twice() -> None:
    before = a_snapshot(a_workspace(instance_type=NC24, uid="u"), nap=True)
    found = plan(before, validate(before), NOW)
    shown = after(before, found)
    assert with_claims(shown, found.creations, NOW) is shown
