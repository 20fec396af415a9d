"""Which declared fields of an object differ in the cluster."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.apply import ApplySettings, find_drift
from tests.applying.states import CLUSTER, FakeCluster, a_deployment, a_state, live

SETTINGS = ApplySettings(environment="test", work_folder=Path())
values = st.recursive(
    st.one_of(st.integers(-(2**53), 2**53), st.text(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=15,
)


def differing(here: dict[str, Any], declared: dict[str, Any]) -> tuple[str, ...]:
    """Paths of the fields of the declared spec that differ in the spec that is here."""
    ours, theirs = live(a_deployment("x") | {"spec": declared}), live(a_deployment("x") | {"spec": here})
    found = find_drift(SETTINGS, [a_state(ours)], CLUSTER, FakeCluster(theirs))
    return found[0].fields if found else ()


@given(st.dictionaries(st.text(), values))
def test_a_value_does_not_differ_from_itself(value: dict[str, Any]) -> None:
    assert differing(value, value) == ()


@given(st.lists(st.integers(1, 9)), st.lists(st.integers(1, 9)))
def test_every_declared_item_that_differs_is_found(here: list[int], declared: list[int]) -> None:
    expected = {f"spec.args[{i}]" for i, each in enumerate(declared) if here[i : i + 1] != [each]}
    assert set(differing({"args": here}, {"args": declared})) == expected


@pytest.mark.parametrize(
    ("here", "declared", "found"),
    [
        ({"replicaCount": 1, "strategy": "Rolling"}, {"replicaCount": 2}, ["replicaCount"]),
        ({"containers": [{"image": "a", "pull": "Always"}, {}]}, {"containers": [{"image": "a"}]}, []),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1000m"}}, []),
        ({"requests": {"cpu": "2"}}, {"requests": {"cpu": "1000m"}}, ["requests.cpu"]),
        ({"data": {"cpu": "1"}}, {"data": {"cpu": "1000m"}}, ["data.cpu"]),
        ({"emptyDir": {"sizeLimit": "1Gi"}}, {"emptyDir": {"sizeLimit": "1024Mi"}}, []),
        ({}, {"nodeSelector": {}}, []),
        ({}, {"hostNetwork": False}, []),
        ({}, {"hostNetwork": True}, ["hostNetwork"]),
        ({"a": True}, {"a": 1}, ["a"]),
        ({"matchLabels": {}}, {"matchLabels": {"a.b/c": "x"}}, ['matchLabels["a.b/c"]']),
    ],
)
def test_what_the_apiserver_or_others_add_is_no_difference(here: Any, declared: Any, found: list[str]) -> None:
    assert differing(here, declared) == tuple(f"spec.{path}" for path in found)


@pytest.mark.parametrize("value", ["", "x"])
def test_an_annotation_that_is_gone_differs_whatever_its_value(value: str) -> None:
    ours = live(a_deployment("x"))
    ours["metadata"]["annotations"] |= {"team": value}
    (found,) = find_drift(SETTINGS, [a_state(ours)], CLUSTER, FakeCluster(live(a_deployment("x"))))
    assert found.fields == ("metadata.annotations.team",)
