"""The conditions of a Workspace: how far its capacity has progressed, and what blocks it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Workspace, WorkspaceStatus
from plimsoll.model.cluster import Workload
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import Condition
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.report import differs, refused_status, status_of
from tests.builders import NC24, a_claim, a_node, a_pod, a_snapshot, a_workload, a_workspace

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
TYPES = ["ResourceReady", "NodeClaimsReady", "NodesReady", "WorkloadReady"]
WS = a_workspace(uid="u").model_copy(update={"generation": 3})
NAP = a_workspace(uid="u", instance_type=NC24, selector={}).model_copy(update={"generation": 3})


def accepted(workspace: Workspace, target: int, nodes: tuple[str, ...] = ()) -> Verdict:
    return Verdict(
        workspace=workspace.ref,
        accepted=True,
        reason=Reason.ACCEPTED,
        message="fits",
        per_replica_node_count=1,
        target_node_count=target,
        node_names=nodes,
        allocated_nodes=nodes,
    )


def refused(workspace: Workspace) -> Verdict:
    return Verdict(workspace=workspace.ref, accepted=False, reason=Reason.NON_UNIFORM_NODES, message="V100 and A100")


def status(workspace: Workspace, verdict: Verdict, *held: Any, nap: bool = False) -> dict[str, Any]:
    snapshot = a_snapshot(workspace, *held, nap=nap)
    return status_of(workspace, verdict, WorkspaceNodes(snapshot, [verdict]), NOW)


def of(status: dict[str, Any], kind: str) -> tuple[str, str, str]:
    (found,) = [each for each in status["conditions"] if each["type"] == kind]
    return found["status"], found["reason"], found["message"]


def step(claim: NodeClaim, **steps: str) -> NodeClaim:
    """A NodeClaim with conditions such as Launched="True", and Karpenter's message on those that are not."""
    conditions = tuple(
        Condition.model_validate({"type": kind, "status": value, "reason": "" if value == "True" else f"No{kind}"})
        for kind, value in steps.items()
    )
    return claim.model_copy(update={"conditions": conditions})


def serving(workspace: Workspace, replicas: int, ready: int) -> Workload:
    namespace, name = workspace.key
    owned = {"plimsoll.dev/workspace": name, "plimsoll.dev/workspace-namespace": namespace}
    metadata = {"name": name, "namespace": namespace, "labels": owned}
    manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"replicas": replicas}}
    return a_workload({**manifest, "status": {"readyReplicas": ready}})


def test_every_condition_is_there_with_its_generation() -> None:
    text = status(WS, accepted(WS, 1, ("n",)), a_node("n"))
    assert [each["type"] for each in text["conditions"]] == TYPES
    assert {each["observedGeneration"] for each in text["conditions"]} == {3}
    assert text["observedGeneration"] == 3


def test_a_refused_workspace_says_why_and_nothing_about_nodes() -> None:
    text = status(WS, refused(WS), a_node("n"))
    assert of(text, "ResourceReady") == ("False", "NonUniformNodes", "V100 and A100")
    for kind in TYPES[1:]:
        assert of(text, kind)[:2] == ("False", "Refused")
    assert "targetNodeCount" not in text


def test_a_refused_workspace_that_still_serves_has_a_condition() -> None:
    text = status(WS, refused(WS), serving(WS, 2, 2))
    assert of(text, "WorkloadReady") == ("True", "Ready", "StatefulSet ws: 2 of 2 pods ready")


def test_existing_nodes_need_no_claims() -> None:
    text = status(WS, accepted(WS, 2, ("a", "b")), a_node("a"), a_node("b"), serving(WS, 2, 2))
    assert of(text, "NodeClaimsReady")[:2] == ("True", "NotNeeded")
    assert [of(text, kind)[0] for kind in TYPES] == ["True"] * 4
    assert of(text, "ResourceReady")[1:] == ("Accepted", "fits")
    assert (text["perReplicaNodeCount"], text["targetNodeCount"]) == (1, 2)


def test_too_few_existing_nodes_are_counted() -> None:
    text = status(WS, accepted(WS, 3, ("a", "b")), a_node("a"), a_node("b"))
    assert of(text, "NodesReady") == ("False", "NodesNotReady", "2 of 3 nodes ready")
    assert of(text, "ResourceReady") == of(text, "NodesReady")


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ({"Launched": "Unknown", "Ready": "Unknown"}, "NodeClaimNotLaunched"),
        ({"Launched": "True", "Registered": "Unknown"}, "NodeClaimNotRegistered"),
        ({"Launched": "True", "Registered": "True", "Initialized": "Unknown"}, "NodeClaimNotInitialized"),
        ({"Launched": "True", "Registered": "True", "Initialized": "True", "Ready": "False"}, "NodeClaimNotReady"),
    ],
)
def test_the_first_step_that_a_claim_fails_is_named(steps: dict[str, str], reason: str) -> None:
    claims = [a_claim("c1", NAP, ready=True), step(a_claim("c2", NAP), **steps)]
    text = status(NAP, accepted(NAP, 2), *claims, nap=True)
    state, why, message = of(text, "NodeClaimsReady")
    assert (state, why) == ("False", reason)
    assert message.startswith("1 of 2 NodeClaims ready; not ")
    assert "c2: No" in message
    assert of(text, "ResourceReady") == of(text, "NodeClaimsReady")


