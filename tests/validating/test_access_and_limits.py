"""What an environment allows its namespaces, and its limits."""

import re
from typing import Any

import pytest

from plimsoll import labels
from plimsoll.model import Reason
from plimsoll.model.api import Workspace
from plimsoll.plan import validate
from tests.builders import (
    NC24,
    a_claim,
    a_node,
    a_node_pool,
    a_pod,
    a_snapshot,
    a_template,
    a_workload,
    a_workspace,
    an_environment,
)

ND96 = "Standard_ND96isr_H100_v5"
"""8 GPUs."""


def reasons(*objects: Any, **environment: Any) -> list[Reason]:
    """The reasons of the verdicts, by name of the Workspace."""
    return [each.reason for each in validate(a_snapshot(*objects, environment=an_environment(**environment)))]


def only(**allowed: Any) -> dict[str, Any]:
    return {"access": [{"namespaces": ["default"], **allowed}]}


def test_a_namespace_that_no_entry_names_may_use_nothing() -> None:
    assert reasons(a_workspace(namespace="other"), a_node(), **only()) == [Reason.NOT_ALLOWED]
    assert reasons(a_workspace(namespace="other"), a_node(), access=[{"namespaces": ["*"]}]) == [Reason.ACCEPTED]


@pytest.mark.parametrize(("queues", "reason"), [(["team"], Reason.ACCEPTED), ([], Reason.NOT_ALLOWED)])
def test_queues(queues: list[str], reason: Reason) -> None:
    assert reasons(a_workspace(queue="team"), a_node(), **only(queues=queues)) == [reason]


@pytest.mark.parametrize(
    ("queue", "template_labels", "reason"),
    [
        (None, {"kai.scheduler/queue": "team"}, Reason.ACCEPTED),
        (None, {"kai.scheduler/queue": "other"}, Reason.NOT_ALLOWED),
        (None, {"project": "other"}, Reason.NOT_ALLOWED),
        (None, {"project": "team", "kai.scheduler/node-pool": "a"}, Reason.NOT_ALLOWED),
        (None, {"kai.scheduler/queue": "team", "project": "other"}, Reason.ACCEPTED),
        ("team", {"kai.scheduler/queue": "other"}, Reason.ACCEPTED),
    ],
)
def test_queues_by_a_label_of_the_template(queue: str | None, template_labels: dict[str, str], reason: Reason) -> None:
    template = {**a_template(), "metadata": {"labels": template_labels}}
    assert reasons(a_workspace(queue=queue, template=template), a_node(), **only(queues=["team"])) == [reason]


@pytest.mark.parametrize(("types", "reason"), [([NC24.lower()], Reason.ACCEPTED), ([ND96], Reason.NOT_ALLOWED)])
def test_instance_types(types: list[str], reason: Reason) -> None:
    assert reasons(a_workspace(instance_type=NC24), nap=True, **only(instanceTypes=types)) == [reason]


@pytest.mark.parametrize(("pools", "reason"), [(["mine"], Reason.ACCEPTED), (["other"], Reason.NOT_ALLOWED)])
def test_node_pools_of_existing_nodes(pools: list[str], reason: Reason) -> None:
    node = a_node(more_labels={"karpenter.sh/nodepool": "mine"})
    assert reasons(a_workspace(), node, **only(nodePools=pools)) == [reason]


@pytest.mark.parametrize(
    ("node_type", "types", "reason"),
    [
        (NC24, [NC24.lower()], Reason.ACCEPTED),
        ("Standard_ND96asr_v4", ["standard_nd96asr_a100_v4"], Reason.ACCEPTED),
        (NC24, [ND96], Reason.NOT_ALLOWED),
        (NC24, [], Reason.NOT_ALLOWED),
        (None, [NC24], Reason.NOT_ALLOWED),
    ],
)
def test_instance_types_of_existing_nodes(node_type: str | None, types: list[str], reason: Reason) -> None:
    assert reasons(a_workspace(), a_node(instance_type=node_type), **only(instanceTypes=types)) == [reason]


