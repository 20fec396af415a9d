"""Workspaces on nodes whose GPUs pods get by claims: they are validated on what is published."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from plimsoll.model import Reason
from plimsoll.plan import plan, validate
from tests.claims.objects import L4, Manifest, a_class, a_node, a_slice, gpus, snapshot_of
from tests.claims.test_demand import FOUR, a_node_pool, a_profile

SERVED = a_class(extended_resource="nvidia.com/gpu")
"""The class of NVIDIA's chart: pods may request whole GPUs as before."""


def a_workspace(**resource: Any) -> Manifest:
    container = {"name": "main", "image": "server", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "chat", "namespace": "team", "uid": "uid-chat"},
        "spec": {
            "resource": {"labelSelector": {"matchLabels": {"pool": "claimed"}}, **resource},
            "inference": {"template": {"spec": {"containers": [container]}}},
        },
    }


def nodes(*counts: int, attributes: dict[str, Any] | None = None) -> list[Manifest]:
    found = []
    for number, count in enumerate(counts):
        node = a_node(f"n{number}", instance_type=FOUR)
        node["metadata"]["labels"]["pool"] = "claimed"
        found += [node, a_slice(f"n{number}", gpus(count, attributes or L4))]
    return found


def test_existing_nodes_are_validated_on_their_slices(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, SERVED, a_workspace(), *nodes(4, 4))
    (verdict,) = validate(snapshot)
    assert verdict.reason is Reason.ACCEPTED, verdict.message
    assert "4 x NVIDIA-L4" in verdict.message
    (made,) = plan(snapshot, (verdict,), datetime(2026, 1, 1, tzinfo=UTC)).creations
    (container,) = made.manifest["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize(
    ("manifests", "reason", "said"),
    [
        ([SERVED, *nodes(4, 2)], Reason.NON_UNIFORM_NODES, "count"),
        ([a_class(), *nodes(4)], Reason.NO_USABLE_NODES, "extendedResourceName nvidia.com/gpu"),
        ([SERVED, *nodes(1)], Reason.NO_USABLE_NODES, "1 nvidia.com/gpu allocatable, 4 requested"),
    ],
)
def test_nodes_that_cannot_serve_are_refused(
    tmp_path: Path, manifests: list[Manifest], reason: Reason, said: str
) -> None:
    (verdict,) = validate(snapshot_of(tmp_path, a_workspace(), *manifests))
    assert verdict.reason is reason
    assert said in verdict.message


def test_node_claims_ask_for_no_extended_resource_there(tmp_path: Path) -> None:
    environment = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "dev"},
        "spec": {"nodeAutoProvisioning": "enabled"},
    }
    profile = a_profile(strings={"productName": "NVIDIA L4"})
    for objects, asked in (([profile], set()), ([], {"nvidia.com/gpu"})):
        snapshot = snapshot_of(tmp_path, environment, SERVED, a_node_pool(), a_workspace(instanceType=FOUR), *objects)
        created = plan(snapshot, validate(snapshot), datetime(2026, 1, 1, tzinfo=UTC)).creations
        (claim,) = [each.manifest for each in created if each.key.kind == "NodeClaim"]
        requests = claim["spec"].get("resources", {}).get("requests", {})
        assert {name for name in requests if "gpu" in name} == asked
