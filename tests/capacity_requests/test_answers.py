"""What autoscalers say of requests is the demand's phase and reason at once; it never changes what is requested."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model import Plan
from plimsoll.model.api import DemandReport, PodState
from plimsoll.model.karpenter import RequestEvent
from plimsoll.observe.cluster import request_events
from tests.capacity_requests.cluster import (
    Cluster,
    answered,
    at,
    claim,
    demand_environment,
    node,
    pool,
    share_pod,
    sold_out,
    text,
)

KARPENTERS = (
    'Failed to schedule pod, incompatible with nodepool "gpu", daemonset overhead={"pods":"1"}, no instance type met '
    "all requirements"
)
CLUSTER_AUTOSCALERS = "pod didn't trigger scale-up: 1 max node group size reached"
LAUNCHED = {"type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": text(at(5))}
REGISTERED = {"type": "Registered", "status": "True", "reason": "Registered", "lastTransitionTime": text(at(20))}


def requested(provisioner: str = "trigger-pod", count: int = 1, **demand: Any) -> tuple[Cluster, dict[str, Any]]:
    """A cluster in which nodes are requested at 0 s, and the first object that requests them."""
    shares = [share_pod(f"share-{number:03}") for number in range(count)]
    cluster = Cluster(pool(), *shares, environment=demand_environment(provisioner, **demand))
    cluster.run_round(at(0))
    kinds = {"capacity-buffer": "CapacityBuffer", "provisioning-request": "ProvisioningRequest"}
    return cluster, cluster.requested(kinds.get(provisioner, "Pod"))[0]


def condition(kind: str, status: str, reason: str, message: str = "", since: float = 4) -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": text(at(since)),
    }


def shown(cluster: Cluster, seconds: float) -> tuple[str, tuple[str, ...]]:
    """Phase and reasons of the only demand after a round."""
    cluster.run_round(at(seconds))
    status = cluster.status()
    return status.phase, status.reasons


def test_a_trigger_pod_that_karpenter_refuses() -> None:
    cluster, trigger = requested()
    assert shown(cluster, 1) == ("Scheduled", ())
    cluster.objects += answered(trigger, "FailedScheduling", KARPENTERS, at(5))
    plan = cluster.run_round(at(6))
    assert plan.empty
    status = cluster.status()
    assert status.phase == "Refused"
    assert status.reasons == (f"karpenter refuses 1 request since {text(at(5))}: FailedScheduling: {KARPENTERS}",)
    assert status.deadline == text(at(900)), "it is still awaited"
    (note,) = plan.demands[0].notes
    assert note.state is PodState.REFUSED
    assert KARPENTERS in note.note
    assert trigger["metadata"]["name"] not in note.note


@pytest.mark.parametrize(
    ("by", "reason", "phase"),
    [
        ("karpenter", "FailedScheduling", "Refused"),
        ("karpenter", "Nominated", "Scheduled"),
        ("eks-auto-mode/compute", "FailedScheduling", "Refused"),
        ("eks-auto-mode/compute", "Nominated", "Scheduled"),
        ("cluster-autoscaler", "NotTriggerScaleUp", "Refused"),
        ("cluster-autoscaler", "TriggeredScaleUp", "Launching"),
        ("cluster-autoscaler", "FailedScheduling", "Scheduled"),
        ("karpenter", "NotTriggerScaleUp", "Scheduled"),
        ("default-scheduler", "FailedScheduling", "Scheduled"),
        ("", "FailedScheduling", "Scheduled"),
    ],
)
def test_the_answers_of_each_autoscaler(by: str, reason: str, phase: str) -> None:
    cluster, trigger = requested()
    cluster.objects += answered(trigger, reason, "in its words", at(5), by=by)
    refusals = (f"{by} refuses 1 request since {text(at(5))}: {reason}: in its words",) if phase == "Refused" else ()
    assert shown(cluster, 6) == (phase, refusals)


def test_only_events_about_the_object_since_it_exists_count() -> None:
    cluster, trigger = requested()
    old = answered(trigger, "FailedScheduling", "of a pod of that name", at(-1))
    forged = answered(trigger, "FailedScheduling", "of another pod", at(5), uid="uid-forged")
    of_none = answered(trigger, "FailedScheduling", "of no pod", at(5), uid="")
    cluster.objects += [*old, *forged, *of_none]
    assert shown(cluster, 6) == ("Scheduled", ())
    trigger["metadata"]["uid"] = ""
    assert shown(cluster, 7) == ("Scheduled", ()), "a manifest from a file has no UID"


def test_a_long_message_is_cut() -> None:
    cluster, trigger = requested()
    cluster.objects += answered(trigger, "FailedScheduling", "x" * 5000, at(5))
    _, (reason,) = shown(cluster, 6)
    assert reason.endswith(": " + "x" * 400)


def test_an_event_in_the_form_of_the_newer_api_counts() -> None:
    """As v1 shows an Event of events.k8s.io: the reporter and the times are in other fields."""
    cluster, trigger = requested()
    event = {
        "metadata": {"name": "e", "namespace": trigger["metadata"]["namespace"], "creationTimestamp": text(at(3))},
        "involvedObject": {"kind": "Pod", "uid": trigger["metadata"]["uid"]},
        "reason": "FailedScheduling",
        "message": "no",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": "2026-01-01T00:00:03.250000Z",
        "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:09.500000Z"},
        "reportingComponent": "karpenter",
    }
    read = request_events("plimsoll-triggers").read(event)
    assert read is not None
    cluster.objects.append(read)
    assert shown(cluster, 10)[0] == "Refused"
    cluster.objects += answered(trigger, "Nominated", "Pod should schedule on: nodeclaim/gpu-a", at(9))
    assert shown(cluster, 11)[0] == "Refused", "it was repeated after that"
    cluster.objects += answered(trigger, "Nominated", "Pod should schedule on: nodeclaim/gpu-a", at(10))
    assert shown(cluster, 12) == ("Scheduled", ())


def test_the_newest_answer_counts() -> None:
    cluster, trigger = requested()
    cluster.objects += answered(trigger, "FailedScheduling", "no", at(5))
    cluster.objects += answered(trigger, "Nominated", "Pod should schedule on: nodeclaim/gpu-a", at(15))
    assert shown(cluster, 16) == ("Scheduled", ())
    cluster.objects[-2:] = answered(trigger, "FailedScheduling", "no", at(5), again=at(25))
    assert shown(cluster, 26) == (
        "Refused",
        (f"karpenter refuses 1 request since {text(at(5))}: FailedScheduling: no",),
    )


def test_of_two_answers_in_one_second_the_nomination_counts() -> None:
    """Karpenter refuses a pod again only minutes after the first time, and nominates it at once."""
    cluster, trigger = requested()
    cluster.objects += answered(trigger, "Nominated", "Pod should schedule on: nodeclaim/gpu-a", at(5))
    cluster.objects += answered(trigger, "FailedScheduling", "no", at(5))
    assert shown(cluster, 6) == ("Scheduled", ())


def test_a_node_claim_after_the_refusal_ends_it() -> None:
    cluster, trigger = requested()
    cluster.objects += answered(trigger, "FailedScheduling", "no", at(5))
    assert shown(cluster, 6)[0] == "Refused"
    cluster.objects.append(claim("gpu-abc", at(15)))
    assert shown(cluster, 16) == ("Launching", ())


def test_a_node_claim_before_the_refusal_is_for_another_request() -> None:
    cluster, trigger = requested()
    cluster.objects.append(claim("gpu-abc", at(4)))
    cluster.objects += answered(trigger, "FailedScheduling", "no", at(5))
    assert shown(cluster, 6)[0] == "Refused"


def test_a_node_claim_that_karpenter_created_for_another_pod_does_not_end_a_refusal() -> None:
    """Two pods of one batch: one fits no instance type with its CPU, and the NodeClaim is for the other one."""
    cluster, _ = requested(count=17)
    first, second = cluster.requested()
    cluster.objects += answered(first, "FailedScheduling", "no", at(5))
    cluster.objects += answered(second, "Nominated", "Pod should schedule on: nodeclaim/gpu-abc, node/n", at(6))
    cluster.objects.append(claim("gpu-abc", at(6)))
    reason = f"karpenter refuses 1 request since {text(at(5))}: FailedScheduling: no"
    assert shown(cluster, 7) == ("Refused", (reason,))
    cluster.objects += answered(first, "Nominated", "Pod should schedule on: nodeclaim/gpu-abc", at(15))
    assert shown(cluster, 16) == ("Scheduled", ())


@pytest.mark.parametrize(
    ("conditions", "phase", "stage", "deadline"),
    [
        ([], "Launching", "Created", 303),
        ([condition("Launched", "Unknown", "AwaitingReconciliation", "object is awaiting reconciliation")],
         "Launching", "Launching", 303),
        ([LAUNCHED], "Registering", "Registering", 900),
        ([LAUNCHED, condition("Registered", "Unknown", "NodeNotFound", "Node not registered with cluster")],
         "Registering", "Registering", 900),
        ([LAUNCHED, REGISTERED], "Initializing", "Initializing", 620),
        ([LAUNCHED, REGISTERED, condition("Initialized", "Unknown", "ResourceNotRegistered", "Resource ...")],
         "Initializing", "Initializing", 620),
    ],
)  # fmt: skip
def test_the_phase_is_the_step_that_is_awaited(
    conditions: list[dict[str, str]], phase: str, stage: str, deadline: float
) -> None:
    cluster, _ = requested()
    cluster.objects.append(claim("gpu-abc", at(3), conditions=conditions))
    assert shown(cluster, 30) == (phase, ())
    (of_claim,) = cluster.status().node_claims
    assert of_claim.stage == stage
    waiting = [f"{each['reason']}: {each['message']}" for each in conditions if each["status"] == "Unknown"]
    assert of_claim.message == "".join(waiting), "in Karpenter's words"
    assert cluster.status().deadline == text(at(deadline))


@pytest.mark.parametrize(
    ("conditions", "refused"),
    [
        ([condition("Launched", "Unknown", "LaunchFailed", "creating instance, no such subnet")], True),
        ([condition("Launched", "Unknown", "LaunchTemplateNotFound", "no template")], True),
        ([LAUNCHED, condition("Registered", "False", "MultipleNodesFound", "matched multiple nodes")], True),
        ([LAUNCHED, condition("Registered", "Unknown", "RegistrationHookPending", "hook")], False),
        ([LAUNCHED, REGISTERED, condition("Initialized", "Unknown", "StartupTaintsExist", "still exists")], False),
    ],
)
def test_a_step_of_a_node_claim_that_fails(conditions: list[dict[str, str]], refused: bool) -> None:
    cluster, _ = requested()
    cluster.objects.append(claim("gpu-abc", at(3), conditions=conditions))
    phase, reasons = shown(cluster, 30)
    last = conditions[-1]
    why = f"karpenter refuses 1 request since {text(at(4))}: {last['reason']}: NodeClaim gpu-abc: {last['message']}"
    assert (phase == "Refused", reasons) == (refused, (why,) if refused else ())


def test_insufficient_capacity_is_told_before_the_request_is_given_up() -> None:
    cluster, _ = requested()
    cluster.objects.append(sold_out("gpu-abcde", at(2)))
    phase, (reason,) = shown(cluster, 3)
    assert phase == "Refused"
    assert reason == (
        f"karpenter refuses 1 request since {text(at(2))}: InsufficientCapacityError: NodeClaim gpu-abcde: no capacity "
        "in any zone"
    )
    assert cluster.status().deadline == text(at(32)), "until then, Karpenter may find another offering"
    cluster.run_round(at(33))
    assert cluster.phase() == "Expired"


def test_other_nodes_of_a_request_are_not_refused_when_one_is_given_up() -> None:
    cluster = Cluster(pool("gpu", "g6.xlarge", "g5.xlarge"), environment=demand_environment("capacity-buffer"))
    cluster.objects += [share_pod(f"share-{number}", "0.9") for number in range(3)]
    cluster.run_round(at(0))
    (buffer,) = cluster.requested("CapacityBuffer")
    assert buffer["spec"]["replicas"] == 3
    cluster.objects.append(sold_out("gpu-abcde", at(2), "no capacity of g6.xlarge"))
    assert shown(cluster, 3)[0] == "Refused"
    cluster.run_round(at(33))
    status = cluster.status()
    assert [each.instance_type for each in status.blocked] == ["g6.xlarge"]
    assert status.phase == "Scheduled"
    assert not [reason for reason in status.reasons if "refuses" in reason]


def virtual_pod(buffer: Mapping[str, Any], number: int) -> dict[str, Any]:
    """What Karpenter makes of a replica of a CapacityBuffer."""
    metadata = buffer["metadata"]
    name, uid = f"capacity-buffer-{metadata['name']}-{number}", f"{metadata['uid']}-{number}"
    named = {"namespace": metadata["namespace"], "name": name, "uid": uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named}


def test_a_replica_of_a_buffer_that_karpenter_refuses() -> None:
    cluster, buffer = requested("capacity-buffer", 33)
    assert buffer["spec"]["replicas"] == 3
    cluster.objects += answered(virtual_pod(buffer, 3), "FailedScheduling", KARPENTERS, at(5))
    reason = f"karpenter refuses 1 request since {text(at(5))}: FailedScheduling: {KARPENTERS}"
    assert shown(cluster, 6) == ("Refused", (reason,))
    cluster.objects += [claim(f"gpu-{number}", at(5)) for number in range(2)]
    plan = cluster.run_round(at(7))
    assert cluster.phase() == "Refused"
    states = {note.state for note in plan.demands[0].notes}
    assert states == {PodState.REFUSED, PodState.REQUESTED}, "those of the third node, and the others"
    cluster.objects.append(claim("gpu-2", at(15)))
    assert shown(cluster, 16) == ("Launching", ())


def test_cluster_autoscaler_answers_to_the_buffer_itself() -> None:
    cluster, buffer = requested("capacity-buffer")
    said = "capacity buffer 1 fake pods didn't trigger scale-up: 1 max node group size reached"
    cluster.objects += answered(buffer, "NotTriggerScaleUp", said, at(5), by="cluster-autoscaler")
    reason = f"cluster-autoscaler refuses 1 request since {text(at(5))}: NotTriggerScaleUp: {said}"
    assert shown(cluster, 6) == ("Refused", (reason,))


@pytest.mark.parametrize(
    ("provisioner", "conditions", "phase", "why"),
    [
        ("capacity-buffer", [condition("ReadyForProvisioning", "True", "Resolved")], "Scheduled", ""),
        ("capacity-buffer", [condition("Provisioning", "False", "RequiresNewCapacity")], "Scheduled", ""),
        ("capacity-buffer", [condition("Provisioning", "True", "FitsExistingCapacity")], "Scheduled", ""),
        ("capacity-buffer", [condition("ReadyForProvisioning", "False", "PodTemplateNotFound", "not found")],
         "Refused", "PodTemplateNotFound: not found"),
        ("capacity-buffer", [condition("LimitedByQuotas", "True", "LimitedByQuotas", "gpus")],
         "Refused", "LimitedByQuotas: gpus"),
        ("provisioning-request", [], "Scheduled", ""),
        ("provisioning-request", [condition("Accepted", "True", "Accepted")], "Scheduled", ""),
        ("provisioning-request", [condition("Provisioned", "False", "CapacityIsNotFound", "try later")],
         "Refused", "CapacityIsNotFound: try later"),
        ("provisioning-request", [condition("Provisioned", "True", "CapacityIsProvisioned")], "Launching", ""),
        ("provisioning-request", [condition("Provisioned", "True", "CapacityIsProvisioned"),
                                  condition("BookingExpired", "True", "BookingExpired", "too late")],
         "Refused", "BookingExpired: too late"),
        ("provisioning-request", [condition("Provisioned", "True", "CapacityIsProvisioned"),
                                  condition("CapacityRevoked", "True", "CapacityRevoked", "")],
         "Refused", "CapacityRevoked"),
    ],
)  # fmt: skip
def test_conditions_of_buffers_and_provisioning_requests(
    provisioner: str, conditions: list[dict[str, str]], phase: str, why: str
) -> None:
    cluster, request = requested(provisioner)
    request["status"] = {"conditions": conditions}
    reasons = (f"the autoscaler refuses 1 request since {text(at(4))}: {why}",) if why else ()
    assert shown(cluster, 5) == (phase, reasons)


def test_capacity_that_exists_ends_the_refusal_of_a_buffer() -> None:
    cluster, buffer = requested("capacity-buffer")
    cluster.objects += answered(virtual_pod(buffer, 1), "FailedScheduling", "no", at(3))
    assert shown(cluster, 4)[0] == "Refused"
    buffer["status"] = {"conditions": [condition("Provisioning", "True", "FitsExistingCapacity", since=14)]}
    assert shown(cluster, 15) == ("Scheduled", ())


def test_alike_refusals_are_one_reason_and_the_furthest_behind_is_the_phase() -> None:
    cluster, _ = requested(count=33)
    first, second, third = cluster.requested()
    cluster.objects.append(claim("gpu-abc", at(3), conditions=[LAUNCHED]))
    assert shown(cluster, 4) == ("Scheduled", ())
    for trigger, seconds in ((first, 9), (second, 6), (third, 7)):
        cluster.objects += answered(trigger, "FailedScheduling", "no", at(seconds))
    reason = f"karpenter refuses 3 requests since {text(at(6))}: FailedScheduling: no"
    assert shown(cluster, 10) == ("Refused", (reason,))
    assert cluster.status().deadline == text(at(900))


def test_the_deadline_is_the_first_that_applies() -> None:
    cluster, _ = requested(count=33, deadlineSeconds=200)
    cluster.objects.append(claim("gpu-abc", at(3), conditions=[LAUNCHED, REGISTERED]))
    cluster.run_round(at(30))
    assert cluster.status().deadline == text(at(200)), "of the two without a NodeClaim"
    cluster.objects.append(sold_out("gpu-fghij", at(31)))
    cluster.run_round(at(32))
    assert cluster.status().deadline == text(at(61))


def test_the_deadline_of_a_request_does_not_apply_to_nodes_that_have_registered() -> None:
    cluster, _ = requested(deadlineSeconds=100)
    cluster.objects.append(claim("gpu-abc", at(3), conditions=[LAUNCHED, REGISTERED]))
    cluster.run_round(at(30))
    assert cluster.status().deadline == text(at(620))


def test_the_deadline_stays_while_an_initialized_node_lacks_its_gpus() -> None:
    cluster, _ = requested()
    initialized = condition("Initialized", "True", "Initialized")
    cluster.objects.append(claim("gpu-abc", at(3), conditions=[LAUNCHED, REGISTERED, initialized], nodeName="n"))
    cluster.objects.append(node("n", at(20), gpus=0))
    for seconds in (30, 500):
        assert shown(cluster, seconds) == ("Initializing", ())
        assert cluster.status().deadline == text(at(900))


def test_nodes_that_are_requested_now_are_furthest_behind() -> None:
    cluster, _ = requested()
    cluster.objects.append(claim("gpu-abc", at(3), conditions=[LAUNCHED]))
    assert shown(cluster, 4)[0] == "Registering"
    cluster.objects += [share_pod(f"more-{number:02}") for number in range(16)]
    assert shown(cluster, 5)[0] == "Scheduled"


REPORTERS = st.sampled_from(["karpenter", "cluster-autoscaler", "eks-auto-mode/compute", "default-scheduler"])
REASONS = st.sampled_from(["FailedScheduling", "Nominated", "NotTriggerScaleUp", "TriggeredScaleUp", "Other"])


@st.composite
def events(draw: st.DrawFn, cluster: Cluster) -> list[RequestEvent]:
    found: list[RequestEvent] = []
    objs = [manifest for (kind, _), manifest in cluster.requests.items() if kind != "PodTemplate"]
    for obj in draw(st.lists(st.sampled_from(objs), max_size=4)) if objs else ():
        about = draw(st.sampled_from([obj, virtual_pod(obj, 1), virtual_pod(obj, 2)]))
        said = at(draw(st.integers(-10, 100)))
        uid = draw(st.sampled_from([None, None, None, "uid-other"]))
        found += answered(about, draw(REASONS), "message", said, by=draw(REPORTERS), uid=uid)
    return found


def without_answers(plan: Plan) -> dict[str, Any]:
    """All of a Plan but what the answers may change: phases, since when, the reasons and what the pods are told."""
    told = [_without(each) for each in plan.demands]
    return {**plan.model_dump(exclude={"demands"}), "demands": told}


def _without(report: DemandReport) -> dict[str, Any]:
    shown = {"phase", "since", "reasons"}
    status = None if report.status is None else report.status.model_dump(exclude=shown)
    return {"name": report.name, "status": status, "pods": [note.uid for note in report.notes]}


@given(st.sampled_from(["trigger-pod", "capacity-buffer", "provisioning-request"]), st.data())
def test_no_event_changes_what_is_requested(provisioner: str, data: st.DataObject) -> None:
    """In two clusters with the same changes, one with random Events; nodes come, fail and are given up in both."""
    count = data.draw(st.integers(1, 40), "pods")
    (told, _), (silent, _) = (requested(provisioner, count, deadlineSeconds=60) for _ in range(2))
    seconds = 1
    for number in range(data.draw(st.integers(1, 5), "steps")):
        seconds += data.draw(st.integers(1, 40), "seconds")
        new: list[Any] = data.draw(
            st.sampled_from(
                [
                    [],
                    [claim(f"gpu-{number}", at(seconds - 1))],
                    [node(f"node-{number}", at(seconds - 1))],
                    [sold_out(f"gpu-{number:05}", at(seconds - 1))],
                    [share_pod(f"more-{number}")],
                ]
            ),
            "new",
        )
        told.objects += [*new, *data.draw(events(told), "events")]
        silent.objects += new
        assert without_answers(told.run_round(at(seconds))) == without_answers(silent.run_round(at(seconds)))
        assert told.requests == silent.requests
