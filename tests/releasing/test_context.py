"""The packages and programs of the image."""

import json
import sys
from pathlib import Path

import pytest

from image.context import copy_programs, install_packages
from plimsoll.sandbox.parts import part

PULUMI = "#!/bin/sh\necho v3.{minor}.0\n"
GO = """#!/bin/sh
case "$1" in
  version) echo 'go version go1.99.0 linux/amd64';;
  env) echo /; echo /;;
  *) while [ "$1" != -o ]; do shift; done; echo 'built from its module' > "$2";;
esac
"""

UV = """#!{python}
import json, pathlib, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "build":
    out = pathlib.Path(sys.argv[sys.argv.index("--out-dir") + 1])
    out.mkdir()
    (out / "plimsoll-1-py3-none-any.whl").touch()
"""


def test_packages_are_installed_without_the_place_and_the_time_of_the_build(tmp_path: Path) -> None:
    log, uv = tmp_path / "log", tmp_path / "uv"
    uv.write_text(UV.format(python=sys.executable, log=str(log)))
    uv.chmod(0o755)

    install_packages(tmp_path, tmp_path / "site", "3.11", str(uv))

    ran = [json.loads(line) for line in log.read_text().splitlines()]
    locked, own = [arguments for arguments in ran if arguments[:2] == ["pip", "install"]]
    assert "--require-hashes" in locked
    assert own[-1].endswith(".whl")
    # direct_url.json has the address of the wheel, uv_cache.json its time.
    assert all("--no-installer-metadata" in each for each in (locked, own))


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
