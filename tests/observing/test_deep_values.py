"""An object with values that are nested too deeply is invalid, and hides no other object."""

from typing import Any

import hypothesis.strategies as st
import orjson
import pytest
from hypothesis import example, given

from plimsoll.kube import parse_json
from plimsoll.observe.cluster import DEFINITIONS, WORKSPACES, Observer
from tests.awaiting import await_condition
from tests.observing.apiserver import FakeApiserver

KEPT = 1_000


@given(
    branches=st.lists(
        st.tuples(st.integers(0, 40) | st.integers(KEPT - 3, KEPT + 3) | st.integers(1_020, 1_100), st.booleans()),
        min_size=1,
        max_size=4,
    ),
    name=st.text(alphabet='{}[]"\\a,: \n', max_size=8),
)
@example(branches=[(10_000, True), (0, False)], name='"]}')
def test_values_up_to_a_depth_are_read_and_deeper_ones_are_null(branches: list[tuple[int, bool]], name: str) -> None:
    """The list of the branches is one level. A branch of depth 3 is `[[[name]]]`, or objects with one key."""
    text = b"[" + b",".join(nested(depth, objects, name) for depth, objects in branches) + b"]"
    deep = any(depth >= 1_024 for depth, _ in branches)
    for branch, (depth, _) in zip(parse_json(text), branches, strict=True):
        levels = 0
        while isinstance(branch, dict | list):
            [branch] = branch.values() if isinstance(branch, dict) else branch  # noqa: PLW2901
            levels += 1
        cut = deep and depth > KEPT - 1
        assert (levels, branch) == ((KEPT - 1, None) if cut else (depth, name))


def nested(depth: int, objects: bool, name: str) -> bytes:
    text = orjson.dumps(name)
    before, after = (b"{" + text + b":", b"}") if objects else (b"[", b"]")
    return before * depth + text + after * depth


@pytest.mark.parametrize("text", [b"", b"{", b'{"a":1}}', b"]" * 2_000, b"[" * 2_000, b'["' + b"[" * 2_000])
def test_what_is_no_json_is_an_error(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parse_json(text)


def workspace(name: str, version: int, depth: int) -> bytes:
    template: dict[str, Any] = {"spec": {"containers": [{"name": "c", "image": "i", "unknown": "VALUE"}]}}
    raw = {
        "metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": str(version)},
        "spec": {"inference": {"template": template}},
    }
    return orjson.dumps(raw).replace(b'"VALUE"', b'{"a":' * depth + b"1" + b"}" * depth)


@pytest.mark.parametrize("depth", [100, 500, 1_100, 9_000])
def test_a_workspace_that_is_nested_too_deeply_is_invalid(
    cluster: FakeApiserver, observer: Observer, depth: int
) -> None:
    cluster.serve(WORKSPACES.path)
    cluster.put(DEFINITIONS.path, str(WORKSPACES.definition))
    items = workspace("deep", 1, depth) + b"," + workspace("other", 2, 1)
    cluster.raw[WORKSPACES.path] = b'{"metadata":{"resourceVersion":"200"},"items":[' + items + b"]}"
    observer.start()
    observer.wait_synced(120)
    del cluster.raw[WORKSPACES.path]
    snapshot = observer.snapshot()
    assert [each.name for each in snapshot.workspaces] == ["other"]
    assert [(each.ref.name, "nested deeper" in each.message) for each in snapshot.invalid_workspaces] == [
        ("deep", True)
    ]
    await_condition(lambda: cluster.watching(WORKSPACES.path), 120, "a watch")
    cluster.say(WORKSPACES.path, b'{"type":"MODIFIED","object":' + workspace("other", 201, depth) + b"}\n")
    cluster.say(WORKSPACES.path, b'{"type":"MODIFIED","object":' + workspace("deep", 202, 1) + b"}\n")
    await_condition(lambda: [each.name for each in observer.snapshot().workspaces] == ["deep"], 120, "the other one")
    assert [each.ref.name for each in observer.snapshot().invalid_workspaces] == ["other"]
