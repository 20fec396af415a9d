"""Labels that a tenant wants on the nodes that are provisioned for it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.cluster.nodes import NodeIndex
from plimsoll.cluster.pools import SeenNodes
from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.model import Plan, Reason
from plimsoll.model.api import CHOSEN_PREFIXES, OWNED_DOMAINS
from plimsoll.model.cluster import Node
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_gpu_node, a_snapshot, a_workspace, an_environment

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
EXPRESSIONS = {"In": ["a"], "Exists": []}


def planned(workspace: Any, **environment: Any) -> Plan:
    snapshot = a_snapshot(workspace, environment=an_environment(nap=True, **environment))
    return plan(snapshot, validate(snapshot), NOW)


def wanting(key: str, operator: str | None = None) -> Any:
    """A Workspace that selects nodes by the key: by a label, or by an expression with that operator."""
    if operator is None:
        return a_workspace(instance_type=NC24, selector={key: "a"})
    expression = {"key": key, "operator": operator, "values": EXPRESSIONS[operator]}
    return a_workspace(instance_type=NC24, selector={}, expressions=[expression])


FOREIGN = (
    "node-role.kubernetes.io/control-plane",
    "node-restriction.kubernetes.io/tier",
    "node.kubernetes.io/own",
    "nvidia.com/gpu.product",
    "kai.scheduler/node-pool",
    *(f"{domain}/own" for domain in OWNED_DOMAINS),
    *(f"sub.{domain}/own" for domain in OWNED_DOMAINS),
)


@pytest.mark.parametrize("operator", [None, "In", "Exists"])
@pytest.mark.parametrize("key", FOREIGN)
def test_labels_of_others_are_refused_whatever_the_environment_allows(key: str, operator: str | None) -> None:
    """Karpenter sets the value that an expression allows as a label, too."""
    found = planned(
        wanting(key, operator), nodeLabelPrefixes=["", key.partition("/")[0]], reservedLabelPrefixes=["none/"]
    )
    if key.startswith(CHOSEN_PREFIXES):
        # Karpenter rejects the ones that it does not know, and no node gets one as a label from us.
        assert all(key not in each.manifest["metadata"]["labels"] for each in found.creations)
        return
    [verdict] = found.verdicts
    assert (verdict.accepted, verdict.reason) == (False, Reason.SELECTOR_RESERVED)
    assert key in verdict.message
    assert "nodeLabelPrefixes" in verdict.message
    assert found.empty


@pytest.mark.parametrize(
    ("key", "prefixes", "accepted"),
    [
        ("apps", [""], True),
        ("apps", ["team.example"], False),
        ("team.example/tier", [""], False),
        ("team.example/tier", ["team.example"], True),
        ("sub.team.example/tier", ["team.example"], False),
        ("topology.kubernetes.io/zone", [], True),
    ],
)
@pytest.mark.parametrize("operator", [None, "In"])
def test_the_environment_allows_prefixes(key: str, prefixes: list[str], accepted: bool, operator: str | None) -> None:
    [verdict] = planned(wanting(key, operator), nodeLabelPrefixes=prefixes).verdicts
    assert verdict.accepted is accepted


@pytest.mark.parametrize("provisioner", ["nodeclaim", "static-nodepool"])
def test_a_node_is_not_given_labels_that_the_provider_writes(provisioner: str) -> None:
    [change] = planned(wanting("topology.kubernetes.io/zone"), provisioner=provisioner).creations
    node = change.manifest if provisioner == "nodeclaim" else change.manifest["spec"]["template"]
    assert "topology.kubernetes.io/zone" not in node["metadata"]["labels"]
    assert "topology.kubernetes.io/zone" in [each["key"] for each in node["spec"]["requirements"]]


def test_nothing_is_learned_of_nodes_whose_labels_the_controller_wrote() -> None:
    """Not even if they are first by name, or more."""
    pooled = {NODEPOOL: "gpu"}
    forged = [_node(f"a-{number}", "NVIDIA-H200", pooled | {WORKSPACE: "ws"}) for number in range(3)]
    real = _node("b", "NVIDIA-A100-SXM4-80GB", pooled)
    assert SeenNodes(NodeIndex(forged), ()).learned() == ()
    (report,) = SeenNodes(NodeIndex([*forged, real]), ()).learned()
    assert report.learned.node == "b"


def _node(name: str, product: str, labels: dict[str, str]) -> Node:
    return a_gpu_node(name, product, instance_type=NC24, more_labels=labels)
