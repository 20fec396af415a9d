"""Writing the finalizer: other finalizers and objects are not changed, and nothing is written twice."""

from collections.abc import Iterator

import pytest

from plimsoll.kube import RequestError
from plimsoll.labels import CAPACITY_FINALIZER
from plimsoll.report import TRIES, FinalizerWriter, Finalizing
from tests.builders import a_workspace
from tests.reporting.test_reporter import Recording

PATH = "/apis/plimsoll.dev/v1alpha1/namespaces/default/workspaces/ws"
REF = a_workspace(uid="u").ref


@pytest.fixture
def connection() -> Recording:
    return Recording()


@pytest.fixture
def writer(connection: Recording) -> Iterator[FinalizerWriter]:
    writer = FinalizerWriter(connection)
    yield writer
    writer.close()


def holding(connection: Recording, uid: str = "u") -> None:
    """The cluster has the Workspace, with another finalizer besides ours."""
    metadata = {"uid": uid, "resourceVersion": "7", "finalizers": ["other.example/kept", CAPACITY_FINALIZER]}
    connection.answers[f"GET {PATH}"] = {"metadata": metadata}


def patches(connection: Recording) -> list[dict[str, object]]:
    return [body["metadata"] for method, path, body in connection.calls if (method, path) == ("PATCH", PATH)]


def test_the_finalizer_is_set_once_on_the_object_with_that_uid(connection: Recording, writer: FinalizerWriter) -> None:
    for _ in range(2):
        writer.write(writer.due([Finalizing(REF, True)]))
        writer.flush()
    assert patches(connection) == [
        {"name": "ws", "namespace": "default", "uid": "u", "finalizers": [CAPACITY_FINALIZER]}
    ]


def test_other_finalizers_stay_when_ours_is_removed(connection: Recording, writer: FinalizerWriter) -> None:
    holding(connection)
    writer.write([Finalizing(REF, False)])
    writer.flush()
    assert patches(connection) == [{"uid": "u", "resourceVersion": "7", "finalizers": ["other.example/kept"]}]


def test_another_object_of_the_name_is_not_changed(connection: Recording, writer: FinalizerWriter) -> None:
    holding(connection, uid="another")
    writer.write([Finalizing(REF, False)])
    writer.flush()
    assert patches(connection) == []


def test_a_conflict_is_retried_and_a_failure_is_left_to_the_next_report(
    connection: Recording, writer: FinalizerWriter
) -> None:
    holding(connection)
    connection.errors[f"PATCH {PATH}"] = RequestError(409, "Conflict", "changed")
    writer.write([Finalizing(REF, False)])
    writer.flush()
    assert len(patches(connection)) == TRIES
    connection.errors.clear()
    writer.write([Finalizing(REF, False)])
    writer.flush()
    assert len(patches(connection)) == TRIES + 1
