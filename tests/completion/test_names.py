"""What a shell completes besides commands and options."""

import json
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.kube import Connection
from tests.builders import a_node_profile


def completed(words: str, **environ: str) -> list[str]:
    """What bash is told to complete the last word with."""
    asked = {"_PLIMSOLL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    return CliRunner().invoke(app, env={**asked, **environ}, prog_name="plimsoll").stdout.split()


def test_sandboxes(tmp_path: Path) -> None:
    for name in ("two", "one", "Two_is_no_name"):
        (tmp_path / "sandboxes" / name).mkdir(parents=True)

    assert completed("plimsoll sandbox down --name t", PLIMSOLL_HOME=str(tmp_path)) == ["two"]


@pytest.mark.parametrize("first", ["b", "missing", "damaged"])
def test_contexts_of_all_files_of_kubeconfig(first: str, tmp_path: Path) -> None:
    """A file that cannot be read has none."""
    for name, contexts in {"a": ["prod-eu", "dev"], "b": ["prod-us", "prod-eu"]}.items():
        (tmp_path / name).write_text(json.dumps({"contexts": [{"name": each} for each in contexts]}))
    (tmp_path / "damaged").write_text("contexts: [1, {}]")

    found = completed("plimsoll status --context prod", KUBECONFIG=f"{tmp_path / first}:{tmp_path / 'a'}")

    assert set(found) == {"prod-eu"} | ({"prod-us"} if first == "b" else set())
    assert len(found) == len(set(found))


def test_node_profiles_as_node_pool_and_type(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("gpu", "g6.xlarge"), ("gpu", "g5.xlarge"), ("other", "g6.xlarge")]
    profiles = {("", f"{pool}.{name}"): a_node_profile(pool, name) for pool, name in pairs}
    monkeypatch.setattr(Connection, "open", lambda *_: StringIO())
    monkeypatch.setattr("plimsoll.observe.cluster.list_objects", lambda *_: (profiles, ""))
    assert completed("plimsoll why node-profile gpu/") == ["gpu/g5.xlarge", "gpu/g6.xlarge"]


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("why pod team/", [("team", "a"), ("team", "b"), ("other", "a")]),
        ("why queue team/", [("", "team/a"), ("", "team/b"), ("", "other")]),
    ],
)
def test_names_of_what_why_is_asked_about(
    words: str, keys: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "open", lambda *_: StringIO())
    monkeypatch.setattr("plimsoll.observe.cluster.list_objects", lambda *_: (dict.fromkeys(keys), ""))
    assert completed(f"plimsoll {words}") == ["team/a", "team/b"]