def test_without_a_selector_nodes_are_chosen_among_the_allowed_ones() -> None:
    nodes = [a_node("mine", instance_type=NC24), a_node("other", instance_type=ND96)]
    environment = an_environment(**only(instanceTypes=[NC24]))
    [verdict] = validate(a_snapshot(a_workspace(selector={}), *nodes, environment=environment))
    assert verdict.node_names == ("mine",)
    assert reasons(a_workspace(selector={}), nodes[1], **only(instanceTypes=[NC24])) == [Reason.NOT_ALLOWED]


@pytest.mark.parametrize(
    ("pools", "allowed", "reason"),
    [
        ([a_node_pool("mine", [NC24])], ["mine"], Reason.ACCEPTED),
        ([a_node_pool("mine")], ["mine"], Reason.ACCEPTED),
        ([a_node_pool("mine", [ND96]), a_node_pool("other", [NC24])], ["mine"], Reason.NOT_ALLOWED),
        ([], ["mine"], Reason.NOT_ALLOWED),
        ([a_node_pool("mine", [NC24])], [], Reason.NOT_ALLOWED),
    ],
)
def test_node_pools_of_provisioned_nodes(pools: list[Any], allowed: list[str], reason: Reason) -> None:
    assert reasons(a_workspace(instance_type=NC24), *pools, nap=True, **only(nodePools=allowed)) == [reason]


AWS = "karpenter.k8s.aws"
CPU_ONLY = [{"key": f"{AWS}/instance-category", "operator": "In", "values": ["c", "m", "r"]}]


def with_cpu_pool(*, instance_type: str = "p4d.24xlarge", **pool: Any) -> list[Any]:
    cpu = a_node_pool("default", group=AWS, requirements=CPU_ONLY, **pool)
    gpu = [{"key": f"{AWS}/instance-category", "operator": "In", "values": ["p"]}]
    return [a_workspace(instance_type=instance_type), cpu, a_node_pool("gpu", group=AWS, requirements=gpu)]


@pytest.mark.parametrize(("allowed", "reason"), [("default", Reason.NOT_ALLOWED), ("gpu", Reason.ACCEPTED)])
def test_a_node_pool_without_types_allows_those_with_the_labels_that_it_requires(allowed: str, reason: Reason) -> None:
    [verdict] = validate(a_snapshot(*with_cpu_pool(), environment=an_environment(True, **only(nodePools=[allowed]))))
    assert verdict.reason is reason
    assert reason is Reason.ACCEPTED or "NodePool gpu does" in verdict.message


def test_limits_of_a_node_pool_that_does_not_allow_the_type_do_not_count() -> None:
    assert reasons(*with_cpu_pool(limits={"nodes": 5}, used={"nodes": 5}), nap=True) == [Reason.ACCEPTED]


def test_a_node_pool_without_types_allows_none_of_another_cloud() -> None:
    pool = a_node_pool("mine", group=AWS)
    assert reasons(a_workspace(instance_type=NC24), pool, nap=True, **only(nodePools=["mine"])) == [Reason.NOT_ALLOWED]


def test_gpus_of_a_namespace_go_to_the_oldest() -> None:
    young = a_workspace("a", created="2026-01-02T00:00:00Z", gpu_memory_gib=1)
    old = a_workspace("b", created="2026-01-01T00:00:00Z", gpu_memory_gib=1)
    node = a_node(count=8)
    assert reasons(young, old, node, **only(gpus=8)) == [Reason.LIMIT_EXCEEDED, Reason.ACCEPTED]
    assert reasons(young, old, node, a_node("other", count=8), **only(gpus=16)) == [Reason.ACCEPTED] * 2


SOME = {"mode": "accelerator", "count": 2}


def running(workspace: Workspace, replicas: int, gpus: int = 1) -> list[Any]:
    """The Deployment and the pods of a Workspace on existing nodes."""
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": workspace.name,
            "namespace": "default",
            "labels": {labels.WORKSPACE: workspace.name, labels.WORKSPACE_NAMESPACE: "default"},
        },
        "spec": {"replicas": replicas},
    }
    pods = [
        a_pod(f"{workspace.name}-{at}", workspace, f"{workspace.name}-{at}", devices=gpus) for at in range(replicas)
    ]
    return [a_workload(deployment), *pods]


