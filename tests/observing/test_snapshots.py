"""The stores form one Snapshot. An invalid object does not hide any other."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.errors import InvalidObjectError, PlimsollError
from plimsoll.explaining import Step, plan_demand, why_node
from plimsoll.labels import DO_NOT_DISRUPT, WORKSPACE
from plimsoll.model import NO_NODES_FOR, Reason, Refusal
from plimsoll.observe.cluster import CLAIM_EVENTS, Store, Stores

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def put(store: Store[Any], name: str, namespace: str = "", **fields: Any) -> None:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **fields.pop("metadata", {})}
    key, entry = store.read({"metadata": metadata, **fields})
    store.put(key, entry)


@pytest.fixture
def stores() -> Stores:
    stores = Stores()
    put(stores.environments, "production", spec={"nodeAutoProvisioning": "enabled"})
    return stores


def test_the_environment_is_that_of_the_cluster(stores: Stores) -> None:
    snapshot = stores.snapshot()
    assert snapshot.environment.name == "production"
    assert snapshot.environment.spec.auto_provisioning
    assert snapshot.warnings == ()


def test_without_an_environment_the_defaults_are_used_and_said() -> None:
    snapshot = Stores().snapshot()
    assert snapshot.environment.name == "default"
    assert snapshot.warnings == ("the cluster has no Environment: the defaults are used (no auto-provisioning)",)


def test_two_environments_are_an_error_that_names_both(stores: Stores) -> None:
    put(stores.environments, "another", spec={"wrong": 1})
    with pytest.raises(PlimsollError, match="2 Environments: another, production"):
        stores.snapshot()


def test_an_invalid_environment_is_an_error_instead_of_the_defaults() -> None:
    stores = Stores()
    put(stores.environments, "production", spec={"nodeAutoProvisioning": "sometimes"})
    with pytest.raises(InvalidObjectError, match=r"Environment production: spec.nodeAutoProvisioning"):
        stores.snapshot()


def test_an_invalid_workspace_is_kept_by_name(stores: Stores) -> None:
    put(stores.workspaces, "good", "team", spec={"inference": {"preset": {"name": "phi-4"}}})
    put(stores.workspaces, "bad", "team", spec={"inference": {"replicas": -1}})
    snapshot = stores.snapshot()
    assert [each.name for each in snapshot.workspaces] == ["good"]
    (invalid,) = snapshot.invalid_workspaces
    assert (invalid.ref.namespace, invalid.ref.name, invalid.ref.uid) == ("team", "bad", "uid-bad")
    assert "spec.inference.replicas" in invalid.message


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        ({"resorce": {}, "inference": {"replicas": 2}}, 2),
        ({"resorce": {}, "inference": {"replicas": 0}}, 0),
        ({"resorce": {}, "inference": {}}, 1),
        ({"resorce": {}, "inference": {"replicas": None}}, None),
        ({"resorce": {}}, None),
        ({"inference": {"replicas": -1}}, None),
        ({"inference": {"replicas": "some"}}, None),
        ({"resorce": {}, "inference": {"replicas": True}}, None),
        ({"inference": [2]}, None),
        ("none", None),
    ],
)
def test_the_replicas_of_an_invalid_workspace_are_kept(stores: Stores, spec: Any, replicas: Any) -> None:
    put(stores.workspaces, "bad", "team", spec=spec)
    assert [each.replicas for each in stores.snapshot().invalid_workspaces] == [replicas]


def test_an_invalid_status_hides_no_workspace(stores: Stores) -> None:
    put(stores.workspaces, "odd", "team", spec={}, status={"targetNodeCount": "many"})
    (workspace,) = stores.snapshot().workspaces
    assert workspace.status.target_node_count is None


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"spec": {"taints": [{"effect": "Sometimes"}]}}, id="a value"),
        pytest.param({"metadata": {"annotations": ["x"]}}, id="a type"),
        pytest.param({"spec": "x", "status": {"conditions": 5}}, id="many types"),
    ],
)
def test_an_invalid_object_is_named_and_hides_no_other(stores: Stores, fields: dict[str, Any]) -> None:
    put(stores.nodes, "good")
    put(stores.nodes, "bad", **fields)
    snapshot = stores.snapshot()
    assert [node.name for node in snapshot.nodes] == ["good"]
    (warning,) = snapshot.warnings
    assert warning.startswith("skipped, cannot be read: Node bad: ")


@pytest.mark.parametrize(
    "spec", [{"containers": "x"}, {"containers": [5]}, {"containers": [{"resources": {"limits": 5}}]}, "x"]
)
def test_an_invalid_pod_is_left_out(stores: Stores, spec: Any) -> None:
    put(stores.pods, "odd", "team", metadata={"labels": {"plimsoll.dev/workspace": "w"}}, spec=spec)
    put(stores.pods, "good", "team", metadata={"annotations": {"gpu-fraction": "0.5"}}, spec={"containers": []})
    assert [pod.name for pod in stores.snapshot().pods if pod.name != "odd"] == ["good"]


def test_workloads_of_all_kinds_are_in_one_list(stores: Stores) -> None:
    put(stores.deployments, "d", "team", spec={"replicas": 2})
    put(stores.stateful_sets, "s", "team")
    assert [(each.kind, each.name, each.replicas) for each in stores.snapshot().workloads] == [
        ("Deployment", "d", 2),
        ("StatefulSet", "s", 1),
    ]


def test_unchanged_values_are_the_same_objects(stores: Stores) -> None:
    put(stores.nodes, "n")
    first = stores.snapshot().nodes
    assert stores.snapshot().nodes is first
    put(stores.nodes, "m")
    assert len(stores.snapshot().nodes) == 2


def test_claims_created_and_deleted_between_two_snapshots_are_kept(stores: Stores) -> None:
    put(stores.node_claims, "brief")
    stores.node_claims.put(("", "brief"), None)
    put(stores.deployments, "lost", "team")
    stores.deployments.replace({})  # a new list lacks it
    put(stores.node_claims, "after")
    snapshot = stores.snapshot()
    assert [claim.name for claim in snapshot.node_claims] == ["after"]
    assert snapshot.gone == {"uid-brief", "uid-lost"}
    assert [claim.name for claim in snapshot.gone_claims] == ["brief"], "only it tells what it was to be"


def test_an_object_that_a_list_shows_recreated_under_its_name_counts_as_gone(stores: Stores) -> None:
    put(stores.node_claims, "same", metadata={"uid": "first"})
    key, entry = stores.node_claims.read({"metadata": {"name": "same", "uid": "second"}})
    assert entry is not None
    assert stores.node_claims.replace({key: entry})
    snapshot = stores.snapshot()
    assert [claim.uid for claim in snapshot.node_claims] == ["second"]
    assert snapshot.gone == {"first"}
    assert [claim.uid for claim in snapshot.gone_claims] == ["first"]


def test_events_about_node_claims_are_read_where_only_cluster_scoped_objects_have_theirs() -> None:
    assert CLAIM_EVENTS.path == "/api/v1/namespaces/default/events", "tenants write Events in their own namespaces"


@pytest.mark.parametrize(
    ("claim", "uid", "counts"),
    [
        ("alive", "uid-alive", True),
        ("alive", "uid-forged", False),
        ("alive", "", False),
        ("gone", "uid-gone", True),
        ("gone", "uid-forged", False),
        ("unobserved", "uid-unobserved", True),
    ],
)
def test_an_event_about_a_known_node_claim_names_its_uid(stores: Stores, claim: str, uid: str, counts: bool) -> None:
    put(stores.node_claims, "alive")
    put(stores.node_claims, "gone")
    stores.node_claims.put(("", "gone"), None)
    put(stores.claim_events, "event", "default", involvedObject={"kind": "NodeClaim", "name": claim, "uid": uid})
    assert bool(stores.snapshot().claim_events) is counts


def test_of_a_node_the_annotation_that_keeps_it_is_read_and_no_other() -> None:
    stores = Stores()
    notes = {DO_NOT_DISRUPT: "true", "agent.example.com/report": "kilobytes"}
    put(stores.nodes, "n", metadata={"annotations": notes})
    put(stores.nodes, "plain", metadata={"annotations": {"agent.example.com/report": "kilobytes"}})
    snapshot = stores.snapshot()
    assert {node.name: node.annotations for node in snapshot.nodes} == {"n": {DO_NOT_DISRUPT: "true"}, "plain": {}}
    (end,) = [link for link in why_node(plan_demand(snapshot, NOW), "n").links if link.step is Step.END]
    assert DO_NOT_DISRUPT in end.text


def test_node_claims_that_are_deleted_say_which_pods_and_budgets_their_nodes_wait_for(stores: Stores) -> None:
    status = {"nodeName": "n", "conditions": [{"type": "Drained", "status": "Unknown", "reason": "Draining"}]}
    leaving = {"deletionTimestamp": "2026-01-01T01:00:00Z"}
    put(stores.node_claims, "claim", metadata=leaving, spec={}, status=status)
    server = {"name": "server", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    of_pod = {"spec": {"nodeName": "n", "containers": [server]}, "status": {"phase": "Running"}}
    put(stores.pods, "p", "team", metadata={"labels": {"app": "chat"}}, **of_pod)
    put(stores.pods, "kept", "team", metadata={"annotations": {DO_NOT_DISRUPT: "true"}}, **of_pod)
    selector = {"matchLabels": {"app": "chat"}}
    put(stores.disruption_budgets, "b", "team", spec={"selector": selector}, status={"disruptionsAllowed": 0})
    [claim] = stores.snapshot().node_claims
    assert claim.blocking == (
        f"pod team/kept (annotation {DO_NOT_DISRUPT})",
        "pod team/p (PodDisruptionBudget team/b allows no disruption)",
    )
    assert all(each in claim.stays for each in claim.blocking)


WAITING = {"name": "server", "image": "registry/vllm:1", "ready": False, "restartCount": 0}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {**WAITING, "state": {"waiting": {"reason": reason, "message": message}}, **more}


ENDED = {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "restartCount": 3}


@pytest.mark.parametrize(
    ("containers", "told"),
    [
        ([waiting("ContainerCreating")], ""),
        ([waiting("PodInitializing")], ""),
        ([waiting("ErrImagePull", "rpc error")], "container server: image registry/vllm:1 cannot be pulled"),
        ([waiting("ImagePullBackOff", "Back-off")], "container server: image registry/vllm:1 cannot be pulled"),
        (
            [waiting("CreateContainerConfigError", 'secret "token"\nnot found')],
            'container server: CreateContainerConfigError (secret "token" not found)',
        ),
        (
            [waiting("CrashLoopBackOff", "back-off 5m", **ENDED)],
            "container server ended with exit code 137, OOMKilled, and is started again",
        ),
        (
            [{**WAITING, "state": {"running": {}}, **ENDED}],
            "container server ended with exit code 137, OOMKilled, and is started again",
        ),
        ([{**WAITING, "ready": True, "state": {"running": {}}, **ENDED}], ""),
        (["", {"name": "x"}, {"state": 1}], ""),
        ("none", ""),
    ],
)
def test_why_a_container_of_a_workspace_does_not_run(stores: Stores, containers: Any, told: str) -> None:
    status = {"phase": "Pending", "containerStatuses": containers}
    put(stores.pods, "p", "team", metadata={"labels": {WORKSPACE: "ws"}}, spec={"containers": []}, status=status)
    gpu = {"name": "server", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    put(stores.pods, "other", "team", spec={"containers": [gpu]}, status=status)
    assert {pod.name: pod.halted for pod in stores.snapshot().pods} == {"p": told, "other": ""}


def test_an_init_container_comes_first(stores: Stores) -> None:
    status = {"initContainerStatuses": [waiting("Failed") | {"name": "first"}], "containerStatuses": [waiting("x")]}
    put(stores.pods, "p", "team", metadata={"labels": {WORKSPACE: "ws"}}, spec={"containers": []}, status=status)
    [pod] = stores.snapshot().pods
    assert pod.halted == "container first: Failed"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, Refusal(Reason.INVALID_SPEC, f"{NO_NODES_FOR} Deployment team/w: no such field")),
        ({"reason": "NotAllowed"}, Refusal(Reason.NOT_ALLOWED, f"{NO_NODES_FOR} Deployment team/w: no such field")),
        ({"observedGeneration": 1}, None),
        ({"status": "True"}, None),
        ({"message": "resource.instanceType is required"}, None),
    ],
)
def test_a_refusal_by_the_apiserver_is_read_from_the_status(
    stores: Stores, fields: dict[str, Any], told: Refusal | None
) -> None:
    """Of the generation that is there; commands send no dry runs themselves."""
    said = {"type": "ResourceReady", "status": "False", "reason": "InvalidSpec", "observedGeneration": 2}
    said |= {"message": f"{NO_NODES_FOR} Deployment team/w: no such field", **fields}
    put(stores.workspaces, "w", "team", metadata={"generation": 2}, spec={}, status={"conditions": [said]})
    assert stores.snapshot().refused_workloads == ({} if told is None else {"uid-w": told})
