"""New nodes of Workspaces are what the NodePool of their instance type says, narrowed by the Workspace."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll import labels
from plimsoll.model import Plan, Reason, Snapshot
from plimsoll.model.karpenter import NodePool
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_claim, a_node_pool, a_snapshot, a_workspace, an_environment
from tests.planning.cluster import launched

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ZONE = "topology.kubernetes.io/zone"


def requiring(key: str, *values: str, operator: str = "In", **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values), **more}


def cluster(*objects: Any, **environment: Any) -> Snapshot:
    return a_snapshot(*objects, environment=an_environment(nap=True, **environment))


def wanting(**fields: Any) -> Any:
    return a_workspace(instance_type=NC24, **fields)


def planned(snapshot: Snapshot) -> Plan:
    return plan(snapshot, validate(snapshot), NOW)


def node_spec(snapshot: Snapshot) -> dict[str, Any]:
    """The spec of the one NodeClaim, or of the template of the one static NodePool, that is created."""
    (change,) = planned(snapshot).creations
    spec: dict[str, Any] = change.manifest["spec"]
    return spec["template"]["spec"] if change.key.kind == "NodePool" else spec


def values(spec: dict[str, Any], key: str) -> list[list[str]]:
    return [each.get("values", []) for each in spec["requirements"] if each["key"] == key]


def a_pool(name: str = "gpu", *requirements: dict[str, Any], **fields: Any) -> NodePool:
    return a_node_pool(name, [NC24], requirements=requirements, **fields)


@pytest.mark.parametrize("provisioner", ["nodeclaim", "static-nodepool"])
def test_requirements_and_fields_of_the_pool_are_those_of_the_nodes(provisioner: str) -> None:
    pool = a_pool(
        "gpu",
        requiring(ZONE, "z1", "z2"),
        requiring(labels.CAPACITY_TYPE, "on-demand", minValues=1),
        requiring("karpenter.k8s.aws/instance-generation", "3", operator="Gt"),
        taints=[{"key": "team-only", "value": "ml", "effect": "NoSchedule"}],
    )
    template = {
        **pool.template_spec,
        "startupTaints": [{"key": "not-yet", "effect": "NoExecute"}],
        "expireAfter": "720h",
        "terminationGracePeriod": "1h",
    }
    pool = pool.model_copy(update={"template_spec": template})

    spec = node_spec(cluster(wanting(), pool, provisioner=provisioner))

    assert values(spec, labels.INSTANCE_TYPE) == [[NC24]]
    assert values(spec, ZONE) == [["z1", "z2"]]
    assert values(spec, labels.CAPACITY_TYPE) == [["on-demand"]]
    assert values(spec, "karpenter.k8s.aws/instance-generation") == [["3"]]
    assert all(each.keys() <= {"key", "operator", "values"} for each in spec["requirements"])
    assert {"key": "team-only", "value": "ml", "effect": "NoSchedule"} in spec["taints"]
    assert spec["startupTaints"] == [{"key": "not-yet", "effect": "NoExecute"}]
    assert (spec["expireAfter"], spec["terminationGracePeriod"]) == ("720h", "1h")


def test_pods_tolerate_the_taints_of_their_nodes() -> None:
    pool = a_pool(taints=[{"key": "team-only", "value": "ml", "effect": "NoSchedule"}])
    snapshot = launched(cluster(wanting(uid="u"), pool, a_claim("claim", wanting(uid="u"))))

    (workload,) = [each.manifest for each in planned(snapshot).creations if each.key.kind == "Deployment"]

    tolerated = workload["spec"]["template"]["spec"]["tolerations"]
    assert {"key": "team-only", "operator": "Equal", "value": "ml", "effect": "NoSchedule"} in tolerated


def test_the_workspace_narrows_what_the_pool_allows() -> None:
    pool = a_pool("gpu", requiring(ZONE, "z1", "z2"), requiring(labels.CAPACITY_TYPE, "spot", "on-demand"))
    narrowed = [{"key": ZONE, "operator": "In", "values": ["z2", "z3"]}]

    spec = node_spec(cluster(wanting(capacity_type="spot", expressions=narrowed), pool))

    assert values(spec, ZONE) == [["z1", "z2"], ["z2", "z3"]]
    assert values(spec, labels.CAPACITY_TYPE) == [["spot"], ["spot", "on-demand"]]


@pytest.mark.parametrize(
    ("workspace", "environment", "remedy"),
    [
        ({"capacity_type": "spot"}, {}, "resource.capacityType"),
        ({}, {"nodeClaims": {"capacityType": "spot"}}, "nodeClaims.capacityType"),
        ({"selector": {ZONE: "z9"}}, {}, "resource.labelSelector"),
        ({"expressions": [{"key": ZONE, "operator": "In", "values": ["z8", "z9"]}]}, {}, "resource.labelSelector"),
    ],
)
def test_what_the_pool_does_not_allow_is_refused(
    workspace: dict[str, Any], environment: dict[str, Any], remedy: str
) -> None:
    pool = a_pool("gpu", requiring(ZONE, "z1"), requiring(labels.CAPACITY_TYPE, "on-demand"))

    (verdict,) = validate(cluster(wanting(**workspace), pool, **environment))

    assert verdict.reason is Reason.INVALID_SPEC
    assert "NodePool gpu" in verdict.message
    assert remedy in verdict.message


def test_of_several_pools_the_first_counts_that_allows_what_the_workspace_wants() -> None:
    reserved = a_pool("a-demand", requiring(labels.CAPACITY_TYPE, "on-demand"), weight=9, node_class="demand")
    spot = a_pool("b-spot", requiring(labels.CAPACITY_TYPE, "spot"), node_class="spot")

    by_default = node_spec(cluster(wanting(), reserved, spot))
    chosen = node_spec(cluster(wanting(capacity_type="spot"), reserved, spot))

    assert by_default["nodeClassRef"]["name"] == "demand"
    assert chosen["nodeClassRef"]["name"] == "spot"
    assert values(chosen, labels.CAPACITY_TYPE) == [["spot"]]


def test_a_node_claim_counts_against_the_pool_that_it_is_like() -> None:
    limited = a_pool("a-demand", requiring(labels.CAPACITY_TYPE, "on-demand"), weight=9, limits={"nodes": 1})
    spot = a_pool("b-spot", requiring(labels.CAPACITY_TYPE, "spot"))
    spec = node_spec(cluster(wanting(name="first", capacity_type="spot"), limited, spot))
    of_first = a_claim("claim", wanting(name="first", uid="f", capacity_type="spot")).model_copy(update={"spec": spec})

    found = planned(
        cluster(wanting(name="first", uid="f", capacity_type="spot"), wanting(name="next"), of_first, limited, spot)
    )

    assert [each.reason for each in found.creations if each.key.kind == "NodeClaim"] == ["1 node needed, 0 exist"]


def test_without_a_pool_nodes_are_on_demand_and_the_verdict_says_so() -> None:
    snapshot = cluster(wanting())
    (verdict,) = validate(snapshot)

    assert values(node_spec(snapshot), labels.CAPACITY_TYPE) == [["on-demand"]]
    assert "on-demand" in verdict.message
    assert "on-demand" not in validate(cluster(wanting(capacity_type="spot")))[0].message


def test_a_pool_that_says_nothing_of_payment_leaves_it_to_the_provider() -> None:
    assert values(node_spec(cluster(wanting(), a_pool())), labels.CAPACITY_TYPE) == []


@pytest.mark.parametrize("provisioner", ["nodeclaim", "static-nodepool"])
def test_labels_of_the_pool_are_those_of_the_nodes(provisioner: str) -> None:
    given = {
        "nvidia.com/gpu.present": "true",
        "team": "ml",
        ZONE: "z1",
        labels.WORKSPACE: "other",
        labels.DEMAND: "other",
    }
    snapshot = cluster(wanting(selector={"app": "chat"}), a_pool(more_labels=given), provisioner=provisioner)

    (change,) = planned(snapshot).creations

    static = change.key.kind == "NodePool"
    metadata = change.manifest["spec"]["template"]["metadata"] if static else change.manifest["metadata"]
    node = metadata["labels"]
    assert (node["nvidia.com/gpu.present"], node["team"], node["app"]) == ("true", "ml", "chat")
    assert node[labels.WORKSPACE] == "ws"
    assert labels.DEMAND not in node
    # As a label of the NodeClaim, a zone would not restrict where the provider launches the node.
    assert ZONE not in node
    assert values(node_spec(snapshot), ZONE) == [["z1"]]


def test_labels_of_the_pool_change_no_node_that_exists() -> None:
    before, after = (cluster(wanting(), a_pool(more_labels=given)) for given in ({}, {"team": "ml"}))

    assert node_spec(before) == node_spec(after)


def test_a_selector_that_contradicts_the_labels_of_the_pool_is_refused() -> None:
    pool = a_pool("gpu", more_labels={"team": "ml"})

    (verdict,) = validate(cluster(wanting(selector={"team": "web"}), pool))
    (other,) = validate(cluster(wanting(selector={"team": "web"}), pool, a_pool("web", more_labels={"team": "web"})))

    assert verdict.reason is Reason.INVALID_SPEC
    assert "resource.labelSelector" in verdict.message
    assert other.accepted


def test_a_label_of_the_pool_does_not_bring_a_node_into_another_shard_of_kai() -> None:
    key = "kai.scheduler/node-pool"
    pools = [a_pool("a", more_labels={key: "other"})]

    (change,) = planned(cluster(wanting(queue="team"), *pools)).creations

    assert key not in change.manifest["metadata"]["labels"]
