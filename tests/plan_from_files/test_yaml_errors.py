"""Files of options that are not YAML: the error has the name of the file and the place in it."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.yaml_text import problem_of

WRONG = "a: 1\nb: [1\nc: 2\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [(WRONG, "line 3, column 2: "), ("a: \x00", ""), ("\t- a", "line 1, column 1: "), ("a: *b", "line 1, column 4: ")],
)
@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml.CSafeLoader])
def test_the_place_is_in_the_error_and_no_made_up_name(text: str, place: str, loader: type) -> None:
    with pytest.raises(yaml.YAMLError) as raised:
        yaml.load(text, loader)
    said = problem_of(raised.value)
    assert said.startswith(place)
    assert len(said) > len(place)
    assert "<" not in said


@pytest.mark.parametrize(
    "command",
    [
        "queues -f {empty} --k-value 1 --usage {file}",
        "status --fleet {file}",
        "audit --fleet {file}",
        "presets --from {file}",
    ],
)
def test_each_command_names_the_file(command: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(WRONG)
    (tmp_path / "empty.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    filled = command.format(file=tmp_path / "wrong.yaml", empty=tmp_path / "empty.yaml").split()
    error = CliRunner().invoke(app, filled).exception
    assert isinstance(error, PlimsollError)
    assert f"{tmp_path / 'wrong.yaml'}: " in error.message
    assert "line 3, column 2" in error.message
