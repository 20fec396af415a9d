"""Writes to the cluster besides stack updates: signals and GPUDemands."""

from typing import Any, cast

import pytest

from plimsoll.apply import CreationSignals, PodWriter
from plimsoll.kube import Connection, RequestError
from plimsoll.model import DemandRef, ObjectKey, Signal, SignalReason
from plimsoll.model.api import DemandPhase, DemandReport, GPUDemandStatus
from plimsoll.report import DemandWriter, demand_events

SCHEDULED = GPUDemandStatus(phase=DemandPhase.SCHEDULED, pod_count=3, gpus=8)


class Apiserver:
    """Accepts every request except for the paths in `refusals`."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.refusals: dict[str, int] = {}

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        self.requests.append((method, path, body))
        if path in self.refusals:
            raise RequestError(self.refusals[path], "", f"{method} {path}: no")
        return {}

    @property
    def connection(self) -> Connection:
        return cast(Connection, self)


def signal(name: str, uid: str = "uid") -> Signal:
    key = ObjectKey(api_version="v1", kind="Pod", namespace="plimsoll-triggers", name=name)
    return Signal(key=key, uid=uid, reason=SignalReason.CAPACITY_READY, message="so it is")


def written(writer: DemandWriter, apiserver: Apiserver) -> list[tuple[str, str]]:
    writer.flush()
    found = [(method, path.rpartition("/v1alpha1/")[2]) for method, path, _ in apiserver.requests]
    apiserver.requests.clear()
    return found


def test_a_signal_is_a_condition_of_the_pod_with_that_uid() -> None:
    apiserver = Apiserver()
    assert PodWriter(apiserver.connection).signal([signal("a")]) == (signal("a"),)
    ((method, path, body),) = apiserver.requests
    assert (method, path) == ("PATCH", "/api/v1/namespaces/plimsoll-triggers/pods/a/status")
    assert body["metadata"] == {"uid": "uid"}
    (condition,) = body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "CapacityReady")


def test_a_created_trigger_pod_is_marked_unschedulable_once() -> None:
    apiserver = Apiserver()
    apiserver.refusals["/api/v1/namespaces/plimsoll-triggers/pods/c/status"] = 500
    a, b, c, d = (signal(name, uid="") for name in "abcd")
    with CreationSignals(PodWriter(apiserver.connection), [a, b, c, d]) as signals:
        signals.created(a.key)
        signals.created(a.key)
        signals.created(signal("foreign").key)
        # Pods of an earlier plan are reported only at the end; pods that were not created get no condition.
        assert signals.finish([a.key, b.key, c.key]) == (a, b)
    signals.created(d.key)
    assert sorted(path.split("/")[-2] for _, path, _ in apiserver.requests) == ["a", "b", "c"]


@pytest.mark.parametrize("code", [404, 409, 500])
def test_a_failed_signal_is_left_to_the_next_plan(code: int) -> None:
    apiserver = Apiserver()
    apiserver.refusals["/api/v1/namespaces/plimsoll-triggers/pods/b/status"] = code
    assert PodWriter(apiserver.connection).signal([signal("a"), signal("b")]) == (signal("a"),)


def test_a_gpu_demand_is_created_once_and_written_when_it_changes() -> None:
    apiserver = Apiserver()
    writer = DemandWriter(apiserver.connection)
    writer.write([DemandReport(name="d", status=SCHEDULED)], {}, {})
    assert written(writer, apiserver) == [("PATCH", "gpudemands/d"), ("PATCH", "gpudemands/d/status")]
    writer.write([DemandReport(name="d", status=SCHEDULED)], {}, {})
    assert written(writer, apiserver) == [], "no watch has shown it yet"
    ready = SCHEDULED.model_copy(update={"phase": DemandPhase.NODE_READY})
    writer.write([DemandReport(name="d", status=ready)], {"d": SCHEDULED}, {"d": "uid-d"})
    assert written(writer, apiserver) == [("PATCH", "gpudemands/d/status")]
    writer.write([DemandReport(name="d", status=None)], {"d": ready}, {"d": "uid-d"})
    assert written(writer, apiserver) == [("DELETE", "gpudemands/d")]
    writer.close()


@pytest.mark.parametrize("code", [404, 409])
def test_a_gpu_demand_that_took_the_name_of_a_completed_one_is_not_deleted(code: int) -> None:
    """The apiserver compares the UID: the snapshot may be older than the object of that name."""
    apiserver = Apiserver()
    apiserver.refusals["/apis/plimsoll.dev/v1alpha1/gpudemands/d"] = code
    writer = DemandWriter(apiserver.connection)
    writer.write([DemandReport(name="d", status=None)], {"d": SCHEDULED}, {"d": "uid-of-the-one-before"})
    writer.flush()
    ((method, _, options),) = apiserver.requests
    assert (method, options["preconditions"]) == ("DELETE", {"uid": "uid-of-the-one-before"})
    assert "d" not in writer.newest({}), "it counts as gone"
    writer.close()


def test_a_demand_that_could_not_be_written_is_written_the_next_time() -> None:
    apiserver = Apiserver()
    apiserver.refusals["/apis/plimsoll.dev/v1alpha1/gpudemands/d/status"] = 500
    writer = DemandWriter(apiserver.connection)
    writer.write([DemandReport(name="d", status=SCHEDULED)], {}, {})
    writer.flush()
    apiserver.refusals.clear()
    apiserver.requests.clear()
    writer.write([DemandReport(name="d", status=SCHEDULED)], {}, {})
    assert ("PATCH", "gpudemands/d/status") in written(writer, apiserver)
    writer.close()


def test_a_change_of_phase_is_an_event() -> None:
    failed = SCHEDULED.model_copy(update={"phase": DemandPhase.FAILED, "reasons": ("nothing came",)})
    reports = [DemandReport(name="d", status=failed), DemandReport(name="same", status=SCHEDULED)]
    (event,) = demand_events(reports, {"d": SCHEDULED, "same": SCHEDULED})
    assert (event.type, event.reason, event.regarding) == ("Warning", "DemandFailed", DemandRef(name="d"))
    assert "nothing came" in event.note
