"""Late and lost NodeClaims: deadlines, replacement, back-off, and what the status records."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.errors import InvalidObjectError
from plimsoll.labels import CAPACITY_TYPE, NODEPOOL
from plimsoll.model import Snapshot
from plimsoll.model.api import Workspace
from plimsoll.model.karpenter import ClaimEvent, NodeClaim
from plimsoll.model.meta import Condition
from tests.builders import NC24, a_claim, a_node, a_node_pool, a_pod, a_snapshot, a_workspace, an_environment
from tests.planning.cluster import after, claim_key, names, round_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def wanting(nodes: int, **fields: Any) -> Workspace:
    given: dict[str, Any] = {"instance_type": NC24, "replicas": nodes, "selector": {}, "uid": "u"}
    return a_workspace(**(given | fields))


def claim(name: str = "c", *, created: float = 0, registered: float = 0, node: str = "", **steps: str) -> NodeClaim:
    """A NodeClaim of `wanting`, with conditions such as Launched="True"."""
    conditions = tuple(
        Condition(
            type=kind,
            status="True" if value == "True" else "Unknown",
            reason="" if value == "True" else value,
            last_transition_time=_text(registered if kind == "Registered" else created),
        )
        for kind, value in steps.items()
    )
    made = a_claim(name, wanting(1), created=_text(created), node=node)
    return made.model_copy(update={"conditions": conditions})


def _text(seconds: float) -> str:
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def text(snapshot: Snapshot) -> tuple[str, str]:
    """Reason and message of NodeClaimsReady."""
    (found,) = [each for each in snapshot.workspaces[0].status.conditions if each.type == "NodeClaimsReady"]
    return found.reason, found.message


def a_cluster(*objects: Any, **node_claims: int) -> Snapshot:
    return a_snapshot(*objects, environment=an_environment(nap=True, nodeClaims=node_claims))


@pytest.mark.parametrize(
    ("late", "deadline", "step"),
    [
        (claim(Launched="QuotaExceeded"), 300, "is not Launched after 5 min (QuotaExceeded)"),
        (claim(Launched="True"), 900, "is not Registered after 15 min"),
        (
            claim(Launched="True", Registered="True", registered=100, Initialized="ResourceNotRegistered"),
            700,
            "is not Initialized after 10 min (ResourceNotRegistered)",
        ),
    ],
)
def test_a_claim_is_replaced_past_the_deadline_of_its_step(late: NodeClaim, deadline: float, step: str) -> None:
    snapshot = a_cluster(wanting(1), late)
    in_time, _ = round_of(snapshot, at(deadline))
    assert in_time.empty
    assert in_time.next_deadline == at(deadline)
    found, seen = round_of(snapshot, at(deadline + 1))
    assert names(found) == (names(found)[0], ["c"])
    reason, message = text(seen)
    assert reason == "NodeClaimLate"
    assert f"NodeClaim c {step}" in message
    assert "try 2 at" in message


@pytest.mark.parametrize("setting", ["launchDeadlineSeconds", "registrationDeadlineSeconds", "gpuDeadlineSeconds"])
def test_the_longest_deadline_is_a_date(setting: str) -> None:
    """The next one would be too late for a calendar: an Environment with it is refused."""
    ten_years = 315_360_000
    late = claim(Launched="Pending")
    made, _ = round_of(a_cluster(wanting(1), late, **{setting: ten_years}), at(10))
    assert made.deletions == ()
    with pytest.raises(InvalidObjectError, match=setting):
        a_cluster(wanting(1), late, **{setting: ten_years + 1})


def test_the_replacement_waits_for_the_back_off_and_has_another_name() -> None:
    first, seen = round_of(a_cluster(wanting(1)), at(0))
    [name], _ = names(first)
    made = claim(name, Launched="QuotaExceeded")
    _, seen = round_of(seen.model_copy(update={"node_claims": (made,)}), at(1))
    late, seen = round_of(seen, at(301))
    assert names(late) == ([], [name])
    gone = after(seen, late)
    waiting, gone = round_of(gone, at(330))
    assert waiting.empty
    assert waiting.next_deadline == at(331)
    retried, _ = round_of(gone, at(331))
    [second], _ = names(retried)
    assert second != name
    again, _ = round_of(gone, at(331))
    assert names(again) == ([second], [])


def test_the_back_off_doubles_up_to_its_limit_and_is_read_from_the_status() -> None:
    snapshot = a_cluster(wanting(1), retrySeconds=10, retryLimitSeconds=60)
    now, pauses, tried = 0.0, [], set()
    for _ in range(6):
        found, snapshot = round_of(snapshot, at(now))
        [name], _ = names(found)
        assert name not in tried, "no replacement has the name of what failed"
        tried.add(name)
        # Karpenter deletes it at once: no capacity.
        lost, snapshot = round_of(snapshot, at(now + 1))
        assert lost.empty
        assert lost.next_deadline is not None
        pauses.append((lost.next_deadline - at(now + 1)).total_seconds())
        early, snapshot = round_of(snapshot, lost.next_deadline - timedelta(seconds=1))
        assert early.empty
        now = (lost.next_deadline - START).total_seconds()
    assert pauses == [10, 20, 40, 60, 60, 60]


def test_insufficient_capacity_is_reported_with_the_providers_message_even_if_it_is_late() -> None:
    first, snapshot = round_of(a_cluster(wanting(2)), at(0))
    name = names(first)[0][0]
    _, snapshot = round_of(snapshot, at(1))
    assert text(snapshot)[0] == "NodeClaimLost"
    event = ClaimEvent.read(
        {
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "NodeClaim", "name": name},
            "reason": "InsufficientCapacityError",
            "message": f"NodeClaim {name} event: all zones are out of A100s",
        }
    )
    _, snapshot = round_of(snapshot.model_copy(update={"claim_events": (event,)}), at(2))
    reason, message = text(snapshot)
    assert reason == "InsufficientCapacity"
    assert "all zones are out of A100s" in message
    assert snapshot.workspaces[0].status.provisioning.failures == 1, "two claims of one try are one failure"


def test_failures_before_the_next_attempt_belong_to_the_previous_attempt() -> None:
    first, snapshot = round_of(a_cluster(wanting(2)), at(0))
    one, other = (claim(name, Launched="No") for name in names(first)[0])
    _, snapshot = round_of(snapshot.model_copy(update={"node_claims": (one, other)}), at(1))
    _, snapshot = round_of(snapshot.model_copy(update={"node_claims": (other,)}), at(2))
    _, snapshot = round_of(snapshot.model_copy(update={"node_claims": ()}), at(20))
    left = snapshot.workspaces[0].status.provisioning
    assert (left.failures, left.last_failure) == (1, _text(2))
    assert other.name in left.message


def test_failures_end_when_a_later_claim_is_ready() -> None:
    _, snapshot = round_of(a_cluster(wanting(1), claim(Launched="No")), at(301))
    assert snapshot.workspaces[0].status.provisioning.failures == 1
    served = claim("new", created=400, Launched="True", Ready="True")
    _, snapshot = round_of(snapshot.model_copy(update={"node_claims": (served,)}), at(500))
    left = snapshot.workspaces[0].status.provisioning
    assert (left.failures, left.last_failure, left.tries) == (0, "", 1)
    missing, _ = round_of(snapshot.model_copy(update={"node_claims": ()}), at(600))
    assert len(missing.creations) == 1, "a Ready claim that goes is replaced at once"


def test_a_surplus_claim_is_no_failure() -> None:
    young = [claim("a", Launched="No"), claim("b", Launched="No")]
    _, snapshot = round_of(a_cluster(wanting(2), *young), at(10))
    lowered = wanting(1).model_copy(update={"status": snapshot.workspaces[0].status})
    found, snapshot = round_of(snapshot.model_copy(update={"workspaces": (lowered,)}), at(11))
    assert names(found)[1] == ["a"]
    _, snapshot = round_of(after(snapshot, found), at(12))
    assert snapshot.workspaces[0].status.provisioning.failures == 0


def test_a_ready_node_without_gpus_is_late_from_the_recorded_time() -> None:
    served = claim(node="n", Launched="True", Registered="True", Initialized="True", Ready="True")
    snapshot = a_cluster(wanting(1), served, a_node("n", None, allocatable=0, instance_type=NC24))
    day = 86_400.0
    first, snapshot = round_of(snapshot, at(day))
    assert first.empty, "a device plugin that restarts costs no node"
    assert first.next_deadline == at(day + 600)
    found, seen = round_of(snapshot, at(day + 601))
    assert names(found)[1] == ["c"]
    assert "shows no GPUs after 10 min (node n has no allocatable nvidia.com/gpu)" in text(seen)[1]


def test_a_node_that_serves_is_not_late_when_its_gpus_vanish() -> None:
    """The device plugin fails; the kubelet keeps the pods that have their GPUs."""
    served = claim(node="n", Launched="True", Registered="True", Initialized="True", Ready="True")
    pod = a_pod("p", wanting(1), "n", devices=1, phase="Running")
    snapshot = a_cluster(wanting(1), served, a_node("n", None, allocatable=0, instance_type=NC24), pod)
    found, snapshot = round_of(snapshot, at(0))
    assert found.empty
    assert found.next_deadline is None
    assert any("node n has no allocatable nvidia.com/gpu" in warning for warning in found.warnings)
    found, snapshot = round_of(snapshot, at(3600))
    assert found.empty

    others = a_pod("q", wanting(1).model_copy(update={"name": "other"}), "n", devices=1, phase="Running")
    over = a_pod("p", wanting(1), "n", devices=1, phase="Failed")
    strangers = pod.model_copy(update={"namespace": "another"})
    found, snapshot = round_of(snapshot.model_copy(update={"pods": (over, others, strangers)}), at(3601))
    assert found.next_deadline == at(4201)
    assert names(round_of(snapshot, at(4202))[0])[1] == ["c"]


def test_late_spot_nodes_that_are_being_deleted_are_no_interruption() -> None:
    claims = [claim(each, node=f"n-{each}", Launched="True", Initialized="True", Ready="True") for each in ("a", "b")]
    spot = [each.model_copy(update={"labels": each.labels | {CAPACITY_TYPE: "spot"}}) for each in claims]
    nodes = [a_node(each.node_name, None, allocatable=0, instance_type=NC24) for each in claims]
    _, snapshot = round_of(a_cluster(wanting(2), *spot, *nodes), at(0))
    found, snapshot = round_of(snapshot, at(601))
    assert names(found)[1] == ["a", "b"]
    going = tuple(each.model_copy(update={"deletion_timestamp": _text(602)}) for each in spot)
    assert all(each.interrupted for each in going)

    _, snapshot = round_of(snapshot.model_copy(update={"node_claims": going, "nodes": ()}), at(605))

    reason, message = text(snapshot)
    assert reason == "NodeClaimLate"
    assert "NodeClaim a shows no GPUs after 10 min" in message
    assert "try 2 at" in message


def test_a_node_without_gpus_of_a_static_pool_is_deleted_with_back_off() -> None:
    """The NodePool creates another NodeClaim as soon as one is deleted, so the back-off precedes the deletion."""
    environment = an_environment(
        nap=True, provisioner="static-nodepool", nodeClaims={"gpuDeadlineSeconds": 10, "retrySeconds": 60}
    )
    snapshot = a_snapshot(wanting(1), environment=environment)
    made, _ = round_of(snapshot, at(0))
    snapshot = after(snapshot, made)
    [pool] = snapshot.node_pools

    def showing(name: str, since: float) -> Snapshot:
        """The cluster with one NodeClaim of the static NodePool, whose node registered at that time and shows no
        GPU."""
        blind = claim(name, created=since, registered=since, Launched="True", Registered="True", Initialized="No GPU")
        pooled = blind.model_copy(update={"labels": blind.labels | {NODEPOOL: pool.name}})
        return snapshot.model_copy(update={"node_claims": (pooled,)})

    in_time, snapshot = round_of(showing("first", 0), at(10))
    assert in_time.empty
    found, snapshot = round_of(showing("first", 0), at(11))
    assert names(found) == ([], ["first"])
    assert "it is replaced" in found.deletions[0].reason
    assert text(snapshot)[0] == "NodeClaimLate"
    _, snapshot = round_of(showing("second", 12), at(13))
    waiting, snapshot = round_of(showing("second", 12), at(30))
    assert waiting.empty
    assert waiting.next_deadline == at(71)
    reason, message = text(snapshot)
    assert reason == "NodeClaimLate"
    assert "NodeClaim second is not Initialized after 10 s" in message
    assert "try 2 at 2026-01-01T00:01:11Z" in message
    found, snapshot = round_of(showing("second", 12), at(72))
    assert names(found) == ([], ["second"])
    assert snapshot.workspaces[0].status.provisioning.failures == 2
    waiting, _ = round_of(showing("third", 73), at(72 + 119))
    assert waiting.empty, "twice as long as before"


@pytest.mark.parametrize("provisioner", ["nodeclaim", "static-nodepool"])
@pytest.mark.parametrize("pooled", [True, False])
def test_late_claims_of_the_other_provisioner_are_replaced_too(provisioner: str, pooled: bool) -> None:
    late = claim(Launched="No")
    if pooled:
        late = late.model_copy(update={"labels": late.labels | {NODEPOOL: "own"}})
    pool = a_node_pool("own").model_copy(update={"labels": claim().labels, "replicas": 1})
    environment = an_environment(nap=True, provisioner=provisioner)
    snapshot = a_snapshot(wanting(1), late, *([pool] if pooled else []), environment=environment)
    found, snapshot = round_of(snapshot, at(301))
    assert [each.key.name for each in found.deletions if each.key.kind == "NodeClaim"] == ["c"]
    assert snapshot.workspaces[0].status.provisioning.failures == 1


def test_a_node_that_fails_after_it_was_in_service_is_not_late() -> None:
    served = claim(node="n", Launched="True", Registered="True", Initialized="True", Ready="True")
    snapshot = a_cluster(wanting(1), served, a_node("n", None, ready=False, allocatable=0, instance_type=NC24))
    found, _ = round_of(snapshot, at(86_400))
    assert found.empty
    assert found.next_deadline is None


def test_a_refusal_keeps_the_back_off() -> None:
    _, snapshot = round_of(a_cluster(wanting(1), claim(Launched="No")), at(301))
    refused = wanting(1, instance_type="nonesuch").model_copy(update={"status": snapshot.workspaces[0].status})
    _, snapshot = round_of(snapshot.model_copy(update={"workspaces": (refused,)}), at(302))
    assert snapshot.workspaces[0].status.provisioning.failures == 1


def test_late_claims_count_against_limits_until_they_are_gone() -> None:
    environment = an_environment(nap=True, limits={"nodes": 1}, nodeClaims={"retrySeconds": 1})
    snapshot = a_snapshot(wanting(1), claim(Launched="No"), environment=environment)
    found, seen = round_of(snapshot, at(301))
    going = seen.model_copy(
        update={"node_claims": (seen.node_claims[0].model_copy(update={"deletion_timestamp": _text(301)}),)}
    )
    assert found.deletions[0].key == claim_key("c")
    blocked, _ = round_of(going, at(310))
    assert blocked.creations == ()
    free, _ = round_of(going.model_copy(update={"node_claims": ()}), at(311))
    assert len(free.creations) == 1
