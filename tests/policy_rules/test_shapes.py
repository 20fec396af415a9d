"""Violations of the Workspace model are findings with the model's messages; for KAITO's Workspaces, so are fields that
exclude each other."""

from typing import Any

import pytest

from plimsoll.errors import InvalidObjectError
from plimsoll.model.api import Workspace
from tests.policy_rules.manifests import Manifest, a_kaito_workspace, an_inference_set, findings

POD = {"spec": {"containers": [{"name": "own", "image": "own:1"}]}}
PRESET = {"name": "phi-4"}


def a_workspace(spec: dict[str, Any] | None = None) -> Manifest:
    resource = {"labelSelector": {"matchLabels": {"pool": "a"}}}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "ws", "namespace": "research"},
        "spec": {"inference": {"preset": PRESET}, "resource": resource} if spec is None else spec,
    }


def shape(manifest: Manifest) -> list[tuple[str, str]]:
    return [(each.field, each.message) for each in findings(manifest) if each.rule == "workspace-shape"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"inference": {"preset": PRESET, "template": POD}}, "spec.inference"),
        ({"inference": {}}, "spec.inference"),
        ({"inference": {"preset": PRESET, "replicas": -1}}, "spec.inference.replicas"),
        ({"inference": {"preset": PRESET}, "resource": {"count": 0}}, "spec.resource.count"),
        ({"inference": {"preset": PRESET, "replicas": "3"}}, "spec.inference.replicas"),
        ({"inference": {"preset": PRESET, "stableIdentity": "yes"}}, "spec.inference.stableIdentity"),
        ({"inference": {"preset": PRESET}, "resource": {"count": True}}, "spec.resource.count"),
        ({"inference": {"preset": PRESET}, "resources": {}}, "spec.resources"),
        ({"inference": {"preset": PRESET}, "tuning": {"preset": PRESET}}, "spec.tuning.input"),
    ],
)
def test_values_that_the_model_refuses_are_findings_with_its_messages(spec: dict[str, Any], field: str) -> None:
    manifest = a_workspace(spec)
    found = shape(manifest)
    assert field in [each for each, _ in found]
    with pytest.raises(InvalidObjectError) as refused:
        Workspace.read(manifest)
    assert all(message.split(": ", 2)[-1] in refused.value.message for _, message in found)


def test_valid_workspaces_have_no_findings() -> None:
    assert [shape(each) for each in (a_workspace(), a_kaito_workspace(), an_inference_set())] == [[], [], []]


def test_kaitos_fields_that_exclude_each_other() -> None:
    both = a_kaito_workspace(inference={"preset": PRESET, "template": POD})
    assert shape(both) == [
        ("inference", "Workspace default/phi: inference: preset and template exclude each other: keep one")
    ]
    tuned = a_kaito_workspace(inference={"preset": PRESET}, tuning={"preset": PRESET})
    assert [field for field, _ in shape(tuned)] == ["tuning"]
