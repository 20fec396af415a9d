"""Volumes with which a preset's server could not start are refused; volumes that not every pod can mount are
warnings."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_node, a_snapshot, an_environment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLAIM = {"persistentVolumeClaim": {"claimName": "models"}}


def judged(
    *, nap: bool = False, capacity_type: str | None = None, environment: Any = None, **inference: Any
) -> Verdict:
    """Two usable nodes; phi-4 has 27.31 GiB of files."""
    resource: dict[str, Any] = {"instanceType": NC24} if nap else {"labelSelector": {"matchLabels": {"pool": "a"}}}
    resource |= {"capacityType": capacity_type} if capacity_type else {}
    spec = {"resource": resource, "inference": {"preset": {"name": "phi-4"}, **inference}}
    workspace = Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec})
    seen = a_snapshot(workspace, a_node("m"), a_node("n"), environment=an_environment(nap=nap, **(environment or {})))
    return validate(seen)[0]


def ephemeral(storage: str, **more: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **more}
    return {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


@pytest.mark.parametrize("nap", [False, True])
@pytest.mark.parametrize(
    ("weights", "field"),
    [
        ({"volumeSource": {"emptyDir": {"sizeLimit": "27Gi"}}}, "emptyDir.sizeLimit"),
        ({"volumeSource": ephemeral("29G")}, "requests.storage"),
        ({"volumeSource": {"emptyDir": {}}, "readOnly": True}, "weights.readOnly"),
        ({"volumeSource": ephemeral("100Gi"), "readOnly": True}, "weights.readOnly"),
        ({"volumeSource": {"image": {"reference": "registry/phi:4"}}}, "weights.readOnly"),
        ({"volumeSource": {"secret": {"secretName": "phi"}}, "readOnly": True}, "persistentVolumeClaim"),
        ({"volumeSource": {"nfs": {"server": "s", "path": "/", "readOnly": True}}}, "weights.readOnly"),
    ],
)
def test_unusable_volumes_for_weights_are_refused(nap: bool, weights: dict[str, Any], field: str) -> None:
    for verdict in (judged(nap=nap, weights=weights), judged(nap=nap, environment={"weights": weights})):
        assert verdict.reason is Reason.INVALID_SPEC and field in verdict.message


@pytest.mark.parametrize(
    "weights",
    [
        {"volumeSource": {"emptyDir": {"sizeLimit": "28Gi"}}},
        {"volumeSource": {"emptyDir": {"sizeLimit": 30 * 2**30}}},
        {"volumeSource": ephemeral("30G")},
        {"volumeSource": ephemeral("30Gi", dataSource={"kind": "VolumeSnapshot", "name": "models"}), "readOnly": True},
        {"volumeSource": {"image": {"reference": "registry/phi:4"}}, "readOnly": True},
        {"volumeSource": {"persistentVolumeClaim": {"claimName": "m", "readOnly": True}}, "readOnly": True},
    ],
)
def test_usable_volumes_for_weights_are_accepted(weights: dict[str, Any]) -> None:
    assert judged(weights=weights).accepted
    assert not judged(weights=weights).warnings


@pytest.mark.parametrize("nap", [False, True])
def test_a_claim_for_several_nodes_needs_a_shared_access_mode(nap: bool) -> None:
    adapters = [{"source": {"name": "law", "volumeSource": {"azureDisk": {"diskName": "d", "diskURI": "u"}}}}]
    fields: dict[str, Any] = {"weights": {"volumeSource": CLAIM}, "adapters": adapters}
    assert not judged(nap=nap, **fields).warnings, "one node can have any claim"
    first, second = judged(nap=nap, replicas=2, **fields).warnings
    assert "ReadWriteMany" in first and "ephemeral" in first
    assert "law" in second and "ephemeral" not in second
    [warning] = judged(nap=nap, replicas=2, weights={"volumeSource": CLAIM, "readOnly": True}).warnings
    assert "ReadOnlyMany" in warning
    assert not judged(nap=nap, replicas=2, weights={"volumeSource": ephemeral("100Gi")}).warnings
    [warning] = judged(nap=nap, replicas=2, environment={"weights": {"volumeSource": CLAIM}}).warnings
    assert "of the Environment" in warning


def test_a_capacity_type_on_existing_nodes_is_a_warning() -> None:
    [warning] = judged(capacity_type="on-demand").warnings
    assert "resource.capacityType" in warning and "labelSelector" in warning
    assert not judged(nap=True, capacity_type="on-demand").warnings


def test_a_capacity_type_with_existing_nodes_that_count_is_a_warning() -> None:
    resource = {"instanceType": NC24, "labelSelector": {"matchLabels": {"pool": "a"}}}

    def warnings(**more: Any) -> tuple[str, ...]:
        spec = {"resource": resource | more, "inference": {"preset": {"name": "phi-4"}}}
        workspace = Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec})
        seen = a_snapshot(workspace, a_node("m", product="NVIDIA-A100-80GB-PCIe", instance_type=NC24), nap=True)
        return plan(seen, validate(seen), NOW).warnings

    [warning] = warnings(capacityType="spot")
    assert "resource.capacityType" in warning and "m" in warning
    assert not warnings()
