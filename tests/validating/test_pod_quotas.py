"""ResourceQuotas that would refuse the pods of a Workspace, and not its workload: nothing is bought for them.

How they count is from pkg/quota/v1/evaluator/core/pods.go of Kubernetes.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.model import Plan, Reason, Snapshot, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Node, ResourceQuota, Workload
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_claim, a_node, a_snapshot, a_template, a_workspace, an_environment
from tests.planning.test_moving_back import on_second
from tests.planning.test_rollouts import changed, rolling, serving

NOW = datetime(2026, 1, 3, tzinfo=UTC)
DEVICE = "example.com/nic"


def a_quota(hard: dict[str, str], name: str = "pods", used: dict[str, str] | None = None, **spec: Any) -> ResourceQuota:
    manifest = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used or {}},
    }
    return ResourceQuota.read(manifest)


def wanting(replicas: int = 2, name: str = "ws", spec: dict[str, Any] | None = None, **container: Any) -> Workspace:
    template = a_template(**container)
    template["spec"] |= spec or {}
    return a_workspace(name, uid=name, instance_type=NC24, replicas=replicas, template=template)


def asking(part: str = "requests", **amounts: str) -> dict[str, Any]:
    return {"resources": {part: {name.replace("_", "-"): amount for name, amount in amounts.items()}}}


def planned(*objects: Any, nap: bool = True) -> tuple[dict[str, Verdict], Plan]:
    snapshot = a_snapshot(*objects, environment=an_environment(nap=nap))
    verdicts = validate(snapshot)
    return {each.workspace.name: each for each in verdicts}, plan(snapshot, verdicts, NOW)


def refused(*objects: Any) -> Verdict | None:
    """The verdict of the one Workspace, if it is refused: then nothing is bought."""
    verdicts, found = planned(*objects)
    assert bool(found.creations) is verdicts["ws"].accepted
    return None if verdicts["ws"].accepted else verdicts["ws"]


TWICE: list[tuple[dict[str, Any], str, str, str]] = [
    ({}, "pods", "2", "1"),
    ({}, "count/pods", "2", "1"),
    (asking(cpu="3500m"), "requests.cpu", "7", "6999m"),
    (asking(cpu="3500m"), "cpu", "7", "6"),
    (asking(memory="40Gi"), "requests.memory", "80Gi", "79Gi"),
    (asking(memory="40Gi"), "memory", "80Gi", "80G"),
    (asking(ephemeral_storage="1G"), "requests.ephemeral-storage", "2G", "1G"),
    (asking("limits", cpu="3"), "limits.cpu", "6", "5"),
    (asking("limits", memory="3Gi"), "limits.memory", "6Gi", "5Gi"),
    # A limit without a request is one.
    (asking("limits", cpu="3"), "requests.cpu", "6", "5"),
    ({"resources": {"limits": {DEVICE: "4"}}}, f"requests.{DEVICE}", "8", "7"),
    ({"resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}}, "requests.hugepages-2Mi", "8Mi", "7Mi"),
]


@pytest.mark.parametrize(("container", "key", "enough", "short"), TWICE)
def test_pods_beyond_a_quota_are_refused_before_a_node_is_bought(
    container: dict[str, Any], key: str, enough: str, short: str
) -> None:
    workspace = wanting(2, **container)
    assert refused(workspace, a_quota({key: enough})) is None
    assert refused(workspace, a_quota({key: enough}, used={key: "0"})) is None
    for quota in (a_quota({key: short}), a_quota({key: enough}, used={key: "1m"})):
        verdict = refused(workspace, quota)
        assert verdict is not None
        assert verdict.reason is Reason.LIMIT_EXCEEDED
        assert f"ResourceQuota pods of namespace 'default' allows {quota.hard[key]} of {key}" in verdict.message


def test_containers_count_as_kubernetes_counts_them() -> None:
    """The containers and sidecars together, or an init container with the sidecars before it if that is more."""
    sidecar = {"name": "log", "image": "i", "restartPolicy": "Always", **asking(cpu="1")}
    spec = {"initContainers": [sidecar, {"name": "load", "image": "i", **asking(cpu="5")}]}
    assert refused(wanting(1, spec=spec, **asking(cpu="3")), a_quota({"requests.cpu": "6"})) is None
    assert refused(wanting(1, spec=spec, **asking(cpu="3")), a_quota({"requests.cpu": "5"})) is not None
    of_pod = {"resources": {"requests": {"cpu": "2"}}}
    assert refused(wanting(1, spec=of_pod), a_quota({"requests.cpu": "2"})) is None
    assert refused(wanting(1, spec=of_pod), a_quota({"requests.cpu": "1"})) is not None


@pytest.mark.parametrize(
    ("container", "key", "field"),
    [
        ({}, "requests.cpu", "requests.cpu"),
        ({}, "memory", "requests.memory"),
        (asking(cpu="1"), "limits.cpu", "limits.cpu"),
        ({}, "requests.ephemeral-storage", ""),
        ({}, f"requests.{DEVICE}", ""),
    ],
)
def test_a_quota_of_cpu_or_memory_refuses_containers_that_do_not_say_it(
    container: dict[str, Any], key: str, field: str
) -> None:
    verdict = refused(wanting(1, **container), a_quota({key: "1Ti"}))
    assert (verdict is None) is (field == "")
    if verdict is not None:
        assert verdict.reason is Reason.NOT_ALLOWED
        assert f"set inference.template.spec.containers[0].resources.{field}" in verdict.message


def a_term(operator: str, *values: str, scope: str = "PriorityClass") -> dict[str, Any]:
    term = {"scopeName": scope, "operator": operator} | ({"values": list(values)} if values else {})
    return {"scopeSelector": {"matchExpressions": [term]}}


HIGH = {"priorityClassName": "high"}
CPU = asking(cpu="1")


@pytest.mark.parametrize(
    ("scopes", "spec", "container", "counts"),
    [
        ({"scopes": ["NotTerminating"]}, {}, {}, True),
        ({"scopes": ["Terminating"]}, {}, {}, False),
        ({"scopes": ["BestEffort"]}, {}, {}, True),
        ({"scopes": ["BestEffort"]}, {}, CPU, False),
        ({"scopes": ["BestEffort"]}, {}, asking(cpu="0"), True),
        ({"scopes": ["NotBestEffort"]}, {}, CPU, True),
        ({"scopes": ["NotBestEffort"]}, {}, {}, False),
        ({"scopes": ["NotBestEffort", "Terminating"]}, {}, CPU, False),
        # Plimsoll keeps pods of Workspaces apart from those of all namespaces.
        ({"scopes": ["CrossNamespacePodAffinity"]}, {}, {}, True),
        (a_term("In", "high"), HIGH, {}, True),
        (a_term("In", "low"), HIGH, {}, False),
        (a_term("NotIn", "low"), HIGH, {}, True),
        (a_term("NotIn", "high"), HIGH, {}, False),
        (a_term("Exists"), HIGH, {}, True),
        (a_term("DoesNotExist"), HIGH, {}, False),
        # Only the cluster knows its default PriorityClass.
        (a_term("Exists"), {}, {}, False),
        (a_term("DoesNotExist"), {}, {}, False),
        ({"scopes": ["OfTheFuture"]}, {}, {}, False),
    ],
)
def test_only_pods_in_the_scopes_of_a_quota_count(
    scopes: dict[str, Any], spec: dict[str, Any], container: dict[str, Any], counts: bool
) -> None:
    assert (refused(wanting(1, spec=spec, **container), a_quota({"pods": "0"}, **scopes)) is not None) is counts


def test_gpus_of_a_quota_with_scopes_count() -> None:
    quota = {"requests.nvidia.com/gpu": "1"}
    assert refused(wanting(1, spec=HIGH), a_quota(quota, **a_term("In", "high"))) is None
    assert refused(wanting(2, spec=HIGH), a_quota(quota, **a_term("In", "high"))) is not None
    assert refused(wanting(2, spec=HIGH), a_quota(quota, **a_term("In", "low"))) is None


def test_workspaces_share_a_quota_the_oldest_first() -> None:
    both = (wanting(1, "one"), wanting(2, "two"))
    verdicts, _ = planned(*both, a_quota({"pods": "2"}))
    assert [verdicts[name].accepted for name in ("one", "two")] == [True, False]
    assert "1 are in use" in verdicts["two"].message
    verdicts, _ = planned(*both, a_quota({"pods": "3"}))
    assert all(each.accepted for each in verdicts.values())


def a_workload(name: str, replicas: int, pods: int) -> Workload:
    labels = {"plimsoll.dev/workspace": name, "plimsoll.dev/workspace-namespace": "default"}
    metadata = {"name": name, "namespace": "default", "labels": labels, "uid": name}
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    return Workload.read({**template, "spec": {"replicas": replicas}, "status": {"replicas": pods}})


def test_nodes_that_are_there_or_come_count_with_their_pods() -> None:
    """The pods of `older` do not exist yet: they are created once its nodes are Ready."""
    older, claims = wanting(2, "older"), [a_claim(f"c{number}", ("default", "older")) for number in (1, 2)]
    verdicts, found = planned(older, wanting(1), *claims, a_quota({"pods": "2"}))
    assert [verdicts[name].accepted for name in ("older", "ws")] == [True, False]
    verdicts, found = planned(older, wanting(1), *claims, a_quota({"pods": "3"}))
    assert verdicts["ws"].accepted
    assert len(found.creations) == 1


@pytest.mark.parametrize(("replicas", "accepted"), [(1, True), (2, True), (3, False)])
def test_its_own_pods_count_once(replicas: int, accepted: bool) -> None:
    claim = a_claim("c1", ("default", "ws"), uid="ws", ready=True, node="n1")
    quota = a_quota({"pods": "2"}, used={"pods": "1"})
    verdicts, found = planned(wanting(replicas), claim, a_workload("ws", 1, 1), quota)
    assert verdicts["ws"].accepted is accepted, verdicts["ws"].message
    assert sum(each.key.kind == "NodeClaim" for each in found.creations) == (replicas == 2)


def test_what_runs_stays_accepted_when_the_quota_is_lowered() -> None:
    claim = a_claim("c1", ("default", "ws"), uid="ws", ready=True, node="n1")
    verdicts, found = planned(wanting(1), claim, a_workload("ws", 1, 1), a_quota({"pods": "0"}, used={"pods": "1"}))
    assert verdicts["ws"].accepted
    assert not found.deletions


def existing(count: int) -> list[Node]:
    return [a_node(f"n{number}") for number in range(count)]


def test_on_existing_nodes_pods_that_would_be_refused_are_told_too() -> None:
    workspace = a_workspace(replicas=2, uid="ws", template=a_template(), gpu_memory_gib=10)
    for hard, accepted in (("1", False), ("2", True)):
        verdicts, _ = planned(workspace, *existing(2), a_quota({"pods": hard}), nap=False)
        assert verdicts["ws"].accepted is accepted, verdicts["ws"].message
    running = a_quota({"pods": "1"}, used={"pods": "2"})
    verdicts, _ = planned(workspace, *existing(2), a_workload("ws", 2, 2), running, nap=False)
    assert verdicts["ws"].accepted


@pytest.mark.parametrize(("most", "temporary"), [("1", 0), ("2", 1)])
def test_no_temporary_node_is_bought_for_a_pod_that_a_quota_refuses(most: str, temporary: int) -> None:
    snapshot = rolling(changed(serving()), pods=1, updated=0)
    quota = a_quota({"pods": most}, used={"pods": "1"})
    snapshot = snapshot.model_copy(update={"resource_quotas": (quota,)})
    found = plan(snapshot, validate(snapshot), NOW)
    assert sum(each.key.kind == "NodeClaim" for each in found.creations) == temporary
    assert any("LimitExceeded: 0 of 1 missing nodes" in each for each in found.warnings) is not bool(temporary)
    assert not found.deletions
    exists = rolling(snapshot, pods=2, updated=1).model_copy(
        update={"resource_quotas": (a_quota({"pods": "2"}, used={"pods": "2"}),)}
    )
    assert plan(exists, validate(exists), NOW).creations, "a temporary pod that exists has its node"


@pytest.mark.parametrize(("most", "moves"), [("3", False), ("4", True)])
def test_no_replica_moves_back_where_a_quota_refuses_the_pods_of_a_rollout(most: str, moves: bool) -> None:
    run = on_second(2)
    run.available = ("Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5")
    quota = a_quota({"pods": most}, used={"pods": "2"})
    run.snapshot = run.snapshot.model_copy(update={"resource_quotas": (quota,)})
    before = len(run.bought())
    while len(run.bought()) == before and run.second < 1500:
        run.step()
    assert (len(run.bought()) > before) is moves
    assert any("do not move to" in each for each in run.plans[-1].warnings) is not moves


def test_a_preset_counts_with_the_settings_of_its_pods() -> None:
    settings = {"presetPods": {"resources": {"requests": {"cpu": "8", "memory": "30Gi"}}}}
    workspace = a_workspace(preset="phi-4-mini-instruct", instance_type=NC24, replicas=2, uid="ws")
    for hard, accepted in (("16", True), ("15", False)):
        environment = an_environment(nap=True, **settings)
        [verdict] = validate(a_snapshot(workspace, a_quota({"requests.cpu": hard}), environment=environment))
        assert verdict.accepted is accepted, verdict.message
    [verdict] = validate(a_snapshot(workspace, a_quota({"limits.cpu": "64"}), environment=environment))
    assert verdict.reason is Reason.NOT_ALLOWED
    assert "the preset's pods: spec.containers[0].resources.limits.cpu" in verdict.message


def manifests(snapshot: Snapshot, hard: dict[str, str]) -> str:
    [workspace] = snapshot.workspaces
    api = "plimsoll.dev/v1alpha1"
    objects = [
        {
            "apiVersion": api,
            "kind": "Environment",
            "metadata": {"name": "e"},
            "spec": {"nodeAutoProvisioning": "enabled"},
        },
        {
            "apiVersion": api,
            "kind": "Workspace",
            "metadata": {"name": "ws", "namespace": "default"},
            "spec": workspace.spec.manifest(),
        },
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "pods", "namespace": "default"},
            "spec": {"hard": hard},
        },
    ]
    return yaml.safe_dump_all(objects)


def test_files_of_a_cluster_that_was_not_counted_yet_are_judged_by_what_the_pods_need(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    for hard, told in (({"pods": "1"}, "allows 1 of pods"), ({"pods": "2", "services": "0"}, "NodeClaim")):
        file.write_text(manifests(a_snapshot(wanting(2), environment=an_environment(nap=True)), hard))
        result = CliRunner().invoke(app, ["plan", "-f", str(file)])
        assert told in result.output, result.output
