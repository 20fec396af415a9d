"""`.ci/release`: what it refuses before anything is built."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "release"


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose changelog has no section of its version, so that nothing is ever built."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
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
