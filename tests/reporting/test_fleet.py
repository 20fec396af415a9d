"""`plimsoll status --fleet` with unreachable clusters: each is a row with the error."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError

SOUND = {
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}
"""An address without a server."""
BROKEN: dict[str, tuple[Any, str]] = {
    "nobody": (SOUND, "cannot be reached"),
    "text": ("text", "not a kubeconfig"),
    "list": ([1, 2], "not a kubeconfig"),
    "context": ({**SOUND, "current-context": "there"}, "there"),
    "server": ({**SOUND, "clusters": [{"name": "c", "cluster": {}}]}, "cluster"),
    "token": ({**SOUND, "users": [{"name": "u", "user": {"token": "two\nlines"}}]}, "token"),
    "proxy": (
        {**SOUND, "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9", "proxy-url": "socks5://x"}}]},
        "proxy-url",
    ),
}


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.DependencyWarning")
def test_each_cluster_that_cannot_be_read_is_a_row_that_says_why(tmp_path: Path) -> None:
    for name, (content, _) in BROKEN.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content))
    clusters = [{"name": name, "kubeconfig": f"{name}.yaml"} for name in (*BROKEN, "missing")]
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump({"clusters": clusters}))
    done = CliRunner().invoke(app, ["status", "--fleet", str(file), "--output", "json"], catch_exceptions=False)
    assert done.exit_code == 0
    rows = {row["cluster"]: row["error"] for row in json.loads(done.stdout)}
    assert list(rows) == [*BROKEN, "missing"]
    for name, (_, why) in BROKEN.items():
        assert why in rows[name]


@pytest.mark.parametrize("more", [["--watch"], ["--kubeconfig", "x"], ["--context", "x"], ["--namespace", "x"]])
def test_options_of_a_single_cluster_are_refused_with_a_fleet(tmp_path: Path, more: list[str]) -> None:
    with pytest.raises(PlimsollError, match=f"{more[0]} .* --fleet"):
        CliRunner().invoke(
            app,
            ["status", "--fleet", str(tmp_path / "fleet.yaml"), *more],
            catch_exceptions=False,
            standalone_mode=False,
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "clusters"),
        (b"clusters: []", "clusters"),
        (b"clusters: [{name: a}, {name: a}]", "two clusters"),
        (b"clusters: [{nam: a}]", "nam"),
        (b"clusters: [", "fleet.yaml"),
        (b"clusters: [{name: \xff}]", "fleet.yaml"),
    ],
)
def test_an_invalid_file_is_an_error_that_names_the_field(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_bytes(content)
    with pytest.raises(PlimsollError) as refused:
        CliRunner().invoke(app, ["status", "--fleet", str(file)], catch_exceptions=False, standalone_mode=False)
    assert message in f"{refused.value} {refused.value.hint}"
