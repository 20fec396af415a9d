"""A state that Pulumi's Kubernetes plugin 4.34 has written: objects are adopted as it would have recorded them."""

import json
from typing import Any

import pytest

from plimsoll.apply.state import State
from plimsoll.labels import FIELD_MANAGER
from tests.shared import shared

PULUMI = {"pulumi:pulumi:Stack", "pulumi:providers:kubernetes"}
FIELDS = ("type", "id", "custom", "parent", "provider", "inputs", "outputs")
RECORDED: list[dict[str, Any]] = json.loads(shared("data/plugin/state-upsert.json").read_text())["resources"]
OBJECTS = {record["type"]: record for record in RECORDED if record["type"].startswith("kubernetes:")}
# No capacity stack has Secrets, and the plugin encrypts them.
del OBJECTS["kubernetes:core/v1:Secret"]


@pytest.fixture
def state() -> State:
    deployment = {"resources": [record for record in RECORDED if record["type"] in {*OBJECTS, *PULUMI}]}
    return State.read("capacity-test-0", json.dumps({"deployment": deployment}).encode(), None)


@pytest.mark.parametrize("token", OBJECTS)
def test_an_object_is_adopted_as_the_plugin_would_have_recorded_it(state: State, token: str) -> None:
    written = OBJECTS[token]
    live = {key: value for key, value in written["outputs"].items() if not key.startswith("__")}
    (adopted,) = (
        record
        for record in state.edited(adopt=[(live, written["inputs"])])["resources"]
        if record["type"] == token and record["urn"] != written["urn"]
    )
    outputs = {**written["outputs"], "__fieldManager": FIELD_MANAGER}
    assert {key: adopted[key] for key in FIELDS} == {key: written[key] for key in FIELDS} | {"outputs": outputs}


def test_its_objects_are_known_with_their_uids(state: State) -> None:
    uids = {record["outputs"]["metadata"]["uid"] for record in OBJECTS.values()}
    assert {resource.uid for resource in state.resources.values()} == uids
    assert state.adoptable
