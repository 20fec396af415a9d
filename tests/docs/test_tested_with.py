"""The page of what Plimsoll is tested with names the version of each program that a sandbox may run."""

import pytest

from plimsoll.sandbox.parts import PARTS, Part
from tests.pages import CHECKOUT

PAGE = (CHECKOUT / "docs/reference/tested-with.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("part", [each for each in PARTS if each.programs], ids=lambda each: each.name)
def test_the_version_is_that_which_is_pinned(part: Part) -> None:
    assert any(part.version in line for line in PAGE.splitlines() if line.startswith("|"))


def test_the_tests_exist() -> None:
    named = {word.strip("`") for word in PAGE.split() if word.startswith("`tests/")}
    assert named
    assert all((CHECKOUT / name).exists() for name in named)
