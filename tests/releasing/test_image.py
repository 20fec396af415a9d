"""`python -m image`: the archive that it writes, and programs that are missing."""

import sys
from pathlib import Path

import pytest

from image.__main__ import main

PODMAN = """#!/bin/sh
[ "$1" = save ] || exit 0
while [ $# -gt 0 ]; do
  case "$1" in
    --format) format=$2;;
    --output) output=$2;;
  esac
  shift
done
[ ! -e "$output" ] || { echo "modifying existing images is not supported" >&2; exit 125; }
echo "${format:-docker-archive}" > "$output"
"""


def scripts(folder: Path, **programs: str) -> None:
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def test_podman_writes_an_oci_archive_also_in_place_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts(tmp_path / "path", podman=PODMAN, go="#!/bin/sh\n", uv="#!/bin/sh\n")
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=":")
    monkeypatch.setattr("image.__main__.make_context", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["image", "--builder", "podman", "--base", "some", "--out", str(tmp_path / "out")])

    for _ in range(2):
        assert main() == 0
        assert (tmp_path / "out" / "plimsoll.tar").read_text() == "oci-archive\n"


@pytest.mark.parametrize(
    ("there", "options", "hint"),
    [
        ((), (), "apt-get install --no-install-recommends buildah git mmdebstrap; Go: go.dev/dl; uv: "),
        (("buildah", "git", "mmdebstrap", "uv"), (), "not found: go\n  Go: go.dev/dl\n"),
        (("git", "go", "uv"), ("--builder", "docker", "--base", "some"), "--no-install-recommends docker.io\n"),
        (("buildah", "git", "go"), ("--base", "some"), "not found: uv\n  uv: "),
        (("buildah", "git", "go", "uv"), ("--base", "some", "--uv", "./none/uv"), "not found: ./none/uv\n  uv: "),
    ],
)
def test_missing_programs_are_named_with_how_to_get_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    there: tuple[str, ...],
    options: tuple[str, ...],
    hint: str,
) -> None:
    scripts(tmp_path / "path", **dict.fromkeys(there, "#!/bin/sh\n"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(sys, "argv", ["image", *options, "--out", str(tmp_path / "out")])

    assert main() == 1
    assert hint in capsys.readouterr().err
