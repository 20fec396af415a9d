"""The base of the image: what mmdebstrap is asked for."""

import json
import sys
from pathlib import Path

import pytest

from image.base import make_base

MMDEBSTRAP = """#!{python}
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
open(sys.argv[sys.argv.index("bookworm") + 1], "w").close()
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the arguments of each run of mmdebstrap, a JSON list a line."""
    written = tmp_path / "log"
    program = tmp_path / "bin" / "mmdebstrap"
    program.parent.mkdir()
    program.write_text(MMDEBSTRAP.format(python=sys.executable, log=str(written)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return written


def runs(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_the_packages_have_security_updates(log: Path, tmp_path: Path) -> None:
    make_base(tmp_path)

    (arguments,) = runs(log)
    suites = [each.split()[-2] for each in arguments if each.startswith("deb ")]
    assert suites == ["bookworm", "bookworm-updates", "bookworm-security"]


def test_an_earlier_base_is_not_used_again(log: Path, tmp_path: Path) -> None:
    first = make_base(tmp_path)
    assert make_base(tmp_path) == first

    assert len(runs(log)) == 2


def test_all_hooks_are_of_a_step_that_the_variant_has(log: Path, tmp_path: Path) -> None:
    """mmdebstrap ends after the step `extract` in this variant: the certificates, for one, are written by a hook."""
    make_base(tmp_path)

    (arguments,) = runs(log)
    assert "--variant=extract" in arguments
    steps = {each.partition("=")[0] for each in arguments if "-hook=" in each}
    assert steps == {"--extract-hook"}
