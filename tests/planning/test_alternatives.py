"""Several instance types and ways to pay for one Workspace: one at a time, the next one after a failure."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.estimating import Sizing
from plimsoll.labels import CAPACITY_TYPE
from plimsoll.model import Plan, Reason, Snapshot
from plimsoll.model.api import MOST_ALTERNATIVES, Alternative, Provisioning, Workspace
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan import plan, validate
from plimsoll.plan.owned import as_status
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import others
from tests.builders import NC24, a_claim, a_node, a_pod, a_snapshot, a_workspace, an_environment
from tests.planning.cluster import after, launched, names, round_of

NC40 = "Standard_NC40ads_H100_v5"
NC48 = "Standard_NC48ads_A100_v4"
START = datetime(2026, 1, 3, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def wanting(replicas: int = 1, types: tuple[str, ...] = (NC24, NC40), **fields: Any) -> Workspace:
    given: dict[str, Any] = {"replicas": replicas, "selector": {}, "uid": "u", "instance_types": types}
    return a_workspace(**(given | fields))


def a_cluster(*objects: Any, **spec: Any) -> Snapshot:
    return a_snapshot(*objects, environment=an_environment(nap=True, **spec))


def types_of(claims: Any) -> list[str]:
    return [each.instance_types[0] for each in claims]


def made(found: Plan) -> list[str]:
    return types_of(NodeClaim.read(each.manifest) for each in found.creations if each.key.kind == "NodeClaim")


def paid(found: Plan) -> list[tuple[str, ...]]:
    claims = [NodeClaim.read(each.manifest) for each in found.creations if each.key.kind == "NodeClaim"]
    return [each.allowed_values[CAPACITY_TYPE] for each in claims]


def without_claims(snapshot: Snapshot) -> Snapshot:
    """The provider has no capacity: Karpenter deletes the NodeClaims."""
    return snapshot.model_copy(update={"node_claims": ()})


def record(snapshot: Snapshot) -> Provisioning:
    return snapshot.workspaces[0].status.provisioning


def test_the_first_type_that_a_replica_fits_is_used_for_all_nodes() -> None:
    found = plan(a_cluster(wanting(2)), validate(a_cluster(wanting(2))), START)
    assert made(found) == [NC24, NC24]
    # 70 GiB do not fit one A100 of 80 GiB, of which the estimate uses a part.
    large = wanting(2, (NC24, NC48), preset="llama-3.3-70b-instruct", per_replica=None)
    [verdict] = validate(a_cluster(large))
    assert verdict.accepted, verdict.message


@pytest.mark.parametrize("types", [("Standard_NC4as_T4_v3", NC24), (NC24, "Standard_NC4as_T4_v3")])
@pytest.mark.parametrize("by_price", [False, True])
def test_a_type_that_a_replica_does_not_fit_is_left_out_and_told(types: tuple[str, ...], by_price: bool) -> None:
    snapshot = a_cluster(wanting(1, types, preset="phi-4", by_price=by_price))
    [verdict] = validate(snapshot)
    assert verdict.alternative is not None
    assert verdict.alternative.instance_type == NC24
    assert any("Standard_NC4as_T4_v3 is not possible" in each for each in verdict.warnings)


def test_without_a_possible_type_the_refusal_names_each() -> None:
    [verdict] = validate(a_cluster(wanting(1, ("Standard_NC4as_T4_v3", "no-such-type"), preset="phi-4")))
    assert verdict.reason is Reason.INSUFFICIENT_GPU_MEMORY
    assert "Standard_NC4as_T4_v3" in verdict.message
    assert "no-such-type" in verdict.message


def test_after_insufficient_capacity_the_next_type_is_tried_at_once() -> None:
    found, seen = round_of(a_cluster(wanting(2)), START)
    gone = without_claims(after(seen, found))
    nothing, counted = round_of(gone, at(1))
    assert nothing.empty
    assert nothing.next_deadline == at(1), "the status is the only record: the next round reads it"
    assert [(each.instance_type, each.failures) for each in record(counted).alternatives] == [(NC24, 1)]
    found, seen = round_of(counted, at(2))
    assert made(found) == [NC40, NC40]
    assert record(seen).alternative == (NC40, "")


def recased(snapshot: Snapshot) -> Snapshot:
    """With the instance types of the one Workspace in small letters."""
    [workspace] = snapshot.workspaces
    types = tuple(each.lower() for each in workspace.spec.resource.instance_types)
    resource = workspace.spec.resource.model_copy(update={"instance_types": types})
    changed = workspace.model_copy(update={"spec": workspace.spec.model_copy(update={"resource": resource})})
    return snapshot.model_copy(update={"workspaces": (changed,)})


def test_the_letter_case_of_types_changes_neither_nodes_nor_pods() -> None:
    found, seen = round_of(a_cluster(wanting(2)), START)
    running = launched(after(seen, found))
    found, seen = round_of(running, at(1))
    running = after(seen, found)
    for snapshot in (running, recased(running)):
        assert round_of(snapshot, at(2))[0].empty


def test_the_letter_case_of_types_forgets_no_failure() -> None:
    found, seen = round_of(a_cluster(wanting(2)), START)
    _, counted = round_of(without_claims(after(seen, found)), at(1))
    found, _ = round_of(recased(counted), at(2))
    assert made(found) == [NC40, NC40]


def test_when_all_have_failed_the_first_is_tried_again_after_its_back_off() -> None:
    snapshot = a_cluster(wanting(1), nodeClaims={"retrySeconds": 60})
    order = []
    for second in range(0, 200, 2):
        found, seen = round_of(snapshot, at(second))
        order += [(second, name) for name in made(found)]
        snapshot = without_claims(after(seen, found))
    types = [name for _, name in order]
    assert types[:4] == [NC24, NC40, NC24, NC40]
    assert order[2][0] - order[0][0] > 60, "the back-off of each type is its own"


def test_a_late_claim_is_deleted_and_the_next_type_waits_until_it_is_gone() -> None:
    snapshot = a_cluster(wanting(2), nodeClaims={"launchDeadlineSeconds": 60})
    found, seen = round_of(snapshot, START)
    waiting = after(seen, found)
    one, other = sorted(waiting.node_claims, key=lambda each: each.name)
    both = waiting.model_copy(
        update={"node_claims": (one, other.model_copy(update={"creation_timestamp": "2026-01-03T00:01:00Z"}))}
    )
    late, counted = round_of(both, at(90))
    assert names(late) == ([], [one.name])
    left = after(counted, late)
    given_up, seen = round_of(left, at(91))
    assert names(given_up) == ([], [other.name]), "no node of the next type beside one of the last"
    found, _ = round_of(after(seen, given_up), at(92))
    assert made(found) == [NC40, NC40]


def with_record(workspace: Workspace, provisioning: Provisioning) -> Workspace:
    status = workspace.status.model_copy(update={"provisioning": provisioning})
    return workspace.model_copy(update={"status": status})


def running(types: tuple[str, ...] = (NC24, NC40), **fields: Any) -> Snapshot:
    """One of two replicas runs on the second type; of the other, no node came."""
    workspace = wanting(2, types, **fields)
    status = Provisioning.model_validate(
        {
            **{"instanceType": NC40, "failures": 1, "tries": 2, "lastFailure": "2026-01-03T00:00:00Z"},
            "alternatives": [{"instanceType": NC40, "failures": 1, "lastFailure": "2026-01-03T00:00:00Z"}],
        }
    )
    workspace = with_record(workspace, status)
    claim = a_claim("a", workspace, ready=True, instance_type=NC40, node="n")
    return launched(a_cluster(workspace, claim, a_pod("p", workspace, node="n")))


def test_a_type_stays_while_replicas_run_on_it() -> None:
    found, _ = round_of(running(), at(3600))
    assert made(found) == [NC40]
    assert found.deletions == ()


def test_a_type_that_is_no_longer_listed_stays_while_replicas_run_on_it() -> None:
    found, _ = round_of(running((NC24,)), at(3600))
    assert made(found) == [NC40]
    assert any("names no more" in each for each in found.warnings)


@pytest.mark.parametrize("ways", [(), ("spot", "on-demand")])
def test_a_type_stays_while_a_replica_runs_on_an_existing_node_of_it(ways: tuple[str, ...]) -> None:
    """Of the next type, the pods would require other nodes, and the one that serves would be deleted."""
    workspace = wanting(2, selector={"pool": "own"}, capacity_types=ways)
    host = a_node("n", "own", allocatable=1, instance_type=NC24)
    snapshot = a_cluster(workspace, host, a_pod("p", workspace, node="n"), nodeClaims={"retrySeconds": 60})
    for second in range(0, 300, 10):
        found, seen = round_of(snapshot, at(second))
        assert set(made(found)) <= {NC24}
        assert len(made(found)) < 2, "the existing node counts"
        snapshot = without_claims(after(seen, found))
    assert {each.alternative for each in record(snapshot).alternatives} == {(NC24, way) for way in ways or ("",)}


def test_after_zero_replicas_the_type_is_the_last_one() -> None:
    snapshot = running()
    idle = wanting(0).model_copy(update={"status": snapshot.workspaces[0].status})
    recovered = Provisioning.model_validate({"instanceType": NC40})
    status = idle.status.model_copy(update={"provisioning": recovered})
    empty, seen = round_of(a_cluster(idle.model_copy(update={"status": status})), at(10))
    assert empty.empty
    assert record(seen).alternative == (NC40, "")
    again = wanting(1).model_copy(update={"status": seen.workspaces[0].status})
    found, _ = round_of(a_cluster(again), at(20))
    assert made(found) == [NC40]


def test_spot_and_on_demand_are_tried_for_each_type_in_order() -> None:
    snapshot = a_cluster(wanting(1, capacity_types=("spot", "on-demand")))
    order: list[tuple[str, tuple[str, ...]]] = []
    for second in range(12):
        found, seen = round_of(snapshot, at(second))
        order += zip(made(found), paid(found), strict=True)
        snapshot = without_claims(after(seen, found))
    assert order == [(NC24, ("spot",)), (NC24, ("on-demand",)), (NC40, ("spot",)), (NC40, ("on-demand",))]


def test_one_type_may_have_several_ways_to_pay() -> None:
    workspace = wanting(1, (), instance_type=NC24, capacity_types=("spot", "on-demand"))
    found, seen = round_of(a_cluster(workspace), START)
    _, counted = round_of(without_claims(after(seen, found)), at(1))
    found, _ = round_of(counted, at(2))
    assert paid(found) == [("on-demand",)]


@pytest.mark.parametrize("spec", [{"limits": {"gpus": 2}}, {"access": [{"namespaces": ["default"], "gpus": 2}]}])
def test_a_type_beyond_a_limit_is_left_out(spec: dict[str, Any]) -> None:
    """Otherwise the Workspace is refused for it, and the type within the limit is never tried again."""
    snapshot = a_cluster(wanting(2, (NC24, NC48)), nodeClaims={"retrySeconds": 60}, **spec)
    order = []
    for second in range(0, 200, 10):
        found, seen = round_of(snapshot, at(second))
        order += [(second, name) for name in made(found)]
        snapshot = without_claims(after(seen, found))
        assert all(each.accepted for each in found.verdicts)
    assert {name for _, name in order} == {NC24}
    assert len({second for second, _ in order}) == 2
    [verdict] = validate(snapshot)
    assert any(NC48 in each for each in verdict.warnings)


def test_types_are_ordered_by_the_price_of_all_nodes() -> None:
    prices = {"catalog": {"prices": {NC24: 9.0, NC40: 5.0}}}
    workspace = wanting(1, by_price=True)
    assert made(round_of(a_cluster(workspace, **prices), START)[0]) == [NC40]
    # A replica takes two nodes of the one that is cheaper by itself.
    prices = {"catalog": {"prices": {NC24: 5.0, "Standard_NC48ads_A100_v4": 9.0}}}
    workspace = wanting(1, (NC24, NC48), by_price=True, preset="qwen2.5-coder-32b-instruct")
    assert made(round_of(a_cluster(workspace, **prices), START)[0]) == [NC48]


def test_a_static_node_pool_is_emptied_before_it_gets_the_next_type() -> None:
    snapshot = a_cluster(wanting(1), provisioner="static-nodepool", nodeClaims={"launchDeadlineSeconds": 60})
    found, seen = round_of(snapshot, START)
    [pool] = after(seen, found).node_pools
    owned = a_claim("c", wanting(1), created="2026-01-03T00:00:00Z")
    claim = owned.model_copy(update={"labels": {**owned.labels, "karpenter.sh/nodepool": pool.name}})
    late, counted = round_of(after(seen, found).model_copy(update={"node_claims": (claim,)}), at(90))
    assert names(late) == ([], ["c"])
    again = claim.model_copy(update={"name": "d"})
    emptied, seen = round_of(counted.model_copy(update={"node_claims": (again,)}), at(91))
    [update] = emptied.updates
    assert update.manifest["spec"]["replicas"] == 0
    filled, _ = round_of(without_claims(after(seen, emptied)), at(92))
    [update] = filled.updates
    assert update.manifest["spec"]["replicas"] == 1
    requirements = update.manifest["spec"]["template"]["spec"]["requirements"]
    assert requirements[0]["values"] == [NC40]


def test_the_status_is_what_the_next_round_reads() -> None:
    found, seen = round_of(a_cluster(wanting(1)), START)
    _, counted = round_of(without_claims(after(seen, found)), at(1))
    status = as_status(record(counted))
    assert status is not None
    assert status["alternatives"][0]["lastFailure"]
    assert Provisioning.model_validate(status) == record(counted)


def test_a_workspace_that_names_ever_other_alternatives_has_no_longer_status() -> None:
    entries = [{"instanceType": f"t{number}", "failures": 1} for number in range(MOST_ALTERNATIVES)]
    there = Provisioning.model_validate({"alternatives": entries})
    snapshot = a_cluster(with_record(wanting(1), there))
    found, seen = round_of(snapshot, START)
    _, counted = round_of(without_claims(after(seen, found)), at(1))
    names = [each.instance_type for each in record(counted).alternatives]
    assert (len(names), names[:2]) == (MOST_ALTERNATIVES, [NC24, "t0"]), "the newest first, the oldest left out"
    assert record(counted).omitted_alternatives == 1
    again = there.with_failed(there.alternatives[7])
    assert (again.alternatives[0].instance_type, again.omitted_alternatives) == ("t7", 0)
    status = as_status(record(counted))
    assert Provisioning.model_validate(status) == record(counted)


def test_all_that_a_workspace_can_name_have_their_back_off() -> None:
    types = tuple(f"t{number}" for number in range(16))
    every = wanting(1, types, capacity_types=("spot", "on-demand", "reserved"))
    assert len(every.spec.resource.alternatives) == MOST_ALTERNATIVES
    with pytest.raises(Exception, match="at most 16"):
        wanting(1, (*types, "t16"))


def test_a_choice_by_price_judges_each_alternative_once() -> None:
    view = ClusterView.of(a_cluster(wanting(1, by_price=True)))
    [holding] = view.holdings.values()
    judged: list[str] = []

    def judge(workspace: Workspace) -> Sizing:
        judged.append(workspace.spec.resource.instance_type or "")
        return Sizing(per_replica=1, target=1, message="")

    [other] = others(holding, judge, view.types, Alternative(NC24))
    assert other.alternative == Alternative(NC40)
    assert sorted(judged) == sorted([NC24, NC40])


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"instance_type": NC24}, "instanceTypes exclude each other"),
        ({"capacity_type": "spot", "capacity_types": ("spot",)}, "capacityTypes exclude each other"),
        ({"types": (), "instance_type": NC24, "by_price": True}, "byPrice orders instanceTypes"),
    ],
)
def test_what_cannot_be_declared_together(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        wanting(1, **fields)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), replicas=st.integers(1, 3), spot=st.booleans())
def test_nodes_are_never_of_two_alternatives(data: st.DataObject, replicas: int, spot: bool) -> None:
    """Whatever fails, comes or is changed, what exists after a plan is of one type, paid for in one way."""
    fields: dict[str, Any] = {"capacity_types": ("spot", "on-demand")} if spot else {}
    snapshot = a_cluster(wanting(replicas, (NC24, NC40, NC48), **fields), nodeClaims={"launchDeadlineSeconds": 20})
    second = 0
    for _ in range(data.draw(st.integers(2, 12))):
        second += data.draw(st.sampled_from((1, 30, 700)))
        found, seen = round_of(snapshot, at(second))
        there = types_of(each for each in snapshot.node_claims if not each.deleting)
        assert not found.creations or len({*there, *made(found)}) <= 1, "nothing is created beside another type"
        snapshot = after(seen, found)
        alive = [each for each in snapshot.node_claims if not each.deleting]
        assert len({(each.instance_types, each.allowed_values.get(CAPACITY_TYPE)) for each in alive}) <= 1
        assert len(alive) <= replicas
        stamped = at(second).strftime("%Y-%m-%dT%H:%M:%SZ")
        new = {each.key.name for each in found.creations}
        claims = tuple(
            each.model_copy(update={"creation_timestamp": stamped}) if each.name in new else each
            for each in snapshot.node_claims
        )
        lost = data.draw(st.sets(st.sampled_from([each.name for each in claims]))) if claims else set()
        snapshot = snapshot.model_copy(update={"node_claims": tuple(each for each in claims if each.name not in lost)})
        if data.draw(st.booleans()):
            snapshot = launched(snapshot)
        if data.draw(st.booleans()):
            types = tuple(data.draw(st.permutations((NC24, NC40, NC48))))[: data.draw(st.integers(1, 3))]
            changed = wanting(replicas, types, **fields).model_copy(update={"status": snapshot.workspaces[0].status})
            snapshot = snapshot.model_copy(update={"workspaces": (changed,)})
