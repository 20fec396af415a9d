"""The registry of presets: names, figures, and what is wrong with a bad one."""

import re
from typing import Any

import pytest

from plimsoll.plan.estimating import InvalidPresetsError, near, preset, presets, read_presets


@pytest.mark.parametrize(
    ("name", "size", "token", "spans"),
    [
        ("phi-4-mini-instruct", 7.15, 131072, False),
        ("phi-4", 27.31, 204800, False),
        ("Qwen2.5-Coder-32B", 61.03, 262144, True),
        ("gpt-oss-120b", 121.54, 73728, True),
        ("Llama-3.3-70B", 131.42, 327680, True),
        ("DeepSeek-R1-0528", 641.3, 70272, True),
        ("microsoft/phi-4", 27.31, 204800, True),
        ("deepseek-ai/DeepSeek-R1-0528", 641.3, 70272, True),
    ],
)
def test_known_models(name: str, size: float, token: int, spans: bool) -> None:
    found = preset(name)
    assert found is not None
    assert (found.size_gib, found.bytes_per_token, found.spans_nodes) == (size, token, spans)


def test_names_are_found_case_aside_and_unknown_ones_are_not() -> None:
    assert preset(" PHI-4 ") is preset("phi-4")
    assert preset("phi-5") is None
    assert "phi-4" in near("phi4")
    assert near("nothing like it at all") == ()


def test_disk_is_the_model_and_80_gib() -> None:
    assert [found.disk_gib for name in ("phi-4", "deepseek-r1-0528") if (found := preset(name))] == [107, 721]


def test_bytes_per_token_follow_from_the_shape_that_the_source_names() -> None:
    shape = re.compile(r"(\d+) layers, (?:(\d+) KV heads? of (\d+)|latent rank (\d+), RoPE dimension (\d+))")
    for each in presets():
        match = shape.search(each.source)
        assert match is not None, each.name
        layers, heads, dimension, rank, rope = (int(group or 0) for group in match.groups())
        assert each.bytes_per_token == 2 * layers * (2 * heads * dimension + rank + rope), each.name


def an_entry(**changes: Any) -> dict[str, Any]:
    return {
        "name": "m",
        "repository": "o/m",
        "size_gib": 1,
        "bytes_per_token": 2,
        "spans_nodes": True,
        "source": "made up",
    } | changes


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        (an_entry(size_gib=0), "size_gib"),
        (an_entry(size_gib=float("nan")), "size_gib"),
        (an_entry(bytes_per_token=-1), "bytes_per_token"),
        (an_entry(spans_nodes=None), "spans_nodes"),
        (an_entry(source=""), "source"),
        (an_entry(colour="red"), "colour"),
        ("m", "preset number 1"),
    ],
)
def test_a_bad_entry_is_named_with_its_field(entry: Any, field: str) -> None:
    with pytest.raises(InvalidPresetsError, match=field):
        read_presets([entry])


def test_two_entries_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidPresetsError, match="preset b: M already names m"):
        read_presets([an_entry(), an_entry(name="b", aliases=("M",))])


def test_a_name_wins_over_the_same_repository() -> None:
    found = read_presets([an_entry(), an_entry(name="o/m", spans_nodes=False)])
    assert found["o/m"].spans_nodes is False
