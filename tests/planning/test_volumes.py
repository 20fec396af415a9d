"""Nodes of Workspaces are where the volumes of their pods are."""

from typing import Any

import pytest

from plimsoll.model import Plan, Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.plan import validate
from tests.builders import NC24, a_claim, a_node, a_node_pool, a_snapshot, a_template, a_workspace, an_environment
from tests.placement.rules import HOST, ZONE, zones
from tests.placement.storage import a_storage_class, a_volume, a_volume_claim, in_zone
from tests.planning.test_node_claims import created, planned

TEAM = "default"
BOUND = a_volume_claim(volume="pv", namespace=TEAM)
IN_B = in_zone("pv", "b", namespace=TEAM)


def with_volume(source: dict[str, Any] | None = None, **fields: Any) -> Workspace:
    template = a_template()
    own = source or {"persistentVolumeClaim": {"claimName": "models"}}
    spec = template["spec"] | {"volumes": [{"name": "data", **own}]}
    return a_workspace(template={**template, "spec": spec}, **fields)


def asked_zones(plan: Plan) -> list[list[str]]:
    requirements = [claim["spec"]["requirements"] for claim in created(plan)]
    return [each["values"] for own in requirements for each in own if each["key"] == ZONE]


def verdict_of(*objects: Any, **environment: Any) -> Verdict:
    (found,) = validate(a_snapshot(*objects, environment=an_environment(**environment)))
    return found


def test_a_node_claim_requires_the_zone_of_the_volume() -> None:
    assert asked_zones(planned(with_volume(instance_type=NC24), BOUND, IN_B)) == [["b"]]
    wide = a_volume("pv", {ZONE: ["b"]}, {ZONE: ["c"]}, namespace=TEAM)
    assert asked_zones(planned(with_volume(instance_type=NC24), BOUND, wide)) == [["b", "c"]]
    waiting = a_volume_claim(storage_class="fast", namespace=TEAM)
    assert asked_zones(planned(with_volume(instance_type=NC24), waiting, a_storage_class("fast", "c"))) == [["c"]]


def test_the_volumes_of_presets_and_of_the_environment_count() -> None:
    weights = {"volumeSource": {"persistentVolumeClaim": {"claimName": "models"}}}
    served = a_workspace(preset="phi-4", instance_type=NC24)
    assert asked_zones(planned(served, BOUND, IN_B, weights=weights)) == [["b"]]


@pytest.mark.parametrize("nap", [True, False])
@pytest.mark.parametrize(
    ("objects", "refused"),
    [
        ([BOUND, a_volume("pv", namespace=TEAM, size="20Gi")], True),
        ([BOUND, a_volume("pv", namespace=TEAM, size="28Gi")], False),
        # What the claim asks for is not what its volume has.
        ([a_volume_claim(volume="pv", namespace=TEAM, size="1Ti"), a_volume("pv", namespace=TEAM, size="20Gi")], True),
        ([a_volume_claim(volume="pv", namespace=TEAM, size="1Gi"), a_volume("pv", namespace=TEAM, size="30Gi")], False),
        ([a_volume_claim(storage_class="fast", namespace=TEAM, size="20G"), a_storage_class("fast")], True),
        ([a_volume_claim(storage_class="fast", namespace=TEAM, size="30G"), a_storage_class("fast")], False),
        # File systems grow, whatever size they are said to have.
        ([BOUND, a_volume("pv", namespace=TEAM, size="5Gi", driver="efs.csi.aws.com")], False),
        (
            [
                a_volume_claim(storage_class="efs", namespace=TEAM, size="5Gi"),
                a_storage_class("efs", provisioner="efs.csi.aws.com"),
            ],
            False,
        ),
        ([BOUND, a_volume("pv", namespace=TEAM, size="no size")], False),
    ],
)
def test_a_disk_that_the_model_does_not_fit_is_refused_before_a_node_is_bought(
    nap: bool, objects: list[Any], refused: bool
) -> None:
    weights = {"volumeSource": {"persistentVolumeClaim": {"claimName": "models"}}}
    types: dict[str, Any] = {"instance_type": NC24} if nap else {}
    found = verdict_of(a_workspace(preset="phi-4", **types), a_node("n"), *objects, weights=weights, nap=nap)
    assert found.accepted is not refused, found.message
    if refused:
        assert found.reason is Reason.INVALID_SPEC
        assert "27.31 GiB" in found.message and "'models'" in found.message


