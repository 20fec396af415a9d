"""The resources that the program registers with the engine, and how it ends if the engine refuses one."""

import threading
from collections.abc import Collection, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import language_pb2, resource_pb2, resource_pb2_grpc

from plimsoll.apply.engine import DeclaredResource, InlineLanguage, Program, Registrations
from tests.applying.states import CLUSTER


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """The engine's resource monitor. It accepts every resource except the names in `refused`; those in `failing`
    fail."""

    def __init__(self) -> None:
        self.port = 0
        self.taken: list[Any] = []
        self.refused: set[str] = set()
        self.failing: set[str] = set()

    def SupportsFeature(self, request: Any, context: Any) -> Any:
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)

    def RegisterResource(self, request: Any, context: Any) -> Any:
        if request.name in self.refused:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a resource of ours")
        self.taken.append(request)
        result = resource_pb2.Result.FAIL if request.name in self.failing else resource_pb2.Result.SUCCESS
        return resource_pb2.RegisterResourceResponse(urn=f"urn::{request.name}", id="id", result=result)

    def RegisterResourceOutputs(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def SignalAndWaitForShutdown(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    monitor = Monitor()
    server = grpc.server(futures.ThreadPoolExecutor(8))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
    monitor.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield monitor
    server.stop(None).wait()


def declared(name: str) -> DeclaredResource:
    return DeclaredResource(
        "kubernetes:core/v1:Pod", name, {"metadata": {"name": name, "labels": {}}, "spec": {"n": 3}}
    )


def run(monitor: Monitor, registrations: Registrations) -> str:
    """The error of a program with these registrations; empty without an error."""
    ready = threading.Event()
    program = Program({}, "4.0.0", CLUSTER, ready.set)
    program.release(registrations)
    request = language_pb2.RunRequest(
        project="p",
        stack="s",
        monitor_address=f"127.0.0.1:{monitor.port}",
        parallel=8,
    )
    answer = InlineLanguage(program).Run(request, None)
    assert ready.is_set()
    return str(answer.error)


def test_resources_are_registered_below_the_stack_with_the_provider_and_their_inputs(monitor: Monitor) -> None:
    assert run(monitor, Registrations((declared("new"),), (declared("kept"),))) == ""
    new, kept = monitor.taken[-2:]
    assert [new.name, kept.name] == ["new", "kept"]
    assert MessageToDict(new.object) == {"metadata": {"name": "new", "labels": {}}, "spec": {"n": 3}}
    assert (new.type, new.parent, new.provider) == ("kubernetes:core/v1:Pod", "urn::p-s", "urn::cluster::id")
    assert new.custom


def test_failed_operations_are_left_to_the_engine_to_report(monitor: Monitor) -> None:
    monitor.failing.add("bad")
    assert run(monitor, Registrations((declared("bad"), declared("good")), (declared("kept"),))) == ""
    assert {each.name for each in monitor.taken} >= {"bad", "good", "kept"}


@pytest.mark.parametrize("refused", ["new", "kept"])
def test_a_refused_resource_fails_the_program_so_that_the_engine_deletes_nothing(
    monitor: Monitor, refused: str
) -> None:
    monitor.refused.add(refused)
    registrations = Registrations((declared("new"), declared("other")), (declared("kept"), declared("rest")))
    assert run(monitor, registrations) == f"{refused}: not a resource of ours"
    assert {each.name for each in monitor.taken} >= {"new", "other", "kept", "rest"} - {refused}


def test_who_deletes_objects_gets_the_names_of_failed_operations(monitor: Monitor) -> None:
    monitor.failing.add("bad")
    failed: list[Collection[str]] = []

    def delete(names: Collection[str]) -> list[DeclaredResource]:
        failed.append(names)
        return []

    assert run(monitor, Registrations((declared("bad"), declared("good")), (declared("kept"),), delete)) == ""
    assert failed == [{"bad"}]


@pytest.mark.parametrize("refused", ["", "new"])
def test_objects_are_deleted_after_every_change_is_accepted_and_what_stays_is_registered(
    monitor: Monitor, refused: str
) -> None:
    monitor.refused.add(refused)
    changed: list[set[str]] = []

    def delete(_: Collection[str]) -> list[DeclaredResource]:
        changed.append({each.name for each in monitor.taken})
        return [declared("stays")]

    run(monitor, Registrations((declared("new"),), (declared("kept"),), delete))
    if refused:
        assert changed == []
    else:
        assert [names >= {"new"} for names in changed] == [True]
        assert {each.name for each in monitor.taken} >= {"kept", "stays"}
