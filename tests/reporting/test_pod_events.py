"""Events on pending pods: one for each pod and state."""

from plimsoll.report import Event, PodEvents
from tests.builders import a_queue
from tests.capacity_requests.cluster import Cluster, at, demand_environment, pool, share_pod


def message(events: PodEvents, cluster: Cluster, seconds: float) -> dict[str, Event]:
    """The messages by pod."""
    return {event.regarding.name: event for event in events.of(cluster.run_round(at(seconds)).demands)}


def test_one_event_for_each_pod_and_state() -> None:
    team = {"labels": {"kai.scheduler/queue": "team"}}
    kept_out = share_pod("kept-out").model_copy(update=team)
    large = share_pod("large").model_copy(update={"annotations": {"gpu-memory": "90000"}})
    cluster = Cluster(
        share_pod("served"), kept_out, large, pool(),
        a_queue("root", parent=""), a_queue("team", limit=0), a_queue("default-queue"),
        environment=demand_environment(),
    )  # fmt: skip
    events = PodEvents()
    first = message(events, cluster, 0)
    assert {name: (event.type, event.reason) for name, event in first.items()} == {
        "served": ("Normal", "CapacityRequested"),
        "kept-out": ("Warning", "KeptOutByQueue"),
        "large": ("Warning", "FitsNoInstanceType"),
    }
    manifest = first["kept-out"].manifest(at(0), "me")
    assert manifest["metadata"]["namespace"] == "team"
    regarding = {"apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": "kept-out", "uid": "uid-kept-out"}
    assert manifest["regarding"] == regarding
    assert message(events, cluster, 5) == {}
    cluster.objects[:] = [each for each in cluster.objects if getattr(each, "name", "") != "team"]
    cluster.objects.append(a_queue("team", limit=1))
    assert {name: event.reason for name, event in message(events, cluster, 10).items()} == {
        "kept-out": "CapacityRequested"
    }