@pytest.mark.parametrize(("gpus", "reason"), [(4, Reason.LIMIT_EXCEEDED), (5, Reason.ACCEPTED)])
@pytest.mark.parametrize("restarting", [True, False])
def test_gpus_of_running_replicas_count_before_growth(gpus: int, reason: Reason, restarting: bool) -> None:
    old = a_workspace("a", replicas=3, created="2026-01-01T00:00:00Z")
    young = a_workspace("b", replicas=2, created="2026-01-02T00:00:00Z")
    objects = [*running(old, 1)[:1], *running(young, 2)[: 1 if restarting else 3]]
    nodes = [a_node(f"n-{at}", allocatable=1) for at in range(8)]
    assert reasons(old, young, *objects, *nodes, **only(gpus=gpus)) == [reason, Reason.ACCEPTED]


@pytest.mark.parametrize(("gpus", "reason"), [(5, Reason.LIMIT_EXCEEDED), (6, Reason.ACCEPTED)])
def test_gpus_of_refused_workspaces_that_run_count(gpus: int, reason: Reason) -> None:
    refused = a_workspace("refused", selector={"pool": "gone"}, replicas=2)
    found = reasons(a_workspace("a", replicas=2), refused, *running(refused, 2, 2), a_node(), **only(gpus=gpus))
    assert found == [reason, Reason.NO_MATCHING_NODES]


@pytest.mark.parametrize(("gpus", "reason"), [(5, Reason.LIMIT_EXCEEDED), (6, Reason.ACCEPTED)])
def test_replicas_that_share_nodes_count_by_their_nodes(gpus: int, reason: Reason) -> None:
    young = a_workspace("b", created="2026-01-02T00:00:00Z", partition=SOME, replicas=2)
    old = a_workspace("a", partition=SOME)
    nodes = [a_node(f"n-{at}", count=4, allocatable=4) for at in range(2)]
    assert reasons(old, young, *running(young, 2, 2), *nodes, **only(gpus=gpus + 2)) == [reason, Reason.ACCEPTED]


