"""Rollouts with a temporary node: the old pod serves until the new one is Ready."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model import Plan, Reason, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Pod, Workload
from plimsoll.model.meta import Condition
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_node, a_pod, a_snapshot, a_template, a_workspace, an_environment
from tests.planning.cluster import after, launched

NOW = datetime(2026, 1, 3, tzinfo=UTC)


def wanting(replicas: int = 1, image: str = "own:1", max_surge: int = 1, **fields: Any) -> Workspace:
    given: dict[str, Any] = {"replicas": replicas, "selector": {}, "uid": "u", "instance_type": NC24}
    workspace = a_workspace(**(given | fields), template=a_template(image=image))
    manifest = {"strategy": "Surge", "maxSurge": max_surge, "deadlineSeconds": 900}
    inference = workspace.spec.inference
    assert inference is not None
    rollout = type(inference.rollout).model_validate(manifest)
    spec = workspace.spec.model_copy(update={"inference": inference.model_copy(update={"rollout": rollout})})
    return workspace.model_copy(update={"spec": spec})


def a_cluster(*objects: Any, **spec: Any) -> Snapshot:
    return a_snapshot(*objects, environment=an_environment(nap=True, **spec))


def planned(snapshot: Snapshot) -> Plan:
    return plan(snapshot, validate(snapshot), NOW)


def of_kind(operations: Any, kind: str) -> list[str]:
    return [each.key.name for each in operations if each.key.kind == kind]


def serving(replicas: int = 1, **spec: Any) -> Snapshot:
    """The Workspace runs on its nodes."""
    snapshot = a_cluster(wanting(replicas), **spec)
    snapshot = launched(after(snapshot, planned(snapshot)))
    snapshot = after(snapshot, planned(snapshot))
    nodes = [claim.node_name for claim in snapshot.node_claims]
    return with_pods(snapshot, *(a_ready(f"old-{node}", node) for node in nodes))


def a_ready(name: str, node: str, status: str = "True") -> Pod:
    condition = Condition(type="Ready", status=status)
    return a_pod(name, wanting(), node=node).model_copy(update={"conditions": (condition,)})


def with_pods(snapshot: Snapshot, *pods: Pod) -> Snapshot:
    return snapshot.model_copy(update={"pods": pods})


def with_workload(snapshot: Snapshot, **fields: Any) -> Snapshot:
    [workload] = snapshot.workloads
    return snapshot.model_copy(update={"workloads": (workload.model_copy(update=fields),)})


def changed(snapshot: Snapshot, image: str = "own:2") -> Snapshot:
    replicas = snapshot.workspaces[0].replicas
    snapshot = snapshot.model_copy(update={"workspaces": (wanting(replicas, image),)})
    return after(snapshot, planned(snapshot))


def rolling(snapshot: Snapshot, *, pods: int, updated: int, stalled: bool = False) -> Snapshot:
    progress = (Condition(type="Progressing", status="False", reason="ProgressDeadlineExceeded"),) if stalled else ()
    return with_workload(snapshot, pods=pods, updated_replicas=updated, conditions=progress)


def test_a_changed_template_is_rolled_out_on_a_temporary_node_which_then_goes() -> None:
    snapshot = serving()
    [old] = [claim.node_name for claim in snapshot.node_claims]
    assert planned(snapshot).empty
    snapshot = changed(snapshot)
    assert planned(snapshot).empty, "the Deployment has not begun"
    found = planned(rolling(snapshot, pods=1, updated=0))
    assert len(of_kind(found.creations, "NodeClaim")) == 1
    assert not found.deletions, "the old pod serves"
    snapshot = launched(after(rolling(snapshot, pods=2, updated=1), found))
    [new] = [claim.node_name for claim in snapshot.node_claims if claim.node_name != old]
    both = with_pods(snapshot, a_ready("old", old), a_ready("new", new, "False"))
    assert planned(both).empty
    unseen = with_pods(rolling(snapshot, pods=1, updated=1), a_ready("old", old), a_ready("new", new, "False"))
    assert planned(unseen).empty, "the Deployment is seen before the pods"
    unbound = with_pods(rolling(snapshot, pods=1, updated=1), a_ready("old", old), a_ready("new", "", "False"))
    assert planned(unbound).empty, "the Deployment is seen before the node of its pod"
    done = with_pods(rolling(snapshot, pods=1, updated=1), a_ready("new", new))
    [gone] = of_kind(planned(done).deletions, "NodeClaim")
    assert [claim.node_name for claim in snapshot.node_claims if claim.name == gone] == [old]


def test_at_the_deadline_the_node_without_a_serving_pod_goes_and_it_is_told() -> None:
    snapshot = rolling(changed(serving()), pods=2, updated=1)
    [old] = [claim.node_name for claim in snapshot.node_claims]
    snapshot = launched(after(snapshot, planned(snapshot)))
    [new] = [claim.node_name for claim in snapshot.node_claims if claim.node_name != old]
    pods = a_ready("old", old), a_ready("new", new, "False")
    found = planned(with_pods(rolling(snapshot, pods=2, updated=1, stalled=True), *pods))
    [gone] = of_kind(found.deletions, "NodeClaim")
    assert [claim.node_name for claim in snapshot.node_claims if claim.name == gone] == [new]
    assert any("deadline of the rollout" in each for each in found.warnings)
    again = with_pods(rolling(snapshot, pods=2, updated=1), *pods)
    assert not planned(again).deletions, "a new template has its own deadline"


def test_a_rollout_that_was_given_up_gets_no_other_node_until_the_template_changes() -> None:
    """On its node that goes, the new pod is deleted; the one that takes its place counts as progress."""
    snapshot = rolling(changed(serving()), pods=2, updated=1)
    [old] = [claim.node_name for claim in snapshot.node_claims]
    snapshot = launched(after(snapshot, planned(snapshot)))
    [new] = [claim.node_name for claim in snapshot.node_claims if claim.node_name != old]
    stalled = rolling(snapshot, pods=2, updated=1, stalled=True)
    stalled = with_pods(stalled, a_ready("old", old), a_ready("new", new, "False"))
    given_up = with_pods(after(stalled, planned(stalled)), a_ready("old", old))
    for pods, updated in ((1, 0), (2, 1)):
        again = rolling(given_up, pods=pods, updated=updated)
        assert planned(again).empty
        assert any("deadline of the rollout" in each for each in planned(again).warnings)
    third = rolling(changed(again, "own:3"), pods=2, updated=0)
    assert len(of_kind(planned(third).creations, "NodeClaim")) == 1


def test_a_template_that_is_put_back_is_not_given_up() -> None:
    """Its Deployment may still say so of the other template, of which no pod is on a node any more."""
    snapshot = serving()
    pods = snapshot.pods
    stale = with_pods(rolling(changed(snapshot, "own:1"), pods=2, updated=1, stalled=True), *pods)
    assert not planned(stale).updates


def test_of_a_workspace_that_is_refused_meanwhile_no_node_with_a_serving_pod_goes() -> None:
    snapshot = rolling(changed(serving(2)), pods=3, updated=1)
    first, second = [claim.node_name for claim in snapshot.node_claims]
    snapshot = launched(after(snapshot, planned(snapshot)))
    [third] = {claim.node_name for claim in snapshot.node_claims} - {first, second}
    pods = a_ready("old", first), a_ready("new-1", second, "False"), a_ready("new-0", third)
    refused = wanting(2, "own:3", instance_type="no-such-type")
    snapshot = with_pods(rolling(snapshot, pods=3, updated=2), *pods)
    found = planned(snapshot.model_copy(update={"workspaces": (refused,)}))
    assert not found.verdicts[0].accepted
    gone = of_kind(found.deletions, "NodeClaim")
    assert [claim.node_name for claim in snapshot.node_claims if claim.name in gone] == [second]


def test_more_replicas_are_no_rollout() -> None:
    snapshot = with_workload(serving(), pods=1, updated_replicas=1)
    more = snapshot.model_copy(update={"workspaces": (wanting(2),)})
    assert len(of_kind(planned(more).creations, "NodeClaim")) == 1


def test_nothing_is_bought_beyond_the_limits() -> None:
    snapshot = rolling(changed(serving(limits={"nodes": 1})), pods=1, updated=0)
    found = planned(snapshot)
    assert not found.creations
    assert not found.deletions
    assert any(Reason.LIMIT_EXCEEDED.value in each for each in found.warnings)


def test_no_more_temporary_nodes_are_bought_than_new_pods_can_be_there() -> None:
    """A Deployment has no more pods of the new template than replicas, whatever maxSurge is."""
    snapshot = changed(serving(2))
    workspace = wanting(2, "own:2", max_surge=100)
    snapshot = rolling(snapshot.model_copy(update={"workspaces": (workspace,)}), pods=2, updated=0)
    assert len(of_kind(planned(snapshot).creations, "NodeClaim")) == 2
    [verdict] = validate(a_cluster(workspace, limits={"workspaceNodes": 4}))
    assert verdict.accepted, verdict.message


def test_a_limit_of_the_workspace_counts_the_temporary_node() -> None:
    limited = wanting(2)
    resource = limited.spec.resource.model_copy(update={"node_count_limit": 2})
    limited = limited.model_copy(update={"spec": limited.spec.model_copy(update={"resource": resource})})
    [verdict] = validate(a_cluster(limited))
    assert verdict.reason is Reason.LIMIT_EXCEEDED


@pytest.mark.parametrize(
    ("workspace", "environment"),
    [
        (wanting(per_replica=2), an_environment(nap=True)),
        (wanting(instance_type=None, selector={"pool": "a"}, per_replica=2), an_environment()),
        # Karpenter chooses which of its nodes goes, at the deadline the one with the serving pod.
        (wanting(), an_environment(nap=True, provisioner="static-nodepool")),
    ],
)
def test_where_no_temporary_node_helps_it_is_refused(workspace: Workspace, environment: Any) -> None:
    nodes = [a_node(f"n-{number}") for number in range(2)]
    [verdict] = validate(a_snapshot(workspace, *nodes, environment=environment))
    assert verdict.reason is Reason.NOT_SUPPORTED


def test_the_deployment_keeps_its_old_pods_until_new_ones_are_ready() -> None:
    snapshot = a_cluster(wanting(2))
    snapshot = launched(after(snapshot, planned(snapshot)))
    [deployment] = [each.manifest for each in planned(snapshot).creations if each.key.kind == "Deployment"]
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert deployment["spec"]["progressDeadlineSeconds"] == 900


@given(replicas=st.integers(1, 3), steps=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=6))
def test_a_node_with_a_serving_pod_stays_during_a_rollout(replicas: int, steps: list[tuple[bool, bool]]) -> None:
    """As many serve as before, whatever becomes Ready or stalls, on at most one node more."""
    snapshot = changed(serving(replicas))
    pods = list(snapshot.pods)
    updated = 0
    for ready, stalled in steps:
        state = with_pods(rolling(snapshot, pods=len(pods), updated=updated, stalled=stalled), *pods)
        found = planned(state)
        gone = {claim.node_name for claim in state.node_claims if claim.name in of_kind(found.deletions, "NodeClaim")}
        assert not gone & {pod.node_name for pod in pods if pod.ready}
        snapshot = launched(after(state, found))
        assert len(snapshot.node_claims) <= replicas + 1
        pods = [pod for pod in pods if pod.node_name not in gone]
        updated = sum(pod.name.startswith("new") for pod in pods)
        free = {claim.node_name for claim in snapshot.node_claims} - {pod.node_name for pod in pods}
        starting = [pod for pod in pods if pod.name.startswith("new") and not pod.ready]
        if not starting and free and updated < replicas:
            pods.append(a_ready(f"new-{updated}", min(free), "False"))
        elif starting and ready:
            pods = [a_ready(pod.name, pod.node_name) if pod in starting else pod for pod in pods]
            old = [pod for pod in pods if pod.name.startswith("old")]
            pods = [pod for pod in pods if pod is not old[0]] if old else pods
        updated = sum(pod.name.startswith("new") for pod in pods)


def test_only_deployments_have_rollouts_that_are_followed() -> None:
    status = {"replicas": 2, "updatedReplicas": 1, "observedGeneration": 3}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "generation": 3}}
    assert Workload.read({**manifest, "status": status}).rolling_out
    assert not Workload.read({**manifest, "status": {**status, "observedGeneration": 2}}).rolling_out
    assert not Workload.read({**manifest, "kind": "StatefulSet", "status": status}).rolling_out
