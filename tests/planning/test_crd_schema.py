"""A planned NodeClaim is valid by the schema of Karpenter's CRD, at the version that `tools/karpenter` pins."""

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import NC24, a_node_pool
from tests.planning.test_node_claims import created, planned, wanting

jsonschema = pytest.importorskip("jsonschema")

GO_MOD = Path(__file__).parents[2] / "tools" / "karpenter" / "go.mod"
CRD = "pkg/apis/crds/karpenter.sh_nodeclaims.yaml"


@cache
def schema() -> dict[str, Any]:
    """The v1 schema from Go's module cache."""
    found = re.search(r"sigs\.k8s\.io/karpenter (v\S+)", GO_MOD.read_text())
    assert found is not None
    modules = Path(os.environ.get("GOMODCACHE") or Path(os.environ.get("GOPATH") or Path.home() / "go") / "pkg" / "mod")
    file = modules / "sigs.k8s.io" / f"karpenter@{found[1]}" / CRD
    if not file.exists():
        pytest.skip("Karpenter's Go module is not in the module cache")
    versions = yaml.load(file.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    v1 = next(version for version in versions if version["name"] == "v1")["schema"]["openAPIV3Schema"]
    closed: dict[str, Any] = _closed(v1)
    return closed


def _closed(value: Any) -> Any:
    """The schema with unknown fields forbidden, because the apiserver would drop them silently."""
    if isinstance(value, list):
        return [_closed(item) for item in value]
    if not isinstance(value, dict):
        return value
    closed = {key: _closed(item) for key, item in value.items()}
    if isinstance(closed.get("properties"), dict) and "additionalProperties" not in closed:
        closed["additionalProperties"] = False
    return closed


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"preset": "phi-4"},
        {"instance_type": "p5.48xlarge", "uid": "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"},
        {"expressions": [{"key": "zone", "operator": "In", "values": ["a"]}, {"key": "x", "operator": "Exists"}]},
        {"name": "w" * 253, "namespace": "n" * 63, "inference": False},
        {"instance_type": "metal-8"},
    ],
)
@pytest.mark.parametrize("node_claims", [{}, {"taints": []}, {"taints": [{"key": "k"}], "storageGib": 100}])
def test_a_planned_claim_fits_the_schema(fields: dict[str, Any], node_claims: dict[str, Any]) -> None:
    pool = a_node_pool("metal", ["metal-8"])
    manifests = created(planned(wanting(1, **fields), pool, nodeClaims=node_claims))
    assert len(manifests) == 1
    jsonschema.validate({**manifests[0], "metadata": {}}, schema())


def test_the_schema_refuses_what_is_wrong() -> None:
    [manifest] = created(planned(wanting(1, instance_type=NC24)))
    wrong = {**manifest, "metadata": {}, "spec": {**manifest["spec"], "requirements": [{"key": "a b"}]}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema())
