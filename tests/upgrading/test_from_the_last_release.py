"""This release reads objects and states of release 0.1, and refuses a state of a newer format by name."""

import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from plimsoll.apply import ClusterIdentity, StateUnreadableError
from plimsoll.apply.state import State, require_own
from plimsoll.observe.cluster import Stores
from plimsoll.plan import plan as make_plan
from plimsoll.plan import validate
from plimsoll.plan.view import ClusterView

DATA = Path(__file__).parent / "data"
NOW = datetime(2026, 11, 22, 8, 0, 5, tzinfo=UTC)


@pytest.fixture
def checkpoint() -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads((DATA / "state-0.1.json").read_bytes())
    return content


def read(content: dict[str, Any]) -> State:
    return State.read("capacity-prod-0", orjson.dumps(content), "tag")


def test_a_state_without_a_cluster_is_adopted_by_the_first_writer(checkpoint: dict[str, Any]) -> None:
    state = read(checkpoint)
    assert [key.kind for key in state.resources] == ["NodeClaim"]
    assert state.foreign == ()
    assert state.cluster is None
    require_own(state, ClusterIdentity("any", "https://any.example"))


def test_its_secrets_provider_is_kept(checkpoint: dict[str, Any]) -> None:
    assert list(read(checkpoint).secrets) == ["encryptionsalt"]


def test_objects_of_the_kinds_are_read_and_planned_on() -> None:
    stores = Stores()
    for obj in yaml.load_all((DATA / "objects-0.1.yaml").read_text(), yaml.CSafeLoader):
        for store in stores:
            if store.kind.name == obj["kind"]:
                store.put(*store.read(copy.deepcopy(obj)))
                assert not store.unreadable()
    view = ClusterView(stores.snapshot())
    verdicts = validate(view)
    assert [verdict.workspace.name for verdict in verdicts] == ["ws"]
    assert not make_plan(view, verdicts, NOW).deletions


def test_a_newer_format_is_refused_with_both_versions(checkpoint: dict[str, Any]) -> None:
    stack = "urn:pulumi:capacity-prod-0::plimsoll"
    record = {
        "urn": f"{stack}::plimsoll:index:Cluster::cluster",
        "type": "plimsoll:index:Cluster",
        "custom": False,
        "inputs": {"uid": "uid", "server": "https://one.example", "format": 7},
    }
    checkpoint["checkpoint"]["latest"]["resources"].append(record)
    with pytest.raises(StateUnreadableError, match=r"format 7; this release supports 1"):
        read(checkpoint)
