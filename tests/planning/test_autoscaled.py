"""Workloads whose replicas a HorizontalPodAutoscaler sets: the plan does not change the number, and the nodes follow
it."""

from datetime import UTC, datetime

import pytest

from plimsoll.model import Plan, Reason, Snapshot
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_claim, a_node, a_snapshot, a_template, a_workload, a_workspace, an_autoscaler
from tests.planning.cluster import after, launched

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def of(snapshot: Snapshot) -> Plan:
    return plan(snapshot, validate(snapshot), NOW)


def autoscaled_cluster(scaled_to: int | None, image: str = "example/server:1") -> Snapshot:
    """A Workspace with two replicas that is autoscaled from the start; the live workload."""
    nodes = [a_node(f"n-{n}") for n in range(6)]
    workspace = a_workspace(replicas=2)
    [plain] = of(a_snapshot(workspace, *nodes)).creations
    scaler = an_autoscaler(plain.manifest)
    [creation] = of(a_snapshot(workspace, *nodes, scaler)).creations
    assert creation.manifest["spec"]["replicas"] == 2, "where it starts from is declared"
    now = a_workspace(replicas=2, template=a_template(image=image))
    return a_snapshot(now, *nodes, scaler, a_workload(creation.manifest, scaled_to=scaled_to))


def test_replicas_set_by_an_autoscaler_are_not_changed() -> None:
    for replicas in (1, 2, 5):
        assert of(autoscaled_cluster(replicas)).empty


def test_a_changed_template_does_not_declare_the_replicas_that_an_autoscaler_owns() -> None:
    [update] = of(autoscaled_cluster(5, "example/server:2")).updates
    assert "replicas" not in update.manifest["spec"]


def test_replicas_that_no_autoscaler_has_changed_yet_stay_declared() -> None:
    """If their only field manager left them out, they would become 1."""
    [update] = of(autoscaled_cluster(None, "example/server:2")).updates
    assert update.manifest["spec"]["replicas"] == 2


def test_a_deleted_autoscaler_restores_the_declared_replicas_and_a_new_one_changes_no_pods() -> None:
    with_scaler = autoscaled_cluster(5)
    [update] = of(with_scaler.model_copy(update={"autoscalers": ()})).updates
    assert update.manifest["spec"]["replicas"] == 2
    without = with_scaler.model_copy(update={"workloads": (a_workload(update.manifest),), "autoscalers": ()})
    assert of(without).empty
    [again] = of(without.model_copy(update={"autoscalers": with_scaler.autoscalers})).updates
    assert again.manifest["spec"] == update.manifest["spec"]


def test_an_autoscaler_of_another_workload_is_ignored() -> None:
    snapshot = autoscaled_cluster(None)
    [scaler] = snapshot.autoscalers
    others = [{"target_name": "other"}, {"namespace": "other"}, {"target_kind": "StatefulSet"}]
    for other in others:
        raised = snapshot.model_copy(
            update={
                "autoscalers": (scaler.model_copy(update=other),),
                "workspaces": (a_workspace(replicas=3),),
            }
        )
        [update] = of(raised).updates
        assert update.manifest["spec"]["replicas"] == 3


@pytest.mark.parametrize(("declared", "scaled_to"), [(2, 0), (0, 2), (2, 5)])
def test_a_refused_workspace_keeps_what_the_autoscaler_set(declared: int, scaled_to: int) -> None:
    refused = a_workspace(replicas=declared, selector={"pool": "gone"})
    snapshot = autoscaled_cluster(scaled_to).model_copy(update={"workspaces": (refused,)})
    [verdict] = validate(snapshot)
    assert verdict.reason is Reason.NO_MATCHING_NODES
    assert of(snapshot).empty


def test_provisioned_nodes_follow_the_autoscaler() -> None:
    workspace = a_workspace(instance_type=NC24, replicas=2)
    before = launched(a_snapshot(workspace, *(a_claim(f"c-{n}", ready=True) for n in range(2)), nap=True))
    running = after(before, of(before))
    [workload] = running.workloads
    [creation] = of(before).creations
    scaler = (an_autoscaler(creation.manifest),)

    def scaled_to(replicas: int) -> Plan:
        live = a_workload(creation.manifest, scaled_to=replicas).model_copy(update={"annotations": hashes})
        return of(running.model_copy(update={"workloads": (live,), "autoscalers": scaler}))

    [taken_over] = of(running.model_copy(update={"autoscalers": scaler})).updates
    hashes = taken_over.manifest["metadata"]["annotations"]
    assert workload.replicas == 2
    assert [each.key.kind for each in scaled_to(4).creations] == ["NodeClaim", "NodeClaim"]
    assert [each.key.kind for each in scaled_to(1).deletions] == ["NodeClaim"]
    assert scaled_to(2).empty
    assert scaled_to(4).verdicts[0].target_node_count == 4


def test_a_workload_in_another_namespace_is_not_the_workspaces_whatever_its_labels() -> None:
    """Whoever may create it there has no rights in the Workspace's namespace."""
    snapshot = autoscaled_cluster(None)
    [live] = snapshot.workloads
    forged = live.model_copy(update={"namespace": "elsewhere", "name": "aaa", "replicas": 0})
    [scaler] = snapshot.autoscalers
    theirs = scaler.model_copy(update={"namespace": "elsewhere", "target_name": "aaa"})
    both = {"workloads": (forged, live), "autoscalers": (theirs, scaler)}
    assert of(snapshot.model_copy(update=both)).empty
    before = {"workloads": (forged,), "autoscalers": ()}
    assert len(of(snapshot.model_copy(update=before)).creations) == 1, "its own workload"
