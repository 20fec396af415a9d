"""`plimsoll savings`: amounts name their currency, and nodes without a price are counted."""

import json
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from plimsoll.cli import app


def a_node(name: str, instance_type: str) -> dict[str, Any]:
    labels = {
        "node.kubernetes.io/instance-type": instance_type,
        "nvidia.com/gpu.product": "NVIDIA-L4",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.memory": "23034",
    }
    status = {
        "allocatable": {"cpu": "4", "memory": "14Gi", "pods": "10", "nvidia.com/gpu": "1"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def savings_of(folder: Path, *nodes: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What the command prints, and its document."""
    file = folder / "nodes.yaml"
    file.write_text(yaml.safe_dump_all(nodes))
    printed = []
    for output in ("text", "json"):
        done = CliRunner().invoke(app, ["savings", "-f", str(file), "-o", output], catch_exceptions=False)
        assert done.exit_code == 0
        printed.append(done.stdout)
    return printed[0], json.loads(printed[1])


def test_amounts_name_their_currency(tmp_path: Path) -> None:
    text, document = savings_of(tmp_path, a_node("a", "g6.xlarge"), a_node("b", "g6.xlarge"))
    assert "Saves USD an hour" in text
    assert f"Now: {document['now']:.2f} USD an hour" in text
    assert (document["unit"], document["nodesWithoutPrice"], document["prices"]["currency"]) == ("price", 0, "USD")


def test_nodes_without_a_price_are_counted_and_their_types_named(tmp_path: Path) -> None:
    text, document = savings_of(tmp_path, a_node("a", "g6.xlarge"), a_node("b", "own"), a_node("c", "own"))
    assert (document["unit"], document["nodesWithoutPrice"]) == ("gpus", 2)
    assert "2 nodes without a price (own)" in text
    assert "Prices in USD" in text, "one column has prices all the same"
