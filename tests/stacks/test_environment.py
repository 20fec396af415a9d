"""The objects that the committed stack files declare."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.stacks import run
from tests.components.declaring import declared

ROOT = Path(__file__).resolve().parents[2]
STACKS = sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in (ROOT / "stacks").glob("*.yaml"))


def declare(stack: str) -> dict[tuple[str, str], dict[str, Any]]:
    """(kind, name) of each object to its manifest."""
    config = yaml.safe_load((ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"]
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    resources = declared(run, stack=stack, config=texts)
    return {(each["type"].rpartition(":")[2], each["inputs"]["metadata"]["name"]): each["inputs"] for each in resources}


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_file_is_valid(stack: str) -> None:
    assert declare(stack)


@pytest.mark.parametrize("stack", STACKS)
def test_no_stack_file_holds_a_secret_or_a_salt(stack: str) -> None:
    text = (ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text()
    assert "secure:" not in text
    assert "encryptionsalt" not in text


def test_existing_nodes() -> None:
    made = declare("sandbox")
    assert made["Environment", "sandbox"]["spec"]["nodeAutoProvisioning"] == "disabled"
    policy = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    gate = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    assert {kind for kind, _ in made} == {"Environment", "Queue", "Namespace", "Workspace", "ConfigMap"} | policy | gate
    for name in ("phi", "mixed"):
        workspace = made["Workspace", name]
        assert workspace["metadata"]["namespace"] == "inference"
        assert "instanceType" not in workspace["spec"]["resource"]


def test_provisioned_nodes() -> None:
    made = declare("sandbox-nap")
    chat = made["Workspace", "chat"]["spec"]
    assert (chat["resource"]["instanceType"], chat["inference"]["replicas"]) == ("Standard_NC24ads_A100_v4", 3)
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    assert made["NodePool", "gpu"]["spec"]["template"]["spec"]["nodeClassRef"] == reference
    assert made["Environment", "sandbox-nap"]["spec"]["nodeClaims"]["nodeClassRef"] == reference


@pytest.mark.parametrize("stack", ["sandbox", "sandbox-nap"])
def test_each_stack_contains_its_deletion_protection(stack: str) -> None:
    made = declare(stack)
    metadata = made["ConfigMap", f"plimsoll-environment-{stack}"]["metadata"]
    assert metadata["labels"] == {"plimsoll.dev/guard": "environment"}
    assert metadata["annotations"]["plimsoll.dev/environment"] == stack


def test_declared_objects_are_not_awaited_and_have_one_field_manager() -> None:
    for (kind, _), inputs in declare("sandbox-nap").items():
        annotations = inputs["metadata"]["annotations"]
        assert annotations["pulumi.com/patchFieldManager"] == "plimsoll-stack"
        if kind in ("Workspace", "NodePool", "Queue", "Environment"):
            assert annotations["pulumi.com/skipAwait"] == "true"
