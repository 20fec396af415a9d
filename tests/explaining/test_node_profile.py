"""`plimsoll why node-profile POOL/TYPE`: each fact on new nodes with its source."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from tests.builders import gpu_labels

PRODUCT = "nvidia.com/gpu.product"
TYPE = "node.kubernetes.io/instance-type"
SHARED = {
    **gpu_labels("NVIDIA-L4-SHARED", 1, 23034),
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
}


def a_pool(name: str = "gpu", *types: str) -> dict[str, Any]:
    requirements = [
        {"key": TYPE, "operator": "In", "values": list(types or ("g6.xlarge", "g5.xlarge"))},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]},
    ]
    spec = {
        "requirements": requirements,
        "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    }
    template = {"metadata": {"labels": {"team": "ml"}}, "spec": spec}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template},
    }


def a_profile(learned: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "NodeProfile",
        "metadata": {"name": "l4"},
        "spec": {"nodePool": "gpu", "instanceType": "g6.xlarge", **spec},
        "status": {} if learned is None else {"learned": learned},
    }


def a_node(labels: dict[str, str], devices: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n7", "labels": {**labels, TYPE: "g6.xlarge", "karpenter.sh/nodepool": "gpu"}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "3", "memory": "13Gi", "pods": "50", "nvidia.com/gpu": devices},
        },
    }


def an_environment(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "prod"},
        "spec": spec,
    }


def explained(folder: Path, name: str, *objects: dict[str, Any], output: str = "json") -> Result:
    path = folder / "objects.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return CliRunner().invoke(app, ["why", "node-profile", name, "-f", str(path), "--output", output])


def fields(folder: Path, *objects: dict[str, Any]) -> dict[str, Any]:
    done = explained(folder, "gpu/g6.xlarge", *objects)
    assert done.exit_code in (0, 2), done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sources(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    facts = [*found["labels"], *found["allocatable"]]
    return {each["name"]: (each["source"], each["where"]) for each in facts}


def test_without_a_node_or_a_profile_the_catalog_and_the_node_pool_say_all(tmp_path: Path) -> None:
    done = explained(tmp_path, "gpu/g6.xlarge", a_pool())
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert found["devices"]["value"] == "1 x NVIDIA-L4"
    assert (found["divided"], found["nodeProfile"], found["learned"]) == ("", None, None)
    of = sources(found)
    assert {of[name][0] for name in (PRODUCT, "cpu", "memory", "kubernetes.io/arch")} == {"catalog"}
    assert "observed" in of[PRODUCT][1], "how the catalog knows it"
    assert of["team"] == ("declared", "NodePool gpu")
    assert found["openLabels"]["topology.kubernetes.io/zone"] == ["topology.kubernetes.io/zone In (a, b)"]
    assert found["taints"] == ["nvidia.com/gpu:NoSchedule"]
    assert (found["price"]["source"], "USD" in found["price"]["value"]) == ("catalog", True)


def test_what_was_learned_names_the_node_and_the_time_and_why_pods_cannot_share(tmp_path: Path) -> None:
    learned = {"node": "n1", "seen": "2026-01-01T00:00:00Z", "labels": SHARED, "allocatable": {"memory": "14Gi"}}
    profile = a_profile(learned, allocatable={"cpu": "3", "ephemeral-storage": "80Gi"})
    done = explained(tmp_path, "gpu/g6.xlarge", a_pool(), profile)
    found = json.loads(done.stdout)
    assert done.exit_code == 2
    of = sources(found)
    assert of[PRODUCT] == ("learned", "NodeProfile l4: node n1 at 2026-01-01T00:00:00Z")
    assert (of["memory"][0], of["cpu"]) == ("learned", ("declared", "spec of NodeProfile l4"))
    assert of["ephemeral-storage"] == of["cpu"]
    assert (found["devices"]["division"], found["devices"]["replicas"]) == ("time-slicing", 4)
    assert "sharedDevices" in found["divided"]
    assert found["learned"] == {"node": "n1", "seen": "2026-01-01T00:00:00Z"}


def test_nodes_that_exist_count_first_and_contradictions_are_named(tmp_path: Path) -> None:
    """The node announces 2 devices of the 4 that its labels say."""
    found = fields(tmp_path, a_pool(), a_profile({"labels": SHARED}), a_node(SHARED, "2"))
    of = sources(found)
    assert of[PRODUCT] == of["cpu"] == ("live", "node n7")
    assert [(each["node"], each["reason"]) for each in found["findings"]] == [("n7", "FewerAllocatable")]


def test_declared_labels_name_the_node_profile(tmp_path: Path) -> None:
    found = fields(tmp_path, a_pool(), a_profile(labels={"nvidia.com/gpu.family": "own"}))
    assert sources(found)["nvidia.com/gpu.family"] == ("declared", "spec of NodeProfile l4")
    assert sources(found)[PRODUCT][0] == "catalog"


def test_own_prices_and_shared_devices_name_the_environment(tmp_path: Path) -> None:
    shared = {"nodePool": "gpu", "resource": "nvidia.com/gpu.shared", "perGpu": 4}
    pool = a_pool()
    request = {"key": "plimsoll.dev/request", "operator": "Exists"}
    pool["spec"]["template"]["spec"]["requirements"].append(request)
    demand = {"provisioner": "trigger-pod", "sharedDevices": [shared]}
    environment = an_environment(catalog={"prices": {"g6.xlarge": 0.5}}, demand=demand)
    found = fields(tmp_path, pool, environment)
    assert (found["price"]["value"].split()[0], found["price"]["source"]) == ("0.5", "declared")
    assert (found["devices"]["resource"], found["devices"]["source"]) == ("nvidia.com/gpu.shared", "declared")
    assert "prod" in found["price"]["where"]
    assert "prod" in found["devices"]["where"]


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("gpus/g6.xlarge", "gpus", "gpu"),
        ("gpu/g6.large", "g6.large", "g6.xlarge"),
        ("gpu", "POOL/TYPE", "gpu/g6.xlarge"),
        ("/g6.xlarge", "POOL/TYPE", ""),
    ],
)
def test_an_unknown_node_pool_or_type_is_named_with_near_ones(
    tmp_path: Path, name: str, message: str, hint: str
) -> None:
    error = explained(tmp_path, name, a_pool()).exception
    assert isinstance(error, PlimsollError)
    assert message in error.message
    assert hint in (error.hint or "")


def test_a_type_that_the_node_pool_skips_says_why(tmp_path: Path) -> None:
    wrong = a_profile(labels={"nvidia.com/gpu.count": "many"})
    error = explained(tmp_path, "gpu/g6.xlarge", a_pool(), wrong).exception
    assert isinstance(error, PlimsollError)
    assert "nvidia.com/gpu.count" in (error.hint or "")


def test_the_text_has_every_section(tmp_path: Path) -> None:
    done = explained(tmp_path, "gpu/G6.XLARGE", a_pool(), a_node(SHARED, "2"), output="text")
    assert done.exit_code == 2
    for words in ("NodeProfile gpu/g6.xlarge", "NVIDIA-L4-SHARED", "node n7", "Labels left open", "Findings"):
        assert words in done.stdout, done.stdout
