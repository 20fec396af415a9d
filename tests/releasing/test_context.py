"""The programs of the image."""

from pathlib import Path

import pytest

from image.context import copy_programs
from plimsoll.sandbox.parts import part

PULUMI = "#!/bin/sh\necho v3.{minor}.0\n"
GO = """#!/bin/sh
case "$1" in
  version) echo 'go version go1.99.0 linux/amd64';;
  env) echo /; echo /;;
  *) while [ "$1" != -o ]; do shift; done; echo 'built from its module' > "$2";;
esac
"""


def test_pulumi_is_built_also_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr("plimsoll.sandbox.parts.toolchain.available_memory", lambda: 64 * 1024**3)
    minor = part("pulumi").version.split(".")[1]
    for name, script in (("pulumi", PULUMI.format(minor=minor)), ("go", GO)):
        program = tmp_path / "path" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(script)
        program.chmod(0o755)
    language = part("pulumi-language-python")
    for file in language.files:
        (language.cached / file.name).parent.mkdir(parents=True, exist_ok=True)
        (language.cached / file.name).touch()
    (tmp_path / "site" / "bin").mkdir(parents=True)
    (tmp_path / "site" / "bin" / "dumb-init").touch()

    copy_programs(tmp_path / "bin", tmp_path / "site")

    assert (tmp_path / "bin" / "pulumi").read_text() == "built from its module\n"
    assert {"dumb-init", "pulumi-language-python"} <= {each.name for each in (tmp_path / "bin").iterdir()}
