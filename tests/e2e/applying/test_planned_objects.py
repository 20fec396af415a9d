"""Karpenter launches planned NodeClaims, and the scheduler places planned pods."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from plimsoll.kube import Connection
from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import Environment, Workspace
from plimsoll.observe.cluster import read_cluster
from plimsoll.plan import plan, validate
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.builders import NC24, a_workspace, an_environment
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e

KWOK = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
ENVIRONMENT = an_environment(nap=True, nodeClaims={"nodeClassRef": KWOK})
ZONES = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a", "zone-b"]}]
KINDS = ("Node", "NodeClaim", "NodePool", "Deployment", "StatefulSet", "Service")


@pytest.fixture
def connection(nap_sandbox: Sandbox) -> Iterator[Connection]:
    with closing(Connection.open(nap_sandbox.kubeconfig)) as connection:
        yield connection


def seen(connection: Connection, environment: Environment, workspaces: tuple[Workspace, ...]) -> Snapshot:
    cluster = read_cluster(connection, only=KINDS)
    return cluster.model_copy(update={"environment": environment, "workspaces": workspaces})


def of(snapshot: Snapshot) -> Plan:
    return plan(snapshot, validate(snapshot), datetime.now(UTC))


def carry_out(found: Plan, cluster: Kube) -> None:
    for change in (*found.creations, *found.updates):
        cluster.apply(change.manifest, manager="plimsoll")
    for deletion in found.deletions:
        key = deletion.key
        cluster.delete(key.api_version, key.kind, key.name, key.namespace)


@pytest.mark.parametrize(
    "wanted",
    [
        a_workspace("azure", instance_type=NC24, replicas=2, selector={"team": "red"}, preset="phi-4-mini-instruct"),
        a_workspace("aws", instance_type="p4d.24xlarge", selector={}, expressions=ZONES, preset="phi-4"),
    ],
    ids=lambda workspace: workspace.name,
)
def test_claims_are_launched_and_each_node_gets_one_pod(
    wanted: Workspace, connection: Connection, nap_sandbox: Sandbox, kube: Callable[..., Kube]
) -> None:
    cluster = kube(nap_sandbox)

    def now(*workspaces: Workspace) -> Snapshot:
        return seen(connection, ENVIRONMENT, workspaces)

    found = of(now(wanted))
    target = found.verdicts[0].target_node_count
    assert [each.key.kind for each in found.creations] == ["NodeClaim"] * (target or 0)
    carry_out(found, cluster)

    def with_workload() -> Plan | None:
        found = of(now(wanted))
        return None if found.empty else found

    placed = await_condition(with_workload, 120, "the nodes of the claims")
    assert sorted(each.key.kind for each in placed.creations) == ["Deployment", "Service"]
    carry_out(placed, cluster)

    def running() -> bool:
        [workload] = [each for each in now(wanted).workloads if each.kind == "Deployment" and each.name == wanted.name]
        return workload.ready_replicas == target

    await_condition(running, 120, "pods of the workload")
    pods = cluster.list("v1", "Pod", "default", f"plimsoll.dev/workspace={wanted.name}")
    nodes = {pod["spec"]["nodeName"] for pod in pods}
    assert len(nodes) == len(pods) == target

    def nodes_of_claims() -> bool:
        """The nodes of the NodeClaims. Karpenter may write a node's name into its NodeClaim after pods are placed."""
        return {claim.node_name for claim in now().node_claims if claim.owner[1] == wanted.name} == nodes

    await_condition(nodes_of_claims, 120, "pods on the nodes of the claims")
    await_condition(lambda: of(now(wanted)).empty, message="nothing more is planned")

    carry_out(of(now()), cluster)
    gone = {each.key.name for each in (*found.creations, *placed.creations)}
    await_condition(
        lambda: not gone & {each.name for each in (*now().node_claims, *now().workloads)}, 120, "everything gone"
    )
