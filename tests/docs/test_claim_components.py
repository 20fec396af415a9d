"""The examples of DeviceClass and ResourceClaimTemplate in the reference of components are working code."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.plan.demand import DemandPlanner
from plimsoll.stacks import run
from tests.claims.objects import Manifest, a_device, a_node, a_pod, a_slice, snapshot_of
from tests.components.declaring import declared
from tests.pages import CHECKOUT

SECTION = (
    (CHECKOUT / "docs/reference/components.md")
    .read_text()
    .partition("## DeviceClass, ResourceClaimTemplate\n")[2]
    .partition("\n## ")[0]
)
KINDS = ("DeviceClass", "ResourceClaimTemplate")


def example(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
    text: str = found
    return text


def by_stack_file() -> list[dict[str, Any]]:
    config = yaml.safe_load(example("yaml"))["config"]
    return declared(
        run, config={"plimsoll:layer": "objects", **{key: json.dumps(value) for key, value in config.items()}}
    )


def by_program() -> list[dict[str, Any]]:
    return declared(lambda: exec(example("python"), {"__name__": "example"}))


def objects_of(resources: list[dict[str, Any]]) -> list[Manifest]:
    """The manifests of the two kinds, without what Plimsoll writes into `metadata` besides."""
    found = []
    for each in resources:
        kind = each["type"].rpartition(":")[2]
        if kind in KINDS:
            metadata = {key: value for key, value in each["inputs"]["metadata"].items() if key in ("name", "namespace")}
            found.append({**each["inputs"], "kind": kind, "metadata": metadata})
    return found


def test_stack_file_and_program_declare_the_same() -> None:
    made = objects_of(by_stack_file())
    assert [(each["kind"], each["metadata"]["name"]) for each in made] == [
        (KINDS[0], "large-gpu"),
        (KINDS[1], "one-large"),
    ]
    assert objects_of(by_program()) == made


@pytest.mark.parametrize(("memory", "placed"), [("80Gi", 1), ("23034Mi", 0)])
def test_pods_with_the_template_have_a_place_where_its_devices_are(tmp_path: Path, memory: str, placed: int) -> None:
    node = a_node("n1"), a_slice("n1", [a_device("gpu-0", memory=memory)])
    snapshot = snapshot_of(tmp_path, *objects_of(by_program()), *node, a_pod("waiting", "one-large"))
    (demand,) = DemandPlanner().plan(snapshot).demands
    assert sum(map(len, demand.on_nodes.values())) == placed
