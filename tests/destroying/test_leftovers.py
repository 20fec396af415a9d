"""`plimsoll destroy` keeps the CRDs while Workspaces exist that no stack declares, because they would be deleted."""

import pytest

from plimsoll.cli.writing import refuse_leftovers
from plimsoll.errors import PlimsollError
from plimsoll.model import InvalidObject, Snapshot
from plimsoll.model.api import Workspace, WorkspaceRef
from tests.builders import a_snapshot, a_workspace

MOMENT = "2026-01-01T00:00:00Z"


def unreadable(name: str, deleted: str | None = None) -> InvalidObject:
    ref = WorkspaceRef(namespace="team", name=name)
    return InvalidObject(ref=ref, message="spec: is required", deletion_timestamp=deleted)


def readable(name: str, deleted: str | None = None) -> Workspace:
    return a_workspace(name, namespace="team").model_copy(update={"deletion_timestamp": deleted})


def of(*workspaces: Workspace, invalid: tuple[InvalidObject, ...] = ()) -> Snapshot:
    return a_snapshot(*workspaces).model_copy(update={"invalid_workspaces": invalid})


@pytest.mark.parametrize(
    ("snapshot", "named"),
    [
        (of(readable("a")), {"team/a"}),
        (of(invalid=(unreadable("b"),)), {"team/b"}),
        (of(readable("a"), readable("c", MOMENT), invalid=(unreadable("b"),)), {"team/a", "team/b"}),
    ],
)
def test_workspaces_that_would_be_deleted_are_named(snapshot: Snapshot, named: set[str]) -> None:
    with pytest.raises(PlimsollError) as refused:
        refuse_leftovers(snapshot)
    assert {name for name in ("team/a", "team/b", "team/c") if name in refused.value.message} == named


def test_workspaces_that_are_being_deleted_do_not_count() -> None:
    refuse_leftovers(of(readable("a", MOMENT), invalid=(unreadable("b", MOMENT),)))
    refuse_leftovers(of())
