"""Whatever stands in an object or a file, it is read, or refused by name: no other error comes of it.

`make fuzz TESTS=tests/fuzzing EXAMPLES=10000` is the size of a night.
"""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.apply.state import State
from plimsoll.cli.fleet import read_fleet
from plimsoll.errors import PlimsollError
from plimsoll.kube import Kubeconfig
from plimsoll.observe.cluster import Store, Stores
from plimsoll.observe.files import snapshot_from_files
from plimsoll.plan import plan as make_plan
from plimsoll.plan import validate
from plimsoll.plan.view import ClusterView
from tests.applying.states import a_claim, a_state, live
from tests.pages import CHECKOUT

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
EXAMPLES = 60
"""Of each property in `make test`."""
SOURCES = [Path(__file__).parent / "objects.yaml", *sorted((CHECKOUT / "examples").glob("*/*.yaml"))]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["", "0", "-1", "1e400", "1Ki", "NaN", "9" * 40, "a=b", "\x00", "2026-13-01T00:00:00Z", "1m1m"]),
    st.just([]),
    st.just({}),
    st.lists(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


def objects() -> list[dict[str, Any]]:
    found = [each for source in SOURCES for each in yaml.safe_load_all(source.read_text()) if isinstance(each, dict)]
    return [each for each in found if each.get("kind")]


OBJECTS = objects()


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


@st.composite
def damaged(draw: st.DrawFn, sources: list[dict[str, Any]]) -> dict[str, Any]:
    """A copy of one of the sources with up to three values replaced, taken away, or put beside others."""
    obj = copy.deepcopy(draw(st.sampled_from(sources)))
    for _ in range(draw(st.integers(1, 3))):
        if not obj:
            break
        *head, last = draw(st.sampled_from([each for each in paths(obj) if each]))
        place: Any = obj
        for step in head:
            place = place[step]
        way = draw(st.sampled_from(["replace", "remove", "add"]))
        if way == "replace":
            place[last] = draw(VALUES)
        elif way == "remove":
            place.pop(last)
        elif isinstance(place, dict):
            place[draw(st.text(max_size=8))] = draw(VALUES)
        else:
            place.append(draw(VALUES))
    return obj


def store_of(stores: Stores, obj: dict[str, Any]) -> Store[Any] | None:
    return next((each for each in stores if each.kind.name == obj.get("kind")), None)


@settings(max_examples=EXAMPLES)
@given(st.lists(damaged(OBJECTS), min_size=1, max_size=4))
def test_a_cluster_with_such_objects_is_planned_or_refused_by_name(found: list[dict[str, Any]]) -> None:
    stores = Stores()
    for obj in [*copy.deepcopy(OBJECTS), *found]:
        store = store_of(stores, obj)
        # An apiserver gives every object a name, which is a text, in metadata, which is a map.
        metadata = obj.get("metadata")
        if store is None or not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            continue
        key, entry = store.read(orjson.loads(orjson.dumps(obj)) if _is_json(obj) else obj)
        store.put(key, entry)
        for each in store.unreadable():
            assert each.message, "what is refused is named"
    try:
        snapshot = stores.snapshot()
    except PlimsollError as error:
        assert error.message
        return
    view = ClusterView(snapshot)
    made = make_plan(view, validate(view), NOW)
    assert {each.workspace.name for each in made.verdicts} <= {
        *(each.name for each in snapshot.workspaces),
        *(each.ref.name for each in snapshot.invalid_workspaces),
    }


@settings(max_examples=EXAMPLES)
@given(damaged(OBJECTS))
def test_a_file_is_read_or_refused_by_name(tmp_path_factory: pytest.TempPathFactory, obj: dict[str, Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.yaml"
    path.write_text(yaml.safe_dump(obj), encoding="utf-8", errors="surrogatepass")
    try:
        view = ClusterView(snapshot_from_files([str(path)]))
        make_plan(view, validate(view), NOW)
    except PlimsollError as error:
        assert str(path) in str(error), "the file is named"


@settings(max_examples=EXAMPLES)
@given(damaged([dict(a_state(live(a_claim("a"))).deployment)]))
def test_a_state_is_read_or_refused_with_its_stack(deployment: dict[str, Any]) -> None:
    try:
        State.read("capacity-prod-0", orjson.dumps({"version": 3, "deployment": deployment}, default=str), None)
    except PlimsollError as error:
        assert "capacity-prod-0" in str(error)
    except (TypeError, orjson.JSONEncodeError):
        assert not _is_json(deployment)


KUBECONFIG = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9", "certificate-authority": "ca.crt"}}],
    "users": [{"name": "u", "user": {"tokenFile": "token"}}],
}


@settings(max_examples=EXAMPLES)
@given(damaged([KUBECONFIG]))
def test_a_kubeconfig_is_read_or_refused(content: dict[str, Any]) -> None:
    try:
        Kubeconfig.read(yaml.safe_dump(content) + "\n# a text\n")
    except PlimsollError as error:
        assert error.message


@settings(max_examples=EXAMPLES)
@given(damaged([{"clusters": [{"name": "a", "kubeconfig": "a.yaml", "context": "a"}, {"name": "b"}]}]))
def test_a_fleet_is_read_or_refused_with_its_file(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fleet.yaml"
    path.write_text(yaml.safe_dump(content))
    try:
        read_fleet(path)
    except PlimsollError as error:
        assert str(path) in str(error)


def _is_json(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return False
    return True