@pytest.mark.parametrize(
    ("limits", "gpus", "reason"),
    [
        ([{"nvidia.com/gpu": "2"}], 8, Reason.ACCEPTED),
        ([{"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}], 8, Reason.ACCEPTED),
        ([{}], 8, Reason.ACCEPTED),
        ([{}], 7, Reason.LIMIT_EXCEEDED),
        ([{"nvidia.com/gpu": "8"}], 8, Reason.INVALID_SPEC),
        ([{"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "1"}], 8, Reason.INVALID_SPEC),
        ([{"nvidia.com/mig-7g.80gb": "1"}], 8, Reason.INVALID_SPEC),
        ([{"nvidia.com/gpu": "2", "nvidia.com/gpu.shared": "8"}], 8, Reason.INVALID_SPEC),
        ([{"example.org/gpu": "8"}], 8, Reason.ACCEPTED),
    ],
)
def test_pods_of_a_partition_request_what_counts(limits: list[dict[str, str]], gpus: int, reason: Reason) -> None:
    containers = [{"name": f"c{at}", "resources": {"limits": each}} for at, each in enumerate(limits)]
    workspace = a_workspace(template={"spec": {"containers": containers}}, partition=SOME)
    assert reasons(workspace, a_node(count=8, allocatable=8), **only(gpus=gpus)) == [reason]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"nodes": 3}, Reason.ACCEPTED),
        ({"nodes": 2}, Reason.LIMIT_EXCEEDED),
        ({"gpus": 24}, Reason.ACCEPTED),
        ({"gpus": 23}, Reason.LIMIT_EXCEEDED),
        ({"nodes": 0}, Reason.LIMIT_EXCEEDED),
    ],
)
def test_limits_of_all_provisioned_capacity(limits: dict[str, int], reason: Reason) -> None:
    assert reasons(a_workspace(instance_type=ND96, replicas=3), nap=True, limits=limits) == [reason]


def test_running_capacity_counts_before_growth() -> None:
    old = a_workspace("a", instance_type=NC24, replicas=2, created="2026-01-01T00:00:00Z")
    young = a_workspace("b", instance_type=NC24, created="2026-01-02T00:00:00Z")
    claim = a_claim("running", young)
    assert reasons(old, young, claim, nap=True, limits={"nodes": 2}) == [Reason.LIMIT_EXCEEDED, Reason.ACCEPTED]


def test_gpus_of_nodes_being_deleted_count_for_their_namespace() -> None:
    gone = a_claim("gone", ("default", "former")).model_copy(update={"deletion_timestamp": "2026-01-01T00:00:00Z"})
    young = a_workspace("young", instance_type=NC24)
    assert reasons(young, gone, nap=True, **only(gpus=1)) == [Reason.LIMIT_EXCEEDED]
    assert reasons(young, gone, nap=True, **only(gpus=2)) == [Reason.ACCEPTED]


@pytest.mark.parametrize(("gpus", "reason"), [(1, Reason.LIMIT_EXCEEDED), (2, Reason.ACCEPTED)])
def test_gpus_of_existing_nodes_count_for_their_namespace(gpus: int, reason: Reason) -> None:
    workspace = a_workspace(instance_type=NC24, replicas=2)
    nodes = [a_node(f"ws-{at}", instance_type=NC24) for at in range(2)]
    assert reasons(workspace, *nodes, nap=True, **only(gpus=gpus)) == [reason]
    assert reasons(workspace, *nodes, *running(workspace, 2), nap=True, **only(gpus=1)) == [Reason.ACCEPTED]


def test_gpus_of_node_pools_count_before_their_claims_exist() -> None:
    old = a_workspace("old", instance_type=NC24, created="2026-01-01T00:00:00Z")
    young = a_workspace("young", instance_type=NC24, created="2026-01-02T00:00:00Z")
    pool = a_node_pool("own", [NC24]).model_copy(update={"labels": a_claim("c", young).labels, "replicas": 1})
    found = reasons(old, young, pool, nap=True, provisioner="static-nodepool", **only(gpus=1))
    assert found == [Reason.LIMIT_EXCEEDED, Reason.ACCEPTED]


def test_a_node_that_is_replaced_refuses_nothing() -> None:
    claims = [a_claim("a"), a_claim("b", deleting=True)]
    workspace = a_workspace(instance_type=NC24, replicas=2)
    assert reasons(workspace, *claims, nap=True, **only(gpus=2)) == [Reason.ACCEPTED]
    more = a_workspace(instance_type=NC24, replicas=3)
    assert reasons(more, *claims, nap=True, **only(gpus=2)) == [Reason.LIMIT_EXCEEDED]


def test_two_growing_workspaces_share_the_remaining_room() -> None:
    old = a_workspace("old", instance_type=NC24, replicas=2, created="2026-01-01T00:00:00Z")
    young = a_workspace("young", instance_type=NC24, replicas=2, created="2026-01-02T00:00:00Z")
    assert reasons(young, old, nap=True, limits={"nodes": 3}) == [Reason.ACCEPTED, Reason.LIMIT_EXCEEDED]


def test_a_limit_below_the_running_capacity_refuses_only_growth() -> None:
    claims = [a_claim(f"c-{number}") for number in range(4)]
    assert reasons(a_workspace(instance_type=NC24, replicas=3), *claims, nap=True, limits={"nodes": 1}) == [
        Reason.ACCEPTED
    ]


def test_existing_nodes_need_no_room_under_the_limit() -> None:
    node = a_node(instance_type=NC24)
    assert reasons(a_workspace(instance_type=NC24), node, nap=True, limits={"nodes": 0}) == [Reason.ACCEPTED]


def test_the_limit_is_named_with_its_figures() -> None:
    workspace = a_workspace(instance_type=NC24, replicas=3)
    [verdict] = validate(a_snapshot(workspace, environment=an_environment(nap=True, limits={"nodes": 2})))
    assert "limits.nodes" in verdict.message
    assert [int(each) for each in re.findall("[0-9]+", verdict.message)] == [2, 0, 3]


def test_limits_of_provisioning_do_not_apply_to_existing_nodes() -> None:
    assert reasons(a_workspace(), a_node(), limits={"nodes": 0, "gpus": 0}) == [Reason.ACCEPTED]
