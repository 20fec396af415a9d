"""The operations that a part of a Plan needs, computed from a state and a cluster before any is started."""

from typing import Any

import pytest

from plimsoll.apply import ClusterUnreachableError, FailureKind, PlanMismatchError
from plimsoll.apply.delta import Part, Review, Reviewer, with_uid
from plimsoll.apply.engine import Operation
from plimsoll.apply.state import State
from plimsoll.kube import ConnectionFailedError, Kind, RequestError
from plimsoll.labels import NODEPOOL, SHARD
from plimsoll.model import ObjectKey, Reason
from tests.applying.states import (
    STACK,
    FakeCluster,
    a_claim,
    a_deployment,
    a_state,
    change,
    deletion,
    live,
)

CLAIM = a_claim("claim")
KEY = ObjectKey.of(CLAIM)


def reviewed(part: Part, state: State, *objects: dict[str, Any], refusal: RequestError | None = None) -> Review:
    return Reviewer(FakeCluster(*objects, refusal=refusal)).review(part, state)


def operations(review: Review, state: State) -> dict[str, str]:
    return {key.name: str(operation) for key, (_, operation) in review.operations(state).items()}


def kept(review: Review, state: State) -> set[str]:
    return {declared.name for declared in review.registrations(state).kept}


def test_a_new_object_is_registered_first_and_the_others_stay_unchanged() -> None:
    other = live(a_claim("other"))
    state = a_state(other)

    review = reviewed(Part(creations=[change(CLAIM)]), state, other)

    assert operations(review, state) == {"claim": Operation.CREATE}
    registrations = review.registrations(state)
    assert [declared.name for declared in registrations.first] == ["claim"]
    assert registrations.first[0].inputs["metadata"]["labels"][SHARD] == STACK
    assert registrations.first[0].inputs["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true"
    assert [dict(declared.inputs) for declared in registrations.kept] == [
        state.resources[ObjectKey.of(other)].declared.inputs
    ]


def test_an_existing_object_is_not_changed() -> None:
    state = a_state(live(CLAIM))
    review = reviewed(Part(creations=[change(a_claim("claim", instance_type="changed"))]), state, live(CLAIM))
    assert not review.has_work
    assert review.done == {KEY}


def test_a_stale_entry_is_removed_before_its_name_is_used_again() -> None:
    state = a_state(live(CLAIM, uid="old"))
    review = reviewed(Part(creations=[change(CLAIM)]), state)
    assert review.edits_state
    assert review.drop == {KEY}


def test_our_object_without_state_is_adopted() -> None:
    review = reviewed(Part(creations=[change(CLAIM)]), a_state(), live(CLAIM))
    assert review.adopt.keys() == {KEY}
    assert not review.creations


@pytest.mark.parametrize("entry", [(), (live(CLAIM, uid="old"),)], ids=["unknown", "stale"])
def test_an_object_of_another_owner_is_not_changed(entry: tuple[dict[str, Any], ...]) -> None:
    theirs = live(CLAIM, uid="theirs")
    del theirs["metadata"]["labels"][SHARD]
    review = reviewed(Part(creations=[change(CLAIM)]), a_state(*entry), theirs)
    assert review.failed[KEY].kind is FailureKind.NOT_OURS
    assert not review.creations


def test_an_object_that_is_being_deleted_is_awaited() -> None:
    review = reviewed(Part(creations=[change(CLAIM)]), a_state(), live(CLAIM, deleting=True))
    assert review.failed[KEY].kind is FailureKind.BEING_DELETED
    assert not review.has_work


def test_of_many_new_objects_only_existing_names_are_read() -> None:
    many = [a_claim(f"c{number:02}") for number in range(40)]
    theirs, ours = live(many[7], uid="theirs"), live(many[8])
    del theirs["metadata"]["labels"][SHARD]
    cluster = FakeCluster(theirs, ours)
    stale = live(many[9], uid="old")

    review = Reviewer(cluster).review(Part(creations=[change(each) for each in many]), a_state(stale))

    assert sorted(cluster.looked_at) == ["c07", "c08"]
    assert len(review.creations) == 38
    assert review.failed[ObjectKey.of(many[7])].kind is FailureKind.NOT_OURS
    assert review.adopt.keys() == {ObjectKey.of(many[8])}
    assert review.drop == {ObjectKey.of(many[9])}


def test_a_kind_that_is_not_served_fails_before_the_update() -> None:
    odd = a_claim("odd") | {"apiVersion": "example.com/v1", "kind": "Widget"}
    review = reviewed(Part(creations=[change(odd)]), a_state())
    assert review.failed[ObjectKey.of(odd)].kind is FailureKind.NO_SUCH_KIND


class Forbidding(FakeCluster):
    """A cluster in which the account must not read objects of these names, nor list any."""

    forbidden = frozenset({"odd"})

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        if name in self.forbidden:
            raise RequestError(403, "Forbidden", "no rights")
        return super().get(kind, namespace, name)

    def names(self, kind: Kind, namespace: str = "") -> set[tuple[str, str]]:
        raise RequestError(403, "Forbidden", "no rights")


@pytest.mark.parametrize("number", [1, 40])
def test_an_object_that_must_not_be_read_fails_by_itself(number: int) -> None:
    odd, others = a_claim("odd"), [a_claim(f"c{each:02}") for each in range(number)]
    review = Reviewer(Forbidding()).review(Part(creations=[change(odd), *map(change, others)]), a_state())
    assert review.creations.keys() == {ObjectKey.of(each) for each in others}
    assert [(key.name, failure.kind) for key, failure in review.failed.items()] == [("odd", FailureKind.REFUSED)]
    assert "foundation" in review.failed[ObjectKey.of(odd)].message


@pytest.mark.parametrize(
    "part", [Part(updates=[change(a_deployment("odd"))]), Part(deletions=[deletion(a_claim("odd"), "uid-odd")])]
)
def test_a_change_of_an_object_that_must_not_be_read_fails_by_itself(part: Part) -> None:
    review = Reviewer(Forbidding()).review(part, a_state())
    assert [failure.kind for failure in review.failed.values()] == [FailureKind.REFUSED]


def test_deleted_objects_are_not_declared() -> None:
    state = a_state(live(CLAIM), live(a_claim("other")))
    review = reviewed(Part(deletions=[deletion(CLAIM, "uid-claim")]), state, live(CLAIM))
    assert operations(review, state) == {"claim": Operation.DELETE}
    assert kept(review, state) == {"other"}


def test_a_new_object_of_the_same_name_is_not_deleted() -> None:
    state = a_state(live(CLAIM, uid="old"))
    review = reviewed(Part(deletions=[deletion(CLAIM, "old")]), state, live(CLAIM, uid="new"))
    assert not review.deletions
    assert review.drop == {KEY}
    assert review.forgotten == {KEY}


def test_a_missing_object_is_removed_from_the_state_by_the_update() -> None:
    state = a_state(live(CLAIM))
    review = reviewed(Part(deletions=[deletion(CLAIM, "uid-claim")]), state)
    assert operations(review, state) == {"claim": Operation.DELETE}


def test_a_deletion_without_an_object_does_nothing() -> None:
    review = reviewed(Part(deletions=[deletion(CLAIM, "x")]), a_state())
    assert not review.has_work
    assert review.forgotten == {KEY}


def test_an_object_without_state_is_adopted_to_be_deleted() -> None:
    review = reviewed(Part(deletions=[deletion(CLAIM, "uid-claim")]), a_state(), live(CLAIM))
    assert review.adopt.keys() == {KEY}


@pytest.mark.parametrize(("uid", "kind"), [("uid-ws", None), ("uid-of-another", FailureKind.NOT_OURS)])
def test_a_claim_of_the_workspaces_own_node_pool_may_be_deleted(uid: str, kind: FailureKind | None) -> None:
    pooled = live(CLAIM)
    del pooled["metadata"]["labels"][SHARD]
    pooled["metadata"]["labels"][NODEPOOL] = "ws-pool"
    gone = deletion(CLAIM, "uid-claim")
    gone = gone.model_copy(update={"owner": gone.owner.model_copy(update={"uid": uid})})
    review = reviewed(Part(deletions=[gone]), a_state(), pooled)
    assert (review.failed[KEY].kind if review.failed else None) is kind
    assert bool(review.adopt) == (kind is None)


def test_an_update_that_the_apiserver_rejects_in_a_dry_run_is_refused() -> None:
    workload = a_deployment("serve")
    state = a_state(live(workload))
    immutable = RequestError(422, "Invalid", "spec.selector: field is immutable")

    review = reviewed(Part(updates=[change(workload)]), state, live(workload), refusal=immutable)

    assert review.failed[ObjectKey.of(workload)].kind is FailureKind.REFUSED
    assert kept(review, state) == {"default/serve"}


def test_a_field_of_another_manager_is_a_conflict_with_what_to_change() -> None:
    workload = a_deployment("serve")
    scaled = RequestError(409, "Conflict", 'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas')
    review = reviewed(Part(updates=[change(workload)]), a_state(live(workload)), live(workload), refusal=scaled)
    failure = review.failed[ObjectKey.of(workload)]
    assert failure.kind is FailureKind.CONFLICT
    assert ".spec.replicas" in failure.message
    assert "plimsoll plan" in failure.message


def test_an_update_carries_its_new_inputs_and_its_shard() -> None:
    state = a_state(live(a_deployment("serve")))
    changed = a_deployment("serve", image="two")

    review = reviewed(Part(updates=[change(changed)]), state, live(a_deployment("serve")))

    assert operations(review, state) == {"serve": Operation.UPDATE}
    (declared,) = review.registrations(state).first
    assert declared.inputs["spec"]["image"] == "two"
    assert declared.inputs["metadata"]["labels"][SHARD] == STACK
    assert declared.inputs["metadata"]["uid"] == live(changed)["metadata"]["uid"]
    assert kept(review, state) == set()


def test_a_state_that_is_not_up_to_date_is_edited_before_an_update_back_to_it() -> None:
    before, after = live(a_deployment("serve")), live(a_deployment("serve", image="two"))
    back = change(a_deployment("serve"))
    state = a_state(before)
    inputs = state.resources[back.key].declared.inputs

    review = reviewed(Part(updates=[back]), state, after)
    assert review.updates[back.key].inputs == with_uid(inputs, after["metadata"]["uid"])
    assert review.adopt.keys() == {back.key}
    assert not reviewed(Part(updates=[back]), state, before).adopt, "the object is as in the state"


def test_an_update_names_the_object_that_there_is_now() -> None:
    """Also if what was declared before names an earlier one."""
    workload, now = a_deployment("serve"), live(a_deployment("serve"), uid="another")
    earlier = {**live(workload), "metadata": {**live(workload)["metadata"], "uid": "earlier"}}
    partial = change(workload).model_copy(update={"partial": True})
    review = reviewed(Part(updates=[partial]), a_state(earlier), now)
    assert review.updates[partial.key].inputs["metadata"]["uid"] == "another"


@pytest.mark.parametrize("known", [True, False])
def test_a_partial_update_keeps_the_other_declared_fields(known: bool) -> None:
    there = live(a_deployment("serve", image="two"))
    state = a_state(there) if known else a_state()
    fewer = {**a_deployment("serve"), "spec": {"replicas": 2}}

    review = reviewed(Part(updates=[change(fewer).model_copy(update={"partial": True})]), state, there)

    declared = review.updates[ObjectKey.of(fewer)]
    assert declared.inputs["spec"] == {"image": "two", "replicas": 2}
    assert declared.inputs["metadata"]["labels"][SHARD] == STACK
    assert bool(review.adopt) is not known


def test_an_update_of_a_missing_object_fails() -> None:
    workload = a_deployment("serve")
    review = reviewed(Part(updates=[change(workload)]), a_state(live(workload)))
    assert review.failed[ObjectKey.of(workload)].kind is FailureKind.GONE


def test_an_object_that_took_the_name_of_a_recorded_one_is_not_changed() -> None:
    """A tenant has deleted ours and created its own."""
    workload = a_deployment("serve")
    theirs = {**workload, "metadata": {"name": "serve", "namespace": "default", "uid": "theirs"}}
    review = reviewed(Part(updates=[change(workload)]), a_state(live(workload)), theirs)
    assert review.failed[ObjectKey.of(workload)].kind is FailureKind.NOT_OURS
    assert not review.adopt and not review.updates


@pytest.mark.parametrize("mark", ["taint", "delete", "pendingReplacement"])
def test_a_resource_that_the_engine_would_replace_is_a_plan_mismatch(mark: str) -> None:
    marked: dict[str, Any] = {mark: True}
    state = a_state(live(CLAIM), **marked)
    with pytest.raises(PlanMismatchError, match="NodeClaim claim"):
        reviewed(Part(creations=[change(a_claim("new"))]), state, live(CLAIM))


@pytest.mark.parametrize(
    ("refusal", "reason", "told"),
    [
        (
            RequestError(422, "Invalid", "spec.template.spec.containers: Required value"),
            Reason.INVALID_SPEC,
            "Required",
        ),
        (RequestError(403, "Forbidden", "exceeded quota: q"), Reason.NOT_ALLOWED, "exceeded quota: q"),
        (RequestError(400, "BadRequest", "webhook w does not support dry run"), Reason.NOT_ALLOWED, "sideEffects"),
        (RequestError(409, "Conflict", "conflict with others"), Reason.NOT_ALLOWED, "conflict with others"),
    ],
)
def test_a_workload_that_the_apiserver_would_refuse(refusal: RequestError, reason: Reason, told: str) -> None:
    workload = change(a_deployment("serve"))
    found = Reviewer(FakeCluster(refusal=refusal)).refused([workload], STACK)
    assert found[workload.key].reason is reason
    assert told in found[workload.key].message
    assert "Deployment default/serve" in found[workload.key].message
    assert not Reviewer(FakeCluster()).refused([workload], STACK)


def test_a_workload_of_a_kind_that_the_cluster_does_not_serve_is_refused() -> None:
    groups = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "spec": {}}
    workload = change({**groups, "metadata": a_deployment("serve")["metadata"]})
    assert Reviewer(FakeCluster()).refused([workload], STACK).keys() == {workload.key}


@pytest.mark.parametrize(("ours", "refused"), [(True, False), (False, True)])
def test_fields_that_others_changed_refuse_no_workload_of_ours(ours: bool, refused: bool) -> None:
    workload = a_deployment("serve")
    there = live(workload)
    if not ours:
        del there["metadata"]["labels"][SHARD]
    conflict = RequestError(409, "Conflict", 'conflict with "kubectl": .spec.replicas')
    assert bool(Reviewer(FakeCluster(there, refusal=conflict)).refused([change(workload)], STACK)) == refused


def test_nothing_is_known_of_a_workload_while_the_apiserver_does_not_answer() -> None:
    class Gone(FakeCluster):
        def dry_run(self, obj: dict[str, Any], manager: str) -> dict[str, Any]:
            raise ConnectionFailedError("refused")

    with pytest.raises(ClusterUnreachableError):
        Reviewer(Gone()).refused([change(a_deployment("serve"))], STACK)