def test_the_pool_of_the_zone_is_the_one_that_allows_it() -> None:
    pools = [a_node_pool(zone, [NC24], requirements=[zones(zone)]) for zone in "ab"]
    plan = planned(with_volume(instance_type=NC24), BOUND, IN_B, *pools)
    assert asked_zones(plan) == [["b"], ["b"]]
    found = verdict_of(with_volume(instance_type=NC24), BOUND, IN_B, pools[0], nap=True)
    assert (found.reason, "volume" in found.message) == (Reason.INVALID_SPEC, True)
    own = verdict_of(with_volume(instance_type=NC24, selector={ZONE: "a"}), BOUND, IN_B, nap=True)
    assert (own.reason, "volume" in own.message) == (Reason.INVALID_SPEC, True)


@pytest.mark.parametrize(
    ("selector", "zones", "volume", "named"),
    [
        ({ZONE: "a"}, (), True, {"resource.labelSelector"}),
        ({}, ("a", "c"), True, {"resource.zones"}),
        ({ZONE: "a"}, ("a",), True, {"resource.labelSelector", "resource.zones"}),
        ({ZONE: "a"}, ("c",), False, {"resource.labelSelector", "resource.zones"}),
    ],
)
def test_the_fields_that_contradict_the_zone_are_named(
    selector: dict[str, str], zones: tuple[str, ...], volume: bool, named: set[str]
) -> None:
    made = with_volume(instance_type=NC24, selector=selector)
    resource = made.spec.resource.model_copy(update={"zones": zones})
    workspace = made.model_copy(update={"spec": made.spec.model_copy(update={"resource": resource})})
    found = verdict_of(workspace, BOUND, IN_B, nap=True)
    assert found.reason is Reason.INVALID_SPEC
    fields = ("resource.labelSelector", "resource.zones")
    assert {each for each in fields if each in found.message} == named, found.message
    assert ("volumes" in found.message) is volume


def test_existing_nodes_count_only_where_the_volume_is() -> None:
    nodes = [a_node(f"n-{zone}", instance_type=NC24, more_labels={ZONE: zone}) for zone in "ab"]
    plan = planned(with_volume(instance_type=NC24), BOUND, IN_B, nodes[0])
    assert asked_zones(plan) == [["b"]]
    assert not created(planned(with_volume(instance_type=NC24), BOUND, IN_B, *nodes))


@pytest.mark.parametrize("selector", [{"pool": "a"}, {}])
def test_byo_nodes_are_those_where_the_volume_is(selector: dict[str, str]) -> None:
    nodes = [a_node(f"n-{zone}", more_labels={ZONE: zone, HOST: f"n-{zone}"}) for zone in "ab"]
    found = verdict_of(with_volume(selector=selector), BOUND, IN_B, *nodes)
    assert found.node_names == ("n-b",)
    elsewhere = verdict_of(with_volume(selector=selector), BOUND, IN_B, nodes[0])
    assert elsewhere.reason in (Reason.NO_USABLE_NODES, Reason.NO_MATCHING_NODES)
    assert "not where its volumes are" in elsewhere.message
    local = a_volume("pv", {HOST: ["n-a"]}, namespace=TEAM)
    assert verdict_of(with_volume(selector=selector), BOUND, local, *nodes).node_names == ("n-a",)


@pytest.mark.parametrize("nap", [True, False])
def test_claims_that_are_not_there_are_awaited_by_name(nap: bool) -> None:
    own = with_volume(instance_type=NC24) if nap else with_volume()
    for objects in ([a_volume_claim("other", namespace=TEAM)], [BOUND, in_zone("pv", "b", namespace="others")]):
        found = verdict_of(own, a_node("n", instance_type=NC24), *objects, nap=nap)
        assert not found.accepted
        assert "'models'" in found.message
        assert "zone" not in found.message


def test_a_claim_that_is_gone_removes_no_node() -> None:
    plan = planned(with_volume(instance_type=NC24), a_claim("c"), a_volume_claim("other", namespace=TEAM))
    assert not plan.deletions


def test_alternatives_that_no_node_claim_can_require_are_refused() -> None:
    odd = a_volume("pv", {ZONE: ["b"]}, {"rack": ["r"]}, namespace=TEAM)
    assert verdict_of(with_volume(instance_type=NC24), BOUND, odd, nap=True).reason is Reason.NOT_SUPPORTED
    template = {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}
    each = with_volume({"ephemeral": template}, instance_type=NC24, replicas=2)
    assert asked_zones(planned(each, a_storage_class("fast", "c"), a_volume_claim("other"))) == [["c"], ["c"]]
