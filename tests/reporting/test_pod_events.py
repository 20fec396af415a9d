"""Events on pending pods: one for each pod and state."""

from typing import Any

import pytest

from plimsoll.report import Event, PodEvents
from tests.builders import a_queue
from tests.capacity_requests.cluster import (
    Cluster,
    at,
    claim,
    demand_environment,
    gated_pod,
    pool,
    share_pod,
    sold_out,
)


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


def test_a_pod_that_fits_an_instance_type_is_told_what_else_keeps_capacity_from_it() -> None:
    """A limit, its gang, or that no new node is requested for now."""
    limited = pool().model_copy(update={"limits": {"nodes": 1}})
    gang = {"labels": {"jobset.sigs.k8s.io/jobset-name": "train"}}
    members = [share_pod("member").model_copy(update=gang)]
    members += [share_pod("large").model_copy(update={**gang, "annotations": {"gpu-memory": "90000"}})]
    pods = [share_pod(f"share-{number}", "0.9") for number in range(9)]
    cluster = Cluster(*pods, *members, limited)
    found = message(PodEvents(), cluster, 0)
    (left_out,) = [name for name in found if found[name].reason == "CapacityNotRequested" and name != "member"]
    assert left_out.startswith("share-")
    assert found[left_out].note.startswith("no capacity requested: limits.nodes of NodePool gpu is 1")
    assert found["member"].note.startswith("no capacity requested: JobSet team/train")
    assert found["large"].reason == "FitsNoInstanceType"
    assert [event.reason for event in found.values()].count("CapacityRequested") == 8


def test_nothing_is_said_of_pods_whose_new_nodes_are_not_requested() -> None:
    """Requests are paused after a failure, and another node of the same demand is still awaited."""
    environment = demand_environment(retries=0, retrySeconds=1)
    pods = [share_pod(f"share-{number}", "0.9") for number in range(9)]
    cluster = Cluster(*pods, pool(), environment=environment)
    assert len(message(PodEvents(), cluster, 0)) == 9
    cluster.objects += [claim("gpu-awaited", at(1)), sold_out("gpu-abcde", at(5))]
    cluster.run_round(at(40))
    assert len(cluster.requested()) == 1
    found = message(PodEvents(), cluster, 45)
    assert [event.reason for event in found.values()] == ["CapacityRequested"] * 8


@pytest.mark.parametrize(
    ("devices", "pod", "access", "why"),
    [
        (("nvidia.com/gpu", "amd.com/gpu"), {}, [], "no node is known that has both"),
        (("amd.com/gpu", "gpu.intel.com/xe"), {}, [], "no node is known that has both"),
        (("nvidia.com/gpu",), {"scheduler_name": "volcano"}, [{"namespaces": ["team"], "gpus": 9}], "is not listed"),
        (("amd.com/gpu", "nvidia.com/nic"), {}, [{"namespaces": ["team"], "gpus": 9}], "are not planned for"),
    ],
    ids=["NVIDIA and AMD", "AMD and Intel", "scheduler", "others"],
)
def test_whom_the_gate_keeps_is_told(
    devices: tuple[str, ...], pod: dict[str, Any], access: list[dict[str, Any]], why: str
) -> None:
    container = {"name": "c", "resources": {"limits": dict.fromkeys(devices, "1")}}
    gated = gated_pod("gated").model_copy(update={"annotations": {}, "containers": (container,), **pod})
    environment = demand_environment()
    allowed = type(environment.spec).model_validate({**environment.spec.model_dump(by_alias=True), "access": access})
    cluster = Cluster(gated, pool(), environment=environment.model_copy(update={"spec": allowed}))
    plan = cluster.run_round(at(0))
    (event,) = PodEvents().of(plan.demands)
    assert (event.regarding.name, event.type, event.reason) == ("gated", "Warning", "CapacityNotRequested")
    assert why in event.note
    assert not plan.gate_removals


def test_the_gate_is_no_ones_who_asks_for_no_gpus_or_is_planned_by_nobody() -> None:
    container = {"name": "c", "resources": {"limits": {"amd.com/gpu": "1", "nvidia.com/nic": "1"}}}
    gated = gated_pod("gated").model_copy(update={"annotations": {}, "containers": (container,)})
    plan = Cluster(gated, pool()).run_round(at(0))
    assert [each.key.name for each in plan.gate_removals] == ["gated"]
    assert not list(PodEvents().of(plan.demands))


def test_a_new_process_says_again_what_an_earlier_one_may_not_have_written() -> None:
    """Under the same name, so that what was written is counted and not doubled."""
    cluster = Cluster(share_pod("served"), pool())
    before = message(PodEvents(), cluster, 0)
    again = message(PodEvents(), cluster, 5)
    assert {name: event.name for name, event in again.items()} == {name: each.name for name, each in before.items()}
    assert before
