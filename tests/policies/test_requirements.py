"""What the policy pack of the repository requires."""

import importlib.metadata
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PACK = Path(__file__).parents[2] / "policies"


def test_the_pack_requires_this_plimsoll() -> None:
    """The project of that name on PyPI is another one."""
    declared = tomllib.loads((PACK / "pyproject.toml").read_text())
    (requirement,) = [Requirement(each) for each in declared["project"]["dependencies"]]

    assert requirement.name == "plimsoll"
    assert requirement.specifier.contains(importlib.metadata.version("plimsoll"))
    source = PACK / declared["tool"]["uv"]["sources"]["plimsoll"]["path"]
    assert tomllib.loads((source / "pyproject.toml").read_text())["project"]["name"] == "plimsoll"
