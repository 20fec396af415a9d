"""Invalid objects and texts: copies of valid ones with some values replaced, removed or added."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import yaml
from hypothesis import strategies as st

from tests.pages import CHECKOUT

SOURCES = [Path(__file__).parent / "objects.yaml", *sorted((CHECKOUT / "examples").glob("*/*.yaml"))]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["", "0", "-1", "1e400", "1Ki", "NaN", "9" * 40, "a=b", "\x00", "2026-13-01T00:00:00Z", "1m1m"]),
    st.sampled_from(["Infinity", "1e99", "1e-99", "1" + "0" * 120, f"0.{'0' * 110}1", "0.999999999999999999999", ","]),
    st.sampled_from([1e-320, 1e-9, 1e305, 1.7976931348623157e308, 10**9, 2**63, 2**64]),
    st.just([]),
    st.just({}),
    st.lists(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


def objects() -> list[dict[str, Any]]:
    found = [
        each
        for source in SOURCES
        for each in yaml.load_all(source.read_text(), yaml.CSafeLoader)
        if isinstance(each, dict)
    ]
    return [each for each in found if each.get("kind")]


OBJECTS = objects()


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


@st.composite
def damaged(draw: st.DrawFn, sources: list[dict[str, Any]]) -> dict[str, Any]:
    """A copy of one of the sources in which up to three values are replaced, removed or added."""
    obj: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(sources)))
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


YAML = ("2026-13-01", "2026-02-30 10:00:00", "!!python/none", "!!set {a}", "!!binary x", "&a [*a]", "<<: 1", "*b", "[")
OTHERS = (
    "? {a: b}\n: c",
    "\t",
    "---",
    "...",
    "%YAML 9",
    "{",
    '"',
    "\x00",
    "\u2028",
    "," * 20,
    "0x",
    ".inf",
    "9" * 5000,
)


@st.composite
def damaged_text(draw: st.DrawFn, text: str) -> str:
    """A text in which up to three parts are replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + draw(st.one_of(st.text(max_size=12), st.sampled_from([*YAML, *OTHERS]))) + text[end:]
    return text


def is_json(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return False
    return True
