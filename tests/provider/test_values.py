from typing import Any

import orjson
import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.errors import PlimsollError
from plimsoll.provider import (
    UNKNOWN,
    Secret,
    decode,
    encode,
    has_secrets,
    has_unknowns,
    mark_secrets,
    plain,
    secret_texts,
)

leaves = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.text(), st.floats(-1e9, 1e9))
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner), st.dictionaries(st.text(), inner), st.builds(Secret, leaves | st.lists(leaves))
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), values))
def test_encoded_values_decode_to_the_same(properties: dict[str, object]) -> None:
    assert decode(encode(properties)) == properties


@given(st.dictionaries(st.text(), values))
def test_plain_values_hold_no_secret_mark(properties: dict[str, object]) -> None:
    assert not has_secrets(plain(properties))


def test_whole_numbers_become_integers() -> None:
    struct = struct_pb2.Struct()
    struct.update({"replicas": 3.0, "share": 0.5, "on": True})
    decoded = decode(struct)
    assert decoded == {"replicas": 3, "share": 0.5, "on": True}
    assert isinstance(decoded["replicas"], int)
    assert decoded["on"] is True


@pytest.mark.parametrize("number", [1e20, -1e19, 2.0**63, 1e308])
def test_numbers_that_no_int64_holds_stay_as_they_are(number: float) -> None:
    struct = struct_pb2.Struct()
    struct.update({"maximum": number})
    decoded = decode(struct)["maximum"]
    assert isinstance(decoded, float)
    assert orjson.loads(orjson.dumps(decoded)) == number
    assert encode({"maximum": decoded}) == struct


def test_the_smallest_int64_is_an_integer() -> None:
    struct = struct_pb2.Struct()
    struct.update({"minimum": -(2.0**63)})
    assert isinstance(decode(struct)["minimum"], int)


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
def test_what_is_no_number_of_json_is_refused(number: str) -> None:
    struct = struct_pb2.Struct()
    struct.update({"maximum": float(number)})
    with pytest.raises(PlimsollError, match=number):
        decode(struct)


def test_nulls_of_objects_are_left_out() -> None:
    struct = struct_pb2.Struct()
    struct.update({"gone": None, "kept": [None]})
    assert decode(struct) == {"kept": [None]}


def test_schema_extensions_have_dashes_for_the_apiserver_and_underscores_for_the_sdk() -> None:
    schema = {"x_kubernetes_preserve_unknown_fields": True}
    decoded = decode(encode(schema))
    assert decoded == {"x-kubernetes-preserve-unknown-fields": True}
    assert "x_kubernetes_preserve_unknown_fields" in encode(decoded, underscored=True).fields


def test_unknowns_are_found_inside_secrets_and_lists() -> None:
    assert has_unknowns({"a": [{"b": Secret(UNKNOWN)}]})
    assert not has_unknowns({"a": [{"b": Secret("known")}]})


def test_secrets_are_marked_at_their_own_path() -> None:
    live = {"spec": {"open": "1", "hidden": "2", "list": ["3", "4"]}, "status": {"hidden": "5"}}
    source = {"spec": {"hidden": Secret("2"), "list": ["3", Secret("4")]}}
    assert mark_secrets(live, source) == {
        "spec": {"open": "1", "hidden": Secret("2"), "list": ["3", Secret("4")]},
        "status": {"hidden": "5"},
    }


def test_a_list_with_a_moved_secret_is_secret_as_a_whole() -> None:
    source = {"list": [{"name": "a", "value": Secret("x")}, {"name": "b"}]}
    defaulted = {"list": [{"name": "a", "value": "x", "kept": True}, {"name": "b"}, {"name": "added"}]}
    assert mark_secrets(defaulted, source)["list"] == [
        {"name": "a", "value": Secret("x"), "kept": True},
        {"name": "b"},
        {"name": "added"},
    ]
    for moved in ([{"name": "b"}, {"name": "a", "value": "x"}], [{"name": "a", "value": "y"}, {"name": "b"}], []):
        assert mark_secrets({"list": moved}, source)["list"] == Secret(moved)


def test_data_of_a_secret_is_always_secret() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "x"}, "stringData": {"b": "y"}}
    marked = mark_secrets(secret, {})
    assert marked["data"] == Secret({"a": "x"})
    assert marked["stringData"] == Secret({"b": "y"})


@pytest.mark.parametrize(
    ("kind", "source", "hidden"),
    [("Secret", {}, True), ("ConfigMap", {"data": {"a": Secret("hush")}}, True), ("ConfigMap", {}, False)],
)
def test_what_kubectl_copied_of_an_object_with_secrets_is_secret(
    kind: str, source: dict[str, Any], hidden: bool
) -> None:
    copied = "kubectl.kubernetes.io/last-applied-configuration"
    annotations = {copied: '{"data":{"a":"hush"}}', "b": "open"}
    live = {"apiVersion": "v1", "kind": kind, "metadata": {"annotations": annotations}, "data": {"a": "hush"}}
    marked = mark_secrets(live, source)
    assert set(secret_texts(marked)) == ({"hush", annotations[copied]} if hidden else set())
    assert plain(marked) == live
    assert not has_secrets(live)


def test_the_repr_of_a_secret_hides_its_value() -> None:
    assert "hunter" not in repr(Secret("hunter"))


def test_strings_of_secrets_are_found_at_any_depth() -> None:
    assert set(secret_texts({"a": Secret({"b": ["x", 1]}), "c": "y", "d": [Secret("z")]})) == {"x", "z"}


def test_archives_are_refused() -> None:
    archive = {"4dabf18193072939515e22adb298388d": "0def7320c3a5731c473e5ecbe6d01bc7", "path": "/tmp"}
    with pytest.raises(PlimsollError, match="archive"):
        decode(encode({"file": archive}))
