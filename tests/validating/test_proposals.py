"""A Workspace without an instance type is refused, and the cheapest type that fits is proposed with reasons."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model import Reason
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_node, a_node_pool, a_snapshot, a_workspace, an_environment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NC48 = "Standard_NC48ads_A100_v4"
NC40 = "Standard_NC40ads_H100_v5"


def refused(workspace: Workspace, *objects: Any, **environment: Any) -> str:
    snapshot = a_snapshot(workspace, *objects, environment=an_environment(nap=True, **environment))
    [verdict] = validate(snapshot)
    assert verdict.reason is Reason.INSTANCE_TYPE_REQUIRED
    assert plan(snapshot, [verdict], NOW).empty, "nothing is provisioned silently"
    return verdict.message


CPU_ONLY = a_node_pool(
    "cpu",
    group="karpenter.k8s.aws",
    requirements=[{"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]}],
)


def proposed(workspace: Workspace, *objects: Any, **environment: Any) -> str:
    message = refused(workspace, *objects, **environment)
    assert ", for example " in message, message
    return message.split(", for example ")[1].split(",")[0]


def test_the_reasons_are_reported() -> None:
    prices = {"catalog": {"prices": {NC24: 3.5, NC48: 6}}}
    qwen = a_workspace(preset="qwen2.5-coder-32b-instruct", replicas=2)
    pool = a_node_pool("gpus", [NC24, NC48, NC40])
    message = refused(qwen, pool, **prices)
    assert "resource.instanceType" in message
    for figure in (
        NC48,
        "of 3 that fit",
        "2 x NVIDIA-A100-80GB-PCIe of 81920 MiB",
        "6 an hour for 1 node",
        "2 nodes, 12 an hour",
    ):
        assert figure in message


@pytest.mark.parametrize(
    ("prices", "best"),
    [({NC24: 3, NC48: 7}, NC24), ({NC24: 4, NC48: 7}, NC48), ({NC40.upper(): 1}, NC40), ({}, NC40)],
)
def test_prices_decide_and_count_for_all_nodes_of_a_replica(prices: dict[str, float], best: str) -> None:
    pool = a_node_pool("gpus", [NC24, NC48, NC40])
    model = a_workspace(preset="qwen2.5-coder-32b-instruct")
    assert proposed(model, pool, catalog={"prices": prices}) == best


@pytest.mark.parametrize(
    ("objects", "environment", "best"),
    [
        pytest.param([a_node_pool("a", ["p5.48xlarge"])], {}, "p5.48xlarge", id="what a NodePool names"),
        pytest.param(
            [a_node_pool("a", [NC48]), a_node_pool("b", [NC24])],
            {"access": [{"namespaces": ["default"], "nodePools": ["a"]}]},
            NC48,
            id="NodePools that the namespace may use",
        ),
        pytest.param(
            [], {"access": [{"namespaces": ["*"], "instanceTypes": [NC48.lower()]}]}, NC48, id="types it may use"
        ),
        pytest.param(
            [],
            {"nodeClaims": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}}},
            "g6e.xlarge",
            id="the cloud of the node class",
        ),
        pytest.param([a_node(provider_id="aws:///eu/i-1")], {}, "g6e.xlarge", id="the cloud of the nodes"),
        pytest.param(
            [a_node(instance_type="metal-8", count=8), a_node_pool("any")], {}, "metal-8", id="a type of live nodes"
        ),
        pytest.param(
            [CPU_ONLY, a_node_pool("a", ["p5.48xlarge"], group="karpenter.k8s.aws")],
            {},
            "p5.48xlarge",
            id="a NodePool without GPU types proposes nothing",
        ),
        pytest.param([], {"limits": {"gpus": 1}, "catalog": {"prices": {NC48: 0.1}}}, "g6e.xlarge", id="within limits"),
    ],
)
def test_only_types_that_the_environment_allows_are_proposed(
    objects: list[Any], environment: dict[str, Any], best: str
) -> None:
    if best == "metal-8":
        environment = {**environment, "access": [{"namespaces": ["*"], "instanceTypes": ["metal-8"]}]}
    assert proposed(a_workspace(preset="phi-4"), *objects, **environment) == best


def test_if_no_type_fits_the_message_says_so() -> None:
    small = a_node_pool("small", ["Standard_NV36ads_A10_v5"])
    message = refused(a_workspace(preset="phi-4"), small)
    assert "for example" not in message
    assert message.endswith("preset 'phi-4'")
    limited = refused(a_workspace(preset="phi-4", replicas=3), limits={"nodes": 2})
    assert "for example" not in limited
    assert all(each in limited for each in ("preset 'phi-4'", "limits", "Environment", "Workspace"))


def test_without_a_declared_need_nothing_is_proposed() -> None:
    assert "for example" not in refused(a_workspace())


def test_a_price_for_an_unknown_type_is_a_warning() -> None:
    snapshot = a_snapshot(environment=an_environment(nap=True, catalog={"prices": {"g6.xlarg": 1, "metal-8": 2}}))
    node = a_node(instance_type="metal-8")
    [warning] = plan(snapshot.model_copy(update={"nodes": (node,)}), [], NOW).warnings
    assert "instance type 'g6.xlarg' is not known (did you mean g6.xlarge" in warning