def test_the_claim_that_is_furthest_behind_decides() -> None:
    claims = [
        step(a_claim("c1", NAP), Launched="True", Registered="Unknown"),
        step(a_claim("c2", NAP), Launched="False"),
    ]
    assert of(status(NAP, accepted(NAP, 2), *claims, nap=True), "NodeClaimsReady")[1] == "NodeClaimNotLaunched"


def test_missing_claims_are_counted_and_deleting_ones_are_not() -> None:
    claims = [a_claim("c1", NAP, ready=True), a_claim("c2", NAP, ready=True, deleting=True)]
    text = status(NAP, accepted(NAP, 2), *claims, nap=True)
    ready, reason, message = of(text, "NodeClaimsReady")
    assert (ready, reason) == ("False", "NodeClaimsPending") and "NodeClaim c2 is being deleted since" in message


def spot(claim: NodeClaim, kind: str = "spot") -> NodeClaim:
    served = step(claim, Launched="True", Registered="True", Initialized="True", Ready="True")
    return served.model_copy(update={"labels": {**claim.labels, "karpenter.sh/capacity-type": kind}})


@pytest.mark.parametrize("replacement", [(), (a_claim("c3", NAP),)], ids=["not yet", "requested"])
def test_interrupted_spot_nodes_are_named_until_others_are_ready(replacement: tuple[NodeClaim, ...]) -> None:
    going = spot(a_claim("c2", NAP, ready=True, deleting=True, node="n2"))
    text = status(NAP, accepted(NAP, 2), a_claim("c1", NAP, ready=True), going, *replacement, nap=True)
    ready, reason, message = of(text, "NodeClaimsReady")
    assert (ready, reason) == ("False", "SpotInterrupted")
    assert "1 of 2 NodeClaims ready" in message and "n2" in message
    again = a_claim("c3", NAP, ready=True)
    text = status(NAP, accepted(NAP, 2), a_claim("c1", NAP, ready=True), going, again, nap=True)
    assert of(text, "NodeClaimsReady")[:2] == ("True", "Ready")


def test_other_deleted_nodes_are_no_interruption() -> None:
    launching = a_claim("c1", NAP, deleting=True)
    launching = launching.model_copy(update={"labels": {**launching.labels, "karpenter.sh/capacity-type": "spot"}})
    bought = spot(a_claim("c2", NAP, ready=True, deleting=True), "on-demand")
    text = status(NAP, accepted(NAP, 2), launching, bought, nap=True)
    assert of(text, "NodeClaimsReady")[1] == "NodeClaimsPending"


@pytest.mark.parametrize("needed", [0, 1])
def test_what_keeps_a_node_that_goes_is_said_though_none_is_missing(needed: int) -> None:
    kept = ("pod default/p (PodDisruptionBudget default/b allows no disruption)",)
    leaving = a_claim("old", NAP, ready=True, deleting=True, node="n0").model_copy(update={"blocking": kept})
    text = status(
        NAP, accepted(NAP, needed), leaving, a_claim("c1", NAP, ready=True, node="n1"), a_node("n1"), nap=True
    )
    state, reason, message = of(text, "NodeClaimsReady")
    assert (state, reason) == ("True", "Ready" if needed else "NotNeeded")
    assert "NodeClaim old is being deleted since" in message
    assert kept[0] in message


def test_provisioned_nodes_count_once_they_are_ready() -> None:
    claims = [a_claim("c1", NAP, ready=True, node="n1"), a_claim("c2", NAP, ready=True, node="n2")]
    nodes = [a_node("n1"), a_node("n2", ready=False)]
    text = status(NAP, accepted(NAP, 2), *claims, *nodes, nap=True)
    assert of(text, "NodeClaimsReady")[:2] == ("True", "Ready")
    assert of(text, "NodesReady") == ("False", "NodesNotReady", "1 of 2 nodes ready; not ready: n2")
    assert text["workerNodes"] == ["n1"]


def test_existing_nodes_replace_claims() -> None:
    workspace = NAP.model_copy(update={"spec": a_workspace(instance_type=NC24).spec})
    node = a_node("existing", instance_type=NC24)
    text = status(workspace, accepted(workspace, 1), node, nap=True)
    assert of(text, "NodeClaimsReady")[:2] == ("True", "NotNeeded")
    assert text["workerNodes"] == ["existing"]


