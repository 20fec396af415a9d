"""NodeClaims of Workspaces: missing ones are created and surplus ones deleted, by name."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll import labels
from plimsoll.model import InvalidObject, Plan, Reason, Snapshot
from plimsoll.model.api import WorkspaceRef
from plimsoll.model.meta import Condition
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_claim, a_node, a_node_pool, a_pod, a_snapshot, a_workspace, an_environment
from tests.planning.cluster import after

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


def planned(*objects: Any, now: datetime = NOW, **environment: Any) -> Plan:
    snapshot = a_snapshot(*objects, environment=an_environment(**({"nap": True} | environment)))
    return of(snapshot, now)


def of(snapshot: Snapshot, now: datetime = NOW) -> Plan:
    return plan(snapshot, validate(snapshot), now)


def created(found: Plan, kind: str = "NodeClaim") -> list[dict[str, Any]]:
    return [each.manifest for each in found.creations if each.key.kind == kind]


def deleted(found: Plan) -> list[str]:
    return [each.key.name for each in found.deletions]


def wanting(nodes: int, **fields: Any) -> Any:
    given: dict[str, Any] = {"instance_type": NC24, "replicas": nodes} | fields
    return a_workspace(**given)


@pytest.mark.parametrize(
    ("target", "claims", "existing", "creations", "deletions"),
    [
        (3, 1, 0, 2, 0),
        (2, 2, 0, 0, 0),
        (1, 0, 0, 1, 0),
        (3, 2, 1, 0, 0),
        (0, 0, 0, 0, 0),
        (1, 3, 0, 0, 2),
        (0, 2, 0, 0, 2),
        (2, 2, 1, 0, 1),
        (2, 0, 5, 0, 0),
    ],
)
def test_claims_follow_the_target(target: int, claims: int, existing: int, creations: int, deletions: int) -> None:
    found = planned(
        wanting(target),
        *(a_claim(f"claim-{n}") for n in range(claims)),
        *(a_node(f"existing-{n}", instance_type=NC24) for n in range(existing)),
    )
    assert (len(created(found)), len(found.deletions)) == (creations, deletions)


def test_claims_being_deleted_do_not_count_and_are_not_deleted_again() -> None:
    found = planned(wanting(2), a_claim("going", deleting=True, ready=True), a_claim("stays"))
    assert len(created(found)) == 1
    assert found.deletions == ()
    assert planned(wanting(0), a_claim("going", deleting=True)).empty


def test_a_failed_creation_is_repeated_with_the_same_name() -> None:
    snapshot = a_snapshot(wanting(2), nap=True)
    first = of(snapshot)
    kept, lost = first.creations
    second = of(after(snapshot, first.model_copy(update={"creations": (kept,)})))
    assert [creation.key for creation in second.creations] == [lost.key]


def test_names_follow_from_the_workspace_and_the_smallest_free_ordinals() -> None:
    found = planned(wanting(3, uid="u-1"))
    names = [manifest["metadata"]["name"] for manifest in created(found)]
    assert names == [manifest["metadata"]["name"] for manifest in created(planned(wanting(3, uid="u-1")))]
    assert all(name.startswith("ws-") and len(name) == len("ws-") + 10 for name in names)
    other = [manifest["metadata"]["name"] for manifest in created(planned(wanting(3, uid="u-2")))]
    assert not set(names) & set(other)


def test_the_name_of_a_claim_being_deleted_is_not_used_again() -> None:
    [manifest] = created(planned(wanting(1)))
    going = a_claim(manifest["metadata"]["name"], deleting=True)
    [second] = created(planned(wanting(1), going))
    assert second["metadata"]["name"] != manifest["metadata"]["name"]


@pytest.mark.parametrize("name", ["w" * 253, "a" * 51 + ".b" * 20])
def test_long_names_are_truncated_to_a_label_value(name: str) -> None:
    [manifest] = created(planned(wanting(1, name=name, inference=False)))
    assert labels.is_label_value(manifest["metadata"]["name"])
    assert all(labels.is_label_value(value) for value in manifest["metadata"]["labels"].values())
    assert planned(wanting(1, name=name, inference=False), a_claim("own", ("default", name))).empty


def victims_of(target: int, claims: Iterable[Any]) -> list[str]:
    return deleted(planned(wanting(target), *claims))


def test_unready_claims_are_deleted_first_then_the_newest_then_by_name() -> None:
    claims = [
        a_claim("ready-old", ready=True, created="2026-01-01T00:00:00Z"),
        a_claim("ready-new", ready=True, created="2026-01-01T00:02:00Z"),
        a_claim("booting-old", created="2026-01-01T00:00:00Z"),
        a_claim("booting-new-a", created="2026-01-01T00:03:00Z"),
        a_claim("booting-new-b", created="2026-01-01T00:03:00Z"),
    ]
    order = ["booting-new-a", "booting-new-b", "booting-old", "ready-new", "ready-old"]
    for number in range(6):
        assert victims_of(5 - number, claims) == sorted(order[:number])


def test_a_claim_whose_node_failed_after_it_was_ready_is_not_ready() -> None:
    old = a_claim("old", ready=True, created="2026-01-01T00:00:00Z", node="failed")
    new = a_claim("new", ready=True, created="2026-01-01T00:02:00Z", node="fine")
    nodes = [a_node("failed", None, ready=False), a_node("fine", None)]
    assert deleted(planned(wanting(1), old, new, *nodes)) == ["old"]


def test_failed_claims_are_deleted_before_those_that_are_not_ready_yet() -> None:
    old = a_claim("old", created="2026-01-01T00:00:00Z")
    failed = old.model_copy(update={"conditions": (Condition(type="Launched", status="False"),)})
    assert victims_of(1, [failed, a_claim("new", created="2026-01-01T00:02:00Z")]) == ["old"]


def as_made(name: str, created_at: str, **fields: Any) -> Any:
    """A Ready NodeClaim as it would be created for `wanting` now, except for `fields`."""
    [manifest] = created(planned(wanting(1)))
    claim = a_claim(name, ready=True, created=created_at)
    return claim.model_copy(update={"annotations": manifest["metadata"]["annotations"], **fields})


@pytest.mark.parametrize(
    "outdated",
    [
        {"annotations": {labels.SPEC_HASH: "of another spec"}},
        {"conditions": (Condition(type="Ready", status="True"), Condition(type="Drifted", status="True"))},
        {"image_id": "ami-old"},
        {"annotations": {}, "spec": {"requirements": []}, "labels_type": "Standard_NC48ads_A100_v4"},
    ],
)
def test_outdated_claims_are_deleted_before_newer_ones(outdated: dict[str, Any]) -> None:
    old = as_made("old", "2026-01-01T00:00:00Z")
    if (other := outdated.pop("labels_type", None)) is not None:
        outdated["labels"] = old.labels | {labels.INSTANCE_TYPE: other}
    claims = [old.model_copy(update=outdated), as_made("new", "2026-01-01T00:02:00Z", image_id="ami-new")]
    assert victims_of(1, claims) == ["old"]
    assert victims_of(1, [*claims, a_claim("booting", created="2026-01-01T00:01:00Z")]) == ["booting", "old"]


def test_claims_equal_to_new_ones_are_not_outdated() -> None:
    claims = [as_made("old", "2026-01-01T00:00:00Z"), as_made("new", "2026-01-01T00:02:00Z")]
    assert victims_of(1, claims) == ["new"]


@pytest.mark.parametrize(
    ("limits", "used", "accepted"),
    [
        ({"nodes": 2}, {}, True),
        ({"nodes": 1}, {}, False),
        ({"nvidia.com/gpu": "2"}, {}, True),
        ({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "1"}, False),
        ({"nodes": "3"}, {"nodes": 1}, True),
        ({"nodes": "3"}, {"nodes": "2"}, False),
        ({"cpu": "1"}, {"cpu": "1"}, True),
    ],
)
@pytest.mark.parametrize("types", [[NC24], []])
def test_limits_of_the_node_pool_that_allows_the_type_hold(
    limits: dict[str, Any], used: dict[str, Any], accepted: bool, types: list[str]
) -> None:
    found = planned(wanting(2), a_node_pool("gpu", types, limits=limits, used=used))
    assert len(created(found)) == (2 if accepted else 0)
    assert accepted or "of NodePool gpu is" in found.verdicts[0].message


def test_claims_being_deleted_count_against_the_limits_of_the_node_pool() -> None:
    pool = a_node_pool("gpu", [NC24], limits={"nodes": 2})
    assert len(created(planned(wanting(2), a_claim("going", deleting=True), pool))) == 1
    elsewhere = a_node_pool("other", ["Standard_NC48ads_A100_v4"], limits={"nodes": 0})
    assert len(created(planned(wanting(2), elsewhere, a_node_pool("gpu", [NC24])))) == 2


def test_replicas_from_three_to_one_delete_two() -> None:
    claims = [a_claim("a", ready=True), a_claim("b"), a_claim("c")]
    assert victims_of(1, claims) == ["b", "c"]


@pytest.mark.parametrize(
    "fields",
    [
        {"ready": False},
        {"cordoned": True},
        {"deleting": True},
        {"instance_type": "Standard_NC48ads_A100_v4"},
        {"pool": "b"},
        {"allocatable": 0},
        {"taints": ["own"]},
        {"more_labels": {labels.NODEPOOL: "some"}},
        {"more_labels": {labels.WORKSPACE: "other"}},
    ],
)
def test_existing_nodes_that_do_not_count(fields: dict[str, Any]) -> None:
    node = a_node(**({"instance_type": NC24} | fields))
    assert len(created(planned(wanting(1), node))) == 1


def test_a_node_of_any_claim_does_not_count_as_an_existing_node() -> None:
    node = a_node("taken", instance_type=NC24)
    assert len(created(planned(wanting(1), node, a_claim("c", ("other", "x"), node="taken")))) == 1


def test_existing_nodes_count_only_for_a_selector_that_is_not_empty() -> None:
    node = a_node(instance_type=NC24)
    assert len(created(planned(wanting(1, selector={}), node))) == 1
    assert created(planned(wanting(1), node)) == []


def test_an_existing_node_counts_once_and_for_the_oldest() -> None:
    node = a_node(instance_type=NC24.lower())
    old = wanting(1, name="z-old", created="2026-01-01T00:00:00Z")
    young = wanting(1, name="a-young", created="2026-01-01T00:01:00Z")
    [creation] = [each for each in planned(young, old, node).creations if each.key.kind == "NodeClaim"]
    assert creation.owner.name == "a-young"


def test_an_existing_node_that_two_selectors_match_counts_once() -> None:
    node = a_node(instance_type=NC24, more_labels={"zone": "z"})
    assert len(created(planned(wanting(1, name="a"), wanting(1, name="b", selector={"zone": "z"}), node))) == 1


def test_a_requirement_is_not_repeated() -> None:
    own = {"key": labels.INSTANCE_TYPE, "operator": "In", "values": [NC24, "other"]}
    [manifest] = created(planned(wanting(1, expressions=[own])))
    assert [each["values"] for each in manifest["spec"]["requirements"] if each["key"] == own["key"]] == [[NC24]]


def test_workspaces_do_not_count_each_others_claims() -> None:
    found = planned(wanting(1, name="a"), wanting(1, name="b"), a_claim("of-a", ("default", "a")))
    assert [each.owner.name for each in found.creations] == ["b"]
    elsewhere = planned(wanting(1, namespace="one"), a_claim("of-two", ("two", "ws")), wanting(1, namespace="two"))
    assert [each.owner.namespace for each in elsewhere.creations] == ["one"]


def test_existing_nodes_environment_has_no_node_claims() -> None:
    assert created(planned(a_workspace(), a_node(), nap=False)) == []


def test_claims_of_a_former_mode_are_kept_with_a_warning() -> None:
    found = planned(a_workspace(), a_node(), a_claim("from-before"), nap=False)
    assert found.deletions == ()
    assert any("from-before" in warning for warning in found.warnings)


def test_a_refused_workspace_keeps_its_capacity() -> None:
    found = planned(a_workspace(instance_type="nonesuch", replicas=1), *(a_claim(f"c-{n}") for n in range(3)))
    assert found.empty
    assert len(found.refusals) == 1


@pytest.mark.parametrize(
    "workspaces",
    [
        pytest.param([], id="gone"),
        pytest.param([wanting(1, deleting=True)], id="being deleted"),
        pytest.param([wanting(1, uid="new", name="ws")], id="made anew"),
    ],
)
def test_claims_without_their_workspace_are_deleted(workspaces: list[Any]) -> None:
    found = planned(*workspaces, a_claim("orphan", uid="old"), a_claim("going", uid="old", deleting=True))
    assert deleted(found) == ["orphan"]


def test_where_workspaces_are_not_served_their_nodes_are_kept() -> None:
    """Somebody has deleted the definition: the Workspaces may be in etcd as they were, and return with it."""
    snapshot = a_snapshot(a_claim("a", uid="u"), a_claim("b", uid="u"), nap=True)
    assert deleted(plan(snapshot, validate(snapshot), NOW)) == ["a", "b"], "where they are served"
    unserved = snapshot.model_copy(update={"missing_kinds": ("Workspace",)})
    found = plan(unserved, validate(unserved), NOW)
    assert not found.deletions
    assert any("2 objects of Workspaces are kept" in warning for warning in found.warnings)


def test_claims_without_ownership_labels_are_ignored() -> None:
    foreign = a_claim("foreign").model_copy(update={"labels": {}})
    assert planned(foreign).empty


def test_claims_of_another_environment_are_ignored() -> None:
    claim = a_claim("c")
    foreign = claim.model_copy(update={"labels": claim.labels | {labels.ENVIRONMENT: "other"}})
    assert planned(foreign).empty


def test_deletions_in_one_round_are_limited_with_a_warning() -> None:
    claims = [a_claim(f"c-{n}") for n in range(5)]
    found = planned(*claims, limits={"deletionsPerTick": 2})
    assert len(found.deletions) == 2
    assert any("deletionsPerTick" in warning or "deletions_per_tick" in warning for warning in found.warnings)


def of_namespace(gpus: int) -> dict[str, Any]:
    return {"access": [{"namespaces": ["default"], "gpus": gpus}]}


@pytest.mark.parametrize(
    ("limits", "made"),
    [
        ({"limits": {"nodes": 3}}, 1),
        ({"limits": {"gpus": 2}}, 0),
        ({"limits": {"nodes": 4}}, 2),
        (of_namespace(2), 0),
        (of_namespace(3), 1),
        (of_namespace(4), 2),
    ],
)
def test_claims_being_deleted_count_against_the_limit_for_creations(limits: dict[str, Any], made: int) -> None:
    going = [a_claim(f"going-{n}", deleting=True) for n in range(2)]
    found = planned(wanting(2), *going, **limits)
    assert len(created(found)) == made
    assert made == 2 or any("LimitExceeded" in warning for warning in found.warnings)


def requirement(manifest: dict[str, Any], key: str) -> Any:
    return next((each for each in manifest["spec"]["requirements"] if each["key"] == key), None)


def test_the_manifest_of_a_claim() -> None:
    workspace = wanting(
        1,
        uid="u",
        instance_type=NC24.lower(),
        selector={"team": "red"},
        expressions=[{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1", "z2"]}],
    )
    [manifest] = created(planned(workspace, nodeClaims={"taints": [{"key": "sku", "value": "gpu"}]}))
    assert manifest["metadata"]["labels"] == {
        "team": "red",
        labels.WORKSPACE: "ws",
        labels.WORKSPACE_NAMESPACE: "default",
        labels.WORKSPACE_UID: "u",
        labels.OWNER_NAMESPACE: "default",
        labels.ENVIRONMENT: "test",
        labels.MANAGED_BY: "plimsoll",
    }
    assert manifest["metadata"]["annotations"].items() >= {labels.DO_NOT_DISRUPT: "true"}.items()
    assert requirement(manifest, labels.INSTANCE_TYPE)["values"] == [NC24]
    assert requirement(manifest, "kubernetes.io/os")["values"] == ["linux"]
    assert requirement(manifest, "topology.kubernetes.io/zone")["values"] == ["z1", "z2"]
    assert manifest["spec"]["resources"]["requests"] == {"nvidia.com/gpu": "1"}
    assert manifest["spec"]["taints"] == [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]
    assert manifest["spec"]["nodeClassRef"] == {"group": "kaito.sh", "kind": "KaitoNodeClass", "name": "default"}


ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize("provisioner", ["nodeclaim", "static-nodepool"])
def test_labels_that_the_provider_chooses_are_requirements(provisioner: str) -> None:
    selector = {ZONE: "z1", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "team": "red"}
    [change] = planned(wanting(1, selector=selector), provisioner=provisioner).creations
    node = change.manifest if provisioner == "nodeclaim" else change.manifest["spec"]["template"]
    required = [(each["key"], each["values"]) for each in node["spec"]["requirements"]]
    both = [("kubernetes.io/arch", ["amd64"]), (ZONE, ["z1"])]
    paid = (labels.CAPACITY_TYPE, ["on-demand"])
    assert required == [(labels.INSTANCE_TYPE, [NC24]), ("kubernetes.io/os", ["linux"]), paid, *both]
    given = node["metadata"]["labels"]
    assert given["team"] == "red"
    assert not given.keys() & {ZONE, "kubernetes.io/arch", "kubernetes.io/os"}, "only the provider writes them"


def test_claims_request_gpus_and_the_disk_of_a_preset() -> None:
    [manifest] = created(planned(wanting(1, instance_type="p5.48xlarge", preset="phi-4")))
    assert requirement(manifest, "karpenter.k8s.aws/instance-gpu-count")["operator"] == "Gt"
    assert manifest["spec"]["resources"]["requests"] == {"nvidia.com/gpu": "8", "ephemeral-storage": "107Gi"}
    assert manifest["spec"]["nodeClassRef"]["kind"] == "EC2NodeClass"


def test_the_node_class_is_never_that_of_a_pool_that_does_not_allow_the_type() -> None:
    group, category = "karpenter.k8s.aws", "karpenter.k8s.aws/instance-category"
    pools = [
        a_node_pool(
            name, group=group, node_class=name, requirements=[{"key": category, "operator": "In", "values": of}]
        )
        for name, of in (("cpu", ["c", "m", "r"]), ("gpu", ["p"]))
    ]
    [claim] = created(planned(wanting(1, instance_type="p4d.24xlarge"), *pools))
    assert claim["spec"]["nodeClassRef"]["name"] == "gpu"


def test_the_node_class_is_the_environments_then_that_of_the_pool_that_names_the_type() -> None:
    pools = [
        a_node_pool("any", weight=9, node_class="any"),
        a_node_pool("light", [NC24], weight=1, node_class="light"),
        a_node_pool("heavy", [NC24], weight=5, node_class="heavy"),
    ]
    [by_pool] = created(planned(wanting(1), *pools))
    assert by_pool["spec"]["nodeClassRef"]["name"] == "heavy"
    [by_any] = created(planned(wanting(1), pools[0]))
    assert by_any["spec"]["nodeClassRef"]["name"] == "any"
    own = {"group": "g.example", "kind": "K", "name": "own"}
    [by_environment] = created(planned(wanting(1), *pools, nodeClaims={"nodeClassRef": own}))
    assert by_environment["spec"]["nodeClassRef"] == own


def test_a_claim_requests_whole_gpus_even_if_live_nodes_share_theirs() -> None:
    sharing = a_node(instance_type=NC24, pool="other", more_labels={"nvidia.com/gpu.replicas": "4"})
    [manifest] = created(planned(wanting(1), sharing))
    assert manifest["spec"]["resources"]["requests"] == {"nvidia.com/gpu": "1"}


def test_an_invalid_workspace_is_refused_by_name_and_keeps_its_capacity() -> None:
    unread = InvalidObject(ref=WorkspaceRef(namespace="default", name="ws"), message="spec.resorce: unknown field")
    snapshot = a_snapshot(a_claim("c"), nap=True).model_copy(update={"invalid_workspaces": (unread,)})
    found = of(snapshot)
    [verdict] = found.verdicts
    assert (verdict.reason, verdict.message) == (Reason.INVALID_SPEC, unread.message)
    assert found.empty


def test_an_existing_node_whose_gpus_others_use_does_not_count() -> None:
    node = a_node("used", instance_type=NC24)
    foreign = a_pod("foreign", node="used", devices=1)
    assert len(created(planned(wanting(1), node, foreign))) == 1
    assert created(planned(wanting(1), node, a_pod("idle", node="used"))) == []
    forged = a_pod("forged", wanting(1), "used", devices=1).model_copy(update={"namespace": "elsewhere"})
    assert len(created(planned(wanting(1), node, forged))) == 1, "a pod of another namespace, whatever its labels"


def test_a_workspace_keeps_the_existing_node_on_which_its_pods_run() -> None:
    nodes = [a_node(name, instance_type=NC24) for name in ("n1", "n2")]
    old = wanting(2, name="old", created="2026-01-01T00:00:00Z")
    young = wanting(1, name="young", created="2026-01-01T00:01:00Z")
    running = a_pod("old-0", old, "n1", devices=1), a_pod("young-0", young, "n2", devices=1)
    found = planned(old, young, *nodes, *running)
    assert [each.owner.name for each in found.creations if each.key.kind == "NodeClaim"] == ["old"]


def test_the_names_of_claims_do_not_hang_on_other_workspaces() -> None:
    """Not even for those of files, which have no UID: NodeClaims are of no namespace."""
    pool, one, other = a_node_pool("gpu", [NC24]), wanting(2, namespace="one"), wanting(2, namespace="other")

    def names(*workspaces: Any) -> set[str]:
        return {each["metadata"]["name"] for each in created(planned(pool, *workspaces))}

    assert names(one, other) == names(one) | names(other)
    assert len(names(one, other)) == 4
