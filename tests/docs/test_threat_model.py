"""Each attack of the threat model has a test that exists."""

import re

import pytest

from tests.pages import CHECKOUT

_HEADING = "## Threat model"


def rows() -> list[list[str]]:
    """The cells of each row of the table."""
    text = (CHECKOUT / "SECURITY.md").read_text().partition(_HEADING)[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) > 2
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[1][:40])
def test_an_attack_names_what_stops_it_and_tests_that_exist(row: list[str]) -> None:
    actor, attack, stopped_by, tests = row
    assert actor and attack and stopped_by
    named = re.findall(r"`([^`]+)`", tests)
    assert named, "no test"
    assert [name for name in named if not (CHECKOUT / name).exists()] == []
    assert all(name.startswith(("tests/", "bench/")) for name in named)
