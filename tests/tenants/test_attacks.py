"""The manifests of attacks that were tried on a live cluster, and what commands say of them."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.command import plimsoll
from tests.shared import shared


def answer(*arguments: str, given: str = "") -> Any:
    return json.loads(plimsoll(*arguments, "-o", "json", given=given).stdout)


def test_shares_that_nobody_placed_use_no_gpu() -> None:
    """Two pods name 8 GPUs each of two nodes: the pods of another team have room there."""
    found = answer("demand", "-f", str(shared("cases/trust/A2_forged.yaml")))
    assert "Scheduled" not in {each["phase"] for each in found["demands"]}
    assert sum(each["gpus"] for each in found["demands"]) == 0, "no new GPU"


def test_a_workspace_does_not_label_its_nodes_as_others_do(tmp_path: Path) -> None:
    environment = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "prod"},
        "spec": {"nodeAutoProvisioning": "enabled"},
    }
    attack = shared("cases/trust/A4_node_labels.yaml").read_text()
    (tmp_path / "attack.yaml").write_text(f"{attack}\n---\n{yaml.safe_dump(environment)}")
    found = answer("plan", "-f", str(tmp_path / "attack.yaml"))
    (verdict,) = found["verdicts"]
    assert verdict["reason"] == "SelectorReserved"
    assert "node-restriction.kubernetes.io/tier" in verdict["message"]
    assert found["create"] == []
