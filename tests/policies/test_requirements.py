"""What the policy pack of the repository requires."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from plimsoll.distribution import NAME, version

PACK = Path(__file__).parents[2] / "policies"


def test_the_pack_requires_this_plimsoll() -> None:
    declared = tomllib.loads((PACK / "pyproject.toml").read_text())
    (requirement,) = [Requirement(each) for each in declared["project"]["dependencies"]]

    assert requirement.name == NAME
    assert requirement.specifier.contains(version())
    source = PACK / declared["tool"]["uv"]["sources"][NAME]["path"]
    assert tomllib.loads((source / "pyproject.toml").read_text())["project"]["name"] == NAME
