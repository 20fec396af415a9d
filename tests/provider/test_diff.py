import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.provider import Change, changes, declared, parse_property_path, property_path, prune, touches

texts = st.text(min_size=1).filter(lambda text: text != "*" and "\\" not in text)
paths = st.lists(st.one_of(texts, st.integers(0, 9)), min_size=1).map(tuple).filter(lambda p: isinstance(p[0], str))
trees = st.recursive(
    st.one_of(st.integers(), st.text(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=15,
)


@given(trees)
def test_a_value_does_not_differ_from_itself(tree: Any) -> None:
    assert changes(tree, tree) == []
    assert prune(tree, tree) == tree


@given(st.dictionaries(st.text(), trees), st.dictionaries(st.text(), trees))
def test_every_difference_is_a_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert (changes(old, new) == []) == (json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True))


def test_fields_that_the_server_adds_are_ignored() -> None:
    live = {"spec": {"replicas": 1, "strategy": "Rolling", "containers": [{"image": "a", "pull": "Always"}, {}]}}
    shape = {"spec": {"replicas": 2, "containers": [{"image": "b"}]}}
    assert prune(live, shape) == {"spec": {"replicas": 1, "containers": [{"image": "a"}]}}


@pytest.mark.parametrize(
    ("live", "shape", "kept"),
    [
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1000m"}}, {"requests": {"cpu": "1000m"}}),
        ({"requests": {"cpu": "2"}}, {"requests": {"cpu": "1000m"}}, {"requests": {"cpu": "2"}}),
        ({"data": {"cpu": "1"}}, {"data": {"cpu": "1000m"}}, {"data": {"cpu": "1"}}),
        ({}, {"annotations": {}}, {"annotations": {}}),
        ({}, {"annotations": {"a": "1"}}, {}),
    ],
)
def test_other_spellings_of_a_quantity_are_no_drift(live: Any, shape: Any, kept: Any) -> None:
    assert prune(live, shape) == kept


def test_changes_are_added_deleted_or_updated() -> None:
    old = {"a": 1, "b": {"c": [1, 2, 3]}, "gone": "x"}
    new = {"a": 1, "b": {"c": [1, 5], "d": "y"}}
    assert set(changes(old, new)) == {
        Change(("gone",), "delete", "x"),
        Change(("b", "c", 1), "update", 5),
        Change(("b", "c", 2), "delete", 3),
        Change(("b", "d"), "add", "y"),
    }


def test_true_differs_from_1() -> None:
    assert changes({"a": True}, {"a": 1}) == [Change(("a",), "update", 1)]


@given(paths)
def test_property_paths_read_back(path: tuple[str | int, ...]) -> None:
    assert parse_property_path(property_path(path)) == path


def test_property_paths_look_as_the_engine_writes_them() -> None:
    path = ("spec", "containers", 0, "image")
    assert property_path(path) == "spec.containers[0].image"
    assert property_path(("metadata", "labels", "a.b/c")) == 'metadata.labels["a.b/c"]'
    assert parse_property_path("spec.containers[*].image") == ("spec", "containers", "*", "image")


@pytest.mark.parametrize(
    ("path", "value", "hit"),
    [
        (("spec", "selector", "matchLabels", "app"), "x", True),
        (("spec", "selector"), {}, True),
        (("spec",), {"selector": {"a": 1}}, True),
        (("spec",), {"replicas": 1}, False),
        (("spec", "replicas"), 1, False),
    ],
)
def test_a_change_of_a_parent_or_a_child_changes_a_field(path: Any, value: Any, hit: bool) -> None:
    assert touches(("spec", "selector"), Change(path, "update", value)) is hit


def test_string_data_is_compared_as_the_data_it_becomes() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "YQ=="}, "stringData": {"b": "b"}}
    assert declared(secret)["data"] == {"a": "YQ==", "b": "Yg=="}
    assert "stringData" not in declared(secret)
    assert "stringData" in secret
