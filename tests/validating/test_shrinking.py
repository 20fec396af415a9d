"""A refused Workspace can always be scaled down, and without replicas nothing else is checked."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.labels import SPEC_HASH
from plimsoll.model import InvalidObject, Plan, Reason, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import (
    NC24,
    a_claim,
    a_node,
    a_snapshot,
    a_workload,
    a_workspace,
    an_autoscaler,
    an_environment,
)
from tests.planning.cluster import after, launched

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_running(workspace: Workspace) -> Any:
    """The workload that a plan created for the Workspace on six nodes."""
    snapshot = a_snapshot(workspace, *(a_node(f"n{number}") for number in range(6)))
    [creation] = [each for each in plan(snapshot, validate(snapshot), NOW).creations if each.key.kind != "Service"]
    return a_workload(creation.manifest)


@pytest.mark.parametrize(
    "fields",
    [
        {"preset": "unknown"},
        {"preset": "phi-4", "instance_type": "unknown"},
        {"preset": "phi-4", "instance_type": "trn1.2xlarge"},
        {"preset": "phi-4"},
        {"name": "Not-A-Label".lower() + ".x"},
    ],
)
def test_without_replicas_all_objects_are_deleted(fields: dict[str, Any]) -> None:
    workspace = a_workspace(**fields, replicas=0)
    claim = a_claim("own", workspace, ready=True)
    snapshot = a_snapshot(workspace, claim, nap=True)
    [verdict] = verdicts = validate(snapshot)
    assert (verdict.accepted, verdict.target_node_count) == (True, 0), verdict.message
    assert [each.key.name for each in plan(snapshot, verdicts, NOW).deletions] == ["own"]


def operations(found: Plan) -> dict[str, list[str]]:
    return {
        "create": [each.key.kind for each in found.creations],
        "update": [f"{each.key.kind} {each.manifest['spec']['replicas']}" for each in found.updates],
        "delete": sorted(each.key.kind for each in found.deletions),
    }


def scaled(replicas: int, **more: Any) -> dict[str, list[str]]:
    return {"create": [], "update": [f"Deployment {replicas}"], "delete": []} | more


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        ({"environment": an_environment(access=[{"namespaces": ["others"]}])}, Reason.NOT_ALLOWED),
        ({"more": {"preset": "no-such-model"}}, Reason.UNKNOWN_PRESET),
        ({"more": {"instance_type": NC24}}, Reason.INSTANCE_TYPE_FORBIDDEN),
        ({"nodes": []}, Reason.NO_MATCHING_NODES),
    ],
)
def test_a_refused_workspace_can_be_scaled_down_but_not_up(now: dict[str, Any], reason: Reason) -> None:
    running = a_running(a_workspace(replicas=4))
    nodes = now.get("nodes", [a_node(f"n{number}") for number in range(6)])

    def planned(replicas: int) -> Plan:
        workspace = a_workspace(replicas=replicas, **now.get("more", {}))
        snapshot = a_snapshot(workspace, running, *nodes, environment=now.get("environment"))
        found = plan(snapshot, validate(snapshot), NOW)
        assert [each.reason for each in found.verdicts] == [reason]
        return found

    assert planned(4).empty and planned(5).empty
    assert operations(planned(2)) == scaled(2)


def cluster_of(provisioner: str, **fields: Any) -> Snapshot:
    """The Workspace with its nodes Ready and its workload running."""
    environment = an_environment(nap=True, provisioner=provisioner)
    wanted = a_workspace(uid="u", instance_type=NC24, selector={}, **fields)
    snapshot = a_snapshot(wanted, environment=environment)
    for _ in range(2):
        snapshot = launched(after(snapshot, plan(snapshot, validate(snapshot), NOW)))
    return snapshot


def unreadable(snapshot: Snapshot, replicas: int | None) -> Snapshot:
    invalid = InvalidObject(ref=snapshot.workspaces[0].ref, message="spec.resorce: unknown field", replicas=replicas)
    return snapshot.model_copy(update={"workspaces": (), "invalid_workspaces": (invalid,)})


@pytest.mark.parametrize(
    ("replicas", "done"),
    [
        (None, {"create": [], "update": [], "delete": []}),
        (4, {"create": [], "update": [], "delete": []}),
        (9, {"create": [], "update": [], "delete": []}),
        (3, scaled(3, delete=["NodeClaim"])),
        (1, scaled(1, delete=["NodeClaim"] * 3)),
        (0, {"create": [], "update": [], "delete": ["Deployment", *["NodeClaim"] * 4]}),
    ],
)
def test_an_invalid_workspace_can_be_scaled_down_too(replicas: int | None, done: dict[str, list[str]]) -> None:
    snapshot = unreadable(cluster_of("nodeclaim", replicas=4), replicas)
    found = plan(snapshot, validate(snapshot), NOW)
    assert operations(found) == done
    assert [each.reason for each in found.verdicts] == [Reason.INVALID_SPEC]
    left = after(snapshot, found)
    assert plan(left, validate(left), NOW).empty, "it is done once"


def test_replicas_on_several_nodes_release_all_of_them() -> None:
    snapshot = unreadable(cluster_of("nodeclaim", replicas=3, per_replica=2), 1)
    found = plan(snapshot, validate(snapshot), NOW)
    assert operations(found) == scaled(1, update=["LeaderWorkerSet 1"], delete=["NodeClaim"] * 4)


@pytest.mark.parametrize(("replicas", "left"), [(1, 2), (2, 4), (3, 6), (9, 6)])
def test_it_can_be_scaled_down_before_its_workload_exists(replicas: int, left: int) -> None:
    environment = an_environment(nap=True, provisioner="nodeclaim")
    wanted = a_workspace(uid="u", instance_type=NC24, selector={}, replicas=3, per_replica=2)
    seen = a_snapshot(wanted, environment=environment)
    seen = after(seen, plan(seen, validate(seen), NOW))
    assert (len(seen.node_claims), seen.workloads) == (6, ())
    invalid = InvalidObject(ref=wanted.ref, message="x", replicas=replicas, per_replica_node_count=2)
    broken = seen.model_copy(update={"workspaces": (), "invalid_workspaces": (invalid,)})
    shrunk = after(broken, plan(broken, validate(broken), NOW))
    assert len(shrunk.node_claims) == left
    assert plan(shrunk, validate(shrunk), NOW).empty
    refused = a_workspace(uid="u", instance_type="unknown", selector={}, replicas=replicas)
    status = refused.status.model_copy(update={"per_replica_node_count": 2})
    broken = seen.model_copy(update={"workspaces": (refused.model_copy(update={"status": status}),)})
    assert len(after(broken, plan(broken, validate(broken), NOW)).node_claims) == left


def test_its_static_node_pool_is_scaled_down_too() -> None:
    environment = "static-nodepool"
    wanted = cluster_of(environment, replicas=4)
    running = a_running(a_workspace(uid="u", replicas=4))
    snapshot = unreadable(wanted.model_copy(update={"workloads": (running,)}), 2)
    found = plan(snapshot, validate(snapshot), NOW)
    assert operations(found) == scaled(2, update=["Deployment 2", "NodePool 2"])
    left = after(snapshot, found)
    assert plan(left, validate(left), NOW).empty


def test_a_corrected_workspace_is_declared_completely_again() -> None:
    running = cluster_of("nodeclaim", replicas=4)
    left = unreadable(running, 2)
    left = after(left, plan(left, validate(left), NOW))
    [scaled_down] = left.workloads
    mended = left.model_copy(
        update={
            "workspaces": running.workspaces,
            "invalid_workspaces": (),
            "workloads": (scaled_down.model_copy(update={"annotations": {SPEC_HASH: "replicas-2"}}),),
        }
    )
    assert operations(plan(mended, validate(mended), NOW)) == scaled(4, create=["NodeClaim", "NodeClaim"])


def test_an_autoscaler_decides_where_it_sets_the_replicas() -> None:
    snapshot = unreadable(cluster_of("nodeclaim", replicas=4), 2)
    [workload] = snapshot.workloads
    manifest = {
        "apiVersion": "apps/v1",
        "kind": workload.kind,
        "metadata": {"name": workload.name, "namespace": workload.namespace},
    }
    followed = snapshot.model_copy(update={"autoscalers": (an_autoscaler(manifest),)})
    assert plan(followed, validate(followed), NOW).empty


def test_a_typo_in_the_replicas_is_limited() -> None:
    one = a_workspace(instance_type=NC24, replicas=2_000)
    [verdict] = validate(a_snapshot(one, nap=True))
    assert (
        verdict.reason is Reason.LIMIT_EXCEEDED
        and "limits.workspaceNodes of the Environment is 1000" in verdict.message
    )
    [verdict] = validate(a_snapshot(a_workspace(instance_type=NC24, count=2_000, inference=False), nap=True))
    assert "2000 nodes are needed (resource.count)" in verdict.message
    many = [a_workspace(f"ws-{number}", instance_type=NC24, replicas=900) for number in range(6)]
    verdicts = validate(a_snapshot(*many, nap=True))
    assert sum(each.accepted for each in verdicts) == 5
    assert "limits.nodes of the Environment is 5000" in verdicts[-1].message