@pytest.mark.parametrize(
    ("workloads", "expected", "named"),
    [
        ((), ("False", "WorkloadPending"), ""),
        ((serving(WS, 2, 1),), ("False", "WorkloadNotReady"), "StatefulSet ws: 1 of 2 pods"),
        ((serving(WS, 0, 0),), ("True", "Ready"), "StatefulSet ws: 0 of 0 pods"),
    ],
)
def test_the_workload_is_ready_with_all_its_pods(
    workloads: tuple[Workload, ...], expected: tuple[str, str], named: str
) -> None:
    state, reason, message = of(status(WS, accepted(WS, 1, ("n",)), a_node("n"), *workloads), "WorkloadReady")
    assert (state, reason) == expected
    assert named in message


def test_what_kubernetes_tells_of_pods_that_do_not_run_is_in_the_message() -> None:
    refused = Condition(type="ReplicaFailure", status="True", reason="FailedCreate", message="no RuntimeClass x")
    workload = serving(WS, 2, 1).model_copy(update={"conditions": (refused,)})
    pod = a_pod("ws-0", WS, node="n").model_copy(update={"halted": "container server: image i cannot be pulled"})
    message = of(status(WS, accepted(WS, 1, ("n",)), a_node("n"), workload, pod), "WorkloadReady")[2]
    assert "pods of StatefulSet ws are not created: no RuntimeClass x" in message
    assert "pod ws-0: container server: image i cannot be pulled" in message


def test_a_workspace_without_a_workload_awaits_none() -> None:
    bare = a_workspace(inference=False)
    assert of(status(bare, accepted(bare, 1, ("n",)), a_node("n")), "WorkloadReady")[:2] == ("True", "NotNeeded")


def test_times_change_with_the_status_of_a_condition_only() -> None:
    first = status(WS, accepted(WS, 1, ("n",)), a_node("n"))
    before = WorkspaceStatus.model_validate(first)
    later = NOW + timedelta(hours=1)
    verdict = accepted(WS, 2, ("n",))
    second = status_of(WS, verdict, WorkspaceNodes(a_snapshot(WS, a_node("n")), [verdict]), later, before)
    times = {each["type"]: each["lastTransitionTime"] for each in second["conditions"]}
    assert times == {
        "ResourceReady": "2026-01-01T01:01:00Z",
        "NodeClaimsReady": "2026-01-01T00:01:00Z",
        "NodesReady": "2026-01-01T01:01:00Z",
        "WorkloadReady": "2026-01-01T00:01:00Z",
    }


def test_the_same_state_later_is_the_same_status() -> None:
    verdict = accepted(WS, 1, ("n",))
    holdings = WorkspaceNodes(a_snapshot(WS, a_node("n")), [verdict])
    before = WorkspaceStatus.model_validate(status_of(WS, verdict, holdings, NOW))
    again = status_of(WS, verdict, holdings, NOW + timedelta(days=1), before)
    assert not differs(before, again)


def test_conditions_of_others_and_their_order_make_no_difference() -> None:
    text = status(WS, accepted(WS, 1, ("n",)), a_node("n"))
    held = WorkspaceStatus.model_validate(text)
    foreign = Condition.model_validate({"type": "Audited", "status": "True"})
    shuffled = held.model_copy(update={"conditions": (foreign, *reversed(held.conditions))})
    assert not differs(shuffled, text)
    assert differs(held.model_copy(update={"target_node_count": 7}), text)
    assert differs(held.model_copy(update={"conditions": held.conditions[1:]}), text)


def test_long_messages_of_others_are_truncated() -> None:
    verdict = refused(WS).model_copy(update={"message": "x" * 100_000})
    text = refused_status(verdict, None, NOW, WorkspaceStatus())
    assert len(of(text, "ResourceReady")[2]) == 2000
    assert "observedGeneration" not in text


def test_contradictions_of_its_nodes_are_a_condition_while_they_last() -> None:
    broken = a_node("n", count=4).model_copy(update={"allocatable": {"cpu": "8", "nvidia.com/gpu": "2"}})
    found = status(WS, accepted(WS, 1, ("n",)), broken, a_node("other", count=8))
    state, reason, message = of(found, "NodesContradict")
    assert (state, reason) == ("True", "FewerAllocatable")
    assert message.startswith("n: labels say 4 nvidia.com/gpu, but 2 are allocatable")
    previous = WorkspaceStatus.model_validate(found)
    assert not differs(previous, found)
    mended = status(WS, accepted(WS, 1, ("n",)), a_node("n", count=4))
    assert [each["type"] for each in mended["conditions"]] == TYPES
    assert differs(previous, mended)
