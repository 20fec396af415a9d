"""`.ci/release` and `.ci/cut`: what they refuse before anything is built, and the commit of a release."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / ".ci"


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose changelog has no section of its version, so that nothing is ever built."""
    (tmp_path / ".ci").mkdir()
    for name in ("release", "cut"):
        shutil.copy(SCRIPTS / name, tmp_path / ".ci")
    (tmp_path / "pyproject.toml").write_text('version = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").touch()
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "all")
    return tmp_path


def released(checkout: Path) -> str:
    """Standard output of a release that fails; `false` in the place of uv."""
    done = subprocess.run([checkout / ".ci" / "release", "false"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stdout


@pytest.mark.parametrize("file", ["pyproject.toml", "new.py"])
def test_uncommitted_changes_are_refused_and_named(checkout: Path, file: str) -> None:
    with (checkout / file).open("a") as changed:
        changed.write("# changed")

    text = released(checkout)

    assert file in text
    assert "commit or stash these changes" in text
    assert not (checkout / "dist").exists()


def test_a_version_without_a_section_in_the_changelog_is_refused(checkout: Path) -> None:
    text = released(checkout)

    assert "CHANGELOG.md has no section [1.2.3]" in text
    assert "commit or stash" not in text


NOTES = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- one\n\n## [1.2.3] - 2026-01-01\n\n- before\n"


@pytest.fixture
def before(checkout: Path) -> Path:
    """A checkout that can be cut: 1.3.0 after 1.2.3."""
    files = {
        "CHANGELOG.md": NOTES,
        "docs/operate/upgrade.md": "# Upgrade to 1.3\n",
        "docs/guide.md": "push registry.example/plimsoll:1.2.3, not plimsoll:1x2.3\n",
        "templates/requirements.txt": "plimsoll-gpu[all]==1.2.3\n",
        "examples/a": "",
        "policies/pyproject.toml": 'dependencies = ["plimsoll-gpu>=1.2,<1.3"]\n',
        "components/schema.json": '{\n  "version": "1.2.3"\n}\n',
    }
    for path, text in files.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    for name, value in (("user.name", "a"), ("user.email", "a@example.com")):
        git(checkout, "config", name, value)
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "before")
    return checkout


def cut(checkout: Path, version: str) -> "subprocess.CompletedProcess[str]":
    """`true` in the place of uv."""
    command = [str(checkout / ".ci" / "cut"), "true", version]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_release_is_a_commit_with_its_version_wherever_a_file_names_it(before: Path) -> None:
    assert cut(before, "1.3.0").returncode == 0
    notes = (before / "CHANGELOG.md").read_text()
    assert re.search(r"## \[Unreleased\]\n\n## \[1\.3\.0\] - [-0-9]{10}\n\n### Added\n\n- one\n\n## \[1\.2\.3\]", notes)
    assert (before / "pyproject.toml").read_text() == 'version = "1.3.0"\n'
    assert (before / "docs/guide.md").read_text() == "push registry.example/plimsoll:1.3.0, not plimsoll:1x2.3\n"
    assert (before / "templates/requirements.txt").read_text() == "plimsoll-gpu[all]==1.3.0\n"
    assert (before / "policies/pyproject.toml").read_text() == 'dependencies = ["plimsoll-gpu>=1.3,<1.4"]\n'
    assert json.loads((before / "components/schema.json").read_text()) == {"version": "1.3.0"}
    logged = subprocess.run(
        ["git", "-C", before, "log", "-1", "--format=%s"], capture_output=True, text=True, check=True
    )
    assert logged.stdout == "Release 1.3.0\n"


@pytest.mark.parametrize(
    ("version", "changelog", "why"),
    [
        ("1.2.3", NOTES, "is not newer than 1.2.3"),
        ("1.2.0", NOTES, "is not newer than 1.2.3"),
        ("next", NOTES, "is not of the form X.Y.Z"),
        ("1.4.0", NOTES, "is not headed 'Upgrade to 1.4'"),
        ("1.3.0", NOTES.replace("### Added\n\n- one\n\n", ""), "nothing is under Unreleased"),
        ("1.3.0", NOTES.replace("- one\n", "- one\n" * 60), "has 61 lines: shorten it to at most 60"),
    ],
)
def test_what_is_no_release_is_refused_and_nothing_is_written(
    before: Path, version: str, changelog: str, why: str
) -> None:
    (before / "CHANGELOG.md").write_text(changelog)
    git(before, "commit", "--quiet", "--all", "--allow-empty", "--message", "notes")
    done = cut(before, version)
    assert done.returncode == 1
    assert why in done.stdout
    assert (before / "CHANGELOG.md").read_text() == changelog


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("arguments", "version"), [(["VERSION=9.9.9"], "9.9.9"), (["--environment-overrides"], ""), ([], "")]
)
def test_only_a_version_on_the_command_line_cuts_a_release(arguments: list[str], version: str) -> None:
    command = ["make", "--dry-run", "release", *arguments]
    environment = {**os.environ, "VERSION": "8.8.8", "MAKEFLAGS": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=SCRIPTS.parent, env=environment)
    assert [line.split()[-1].strip('"') for line in done.stdout.splitlines() if line.startswith(".ci/cut")] == (
        [version] if version else []
    )


def test_to_cut_without_a_version_says_where_it_is_given(before: Path) -> None:
    done = cut(before, "")
    assert done.returncode == 1
    assert "give it on the command line" in done.stdout
