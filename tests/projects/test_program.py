"""The typed program that `plimsoll init --language python` writes."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.project import ENVIRONMENT, ClusterKind, Language, project_files
from plimsoll.stacks import run
from tests.components.declaring import declared
from tests.type_checker import checked_by_mypy

COMPARED = {"Environment", "Namespace", "NodePool", "Queue", "Workspace"}


def program(kind: ClusterKind, **options: Any) -> str:
    return project_files(kind, "gpu-capacity", language=Language.PYTHON, **options)["__main__.py"]


def objects(declare: Callable[[], Any], settings: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Manifests by kind and name."""
    config = {f"plimsoll:{key}": each if isinstance(each, str) else json.dumps(each) for key, each in settings.items()}
    found = [each["inputs"] for each in declared(declare, config=config)]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def program_objects(text: str, layer: str) -> dict[tuple[str, str], Any]:
    return objects(lambda: exec(compile(text, "__main__.py", "exec"), {}), {"layer": layer})


@pytest.mark.parametrize("demand", [True, False])
@pytest.mark.parametrize("kind", ClusterKind)
def test_it_declares_what_the_settings_declare(kind: ClusterKind, demand: bool) -> None:
    settings = yaml.safe_load(project_files(kind, "gpu-capacity", demand=demand)[ENVIRONMENT])["config"]
    of_settings = objects(run, settings)
    of_program = program_objects(program(kind, demand=demand), "environment")
    compared = {key for key in of_settings if key[0] in COMPARED}
    assert {key for key in of_program if key[0] in COMPARED} == compared
    assert {key[0] for key in compared} >= {"Environment", "Queue", "Namespace"}
    for key in compared:
        assert of_program[key].get("spec") == of_settings[key].get("spec"), key
        assert of_program[key]["metadata"].get("namespace") == of_settings[key]["metadata"].get("namespace")
    (guard,) = (of_program[key] for key in of_program if key[0] == "ConfigMap")
    assert guard["metadata"]["labels"] == {"plimsoll.dev/guard": "environment"}


def test_other_stacks_are_their_settings() -> None:
    assert ("Namespace", "plimsoll-system") in program_objects(program(ClusterKind.AWS), "foundation")


def test_type_checkers_and_formatters_accept_it(tmp_path: Path) -> None:
    """In one run of each. The last program has a wrong word."""
    for kind in ClusterKind:
        (tmp_path / f"of_{kind}.py").write_text(program(kind))
    wrong = program(ClusterKind.AWS).replace('effect="NoSchedule"', 'effect="NoSchedul"', 1)
    (tmp_path / "wrong.py").write_text(wrong)
    programs = sorted(tmp_path.glob("*.py"))
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--check", *map(str, programs)]
    assert subprocess.run(ruff, check=False).returncode == 0
    settings = tmp_path / "mypy.ini"
    settings.write_text(project_files(ClusterKind.AWS, "gpu-capacity", language=Language.PYTHON)["mypy.ini"])
    said = checked_by_mypy(programs, settings)
    # Other versions of mypy find more in the package itself.
    errors = [line for line in said.splitlines() if re.match(r"\w+\.py:\d+: error: ", line)]
    assert len(errors) == 1, said
    assert "wrong.py" in errors[0]
    assert "effect" in errors[0]


def test_the_command_writes_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "p"), "--on", "aws", "--language", "python"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "p" / "__main__.py").read_text() == program(ClusterKind.AWS).replace("gpu-capacity", "p")
    assert yaml.safe_load((tmp_path / "p" / ENVIRONMENT).read_text()) == {"config": {"layer": "environment"}}
