"""Standard output, standard error and the environment of a command, as a shell or a CI job sets them."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
import structlog
import yaml

from plimsoll.cli.shared import workspaces
from tests.command import plimsoll

EXAMPLES = Path(__file__).parents[2] / "examples"
INSECURE = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "current-context": "c",
}


_UNSET = ("KUBECONFIG", "COLUMNS", "PYTHONUNBUFFERED")


def of_user(home: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command."""
    given = {key: value for key, value in os.environ.items() if key not in _UNSET}
    return given | {"HOME": str(home), **variables}


def run(command: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return plimsoll(*shlex.split(command), variables=of_user(home, variables))


def shell(script: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a script, whose function `plimsoll` is the command."""
    command = f"plimsoll() {{ {sys.executable} -c 'from plimsoll.cli import main; main()' \"$@\"; }}\n"
    environment = of_user(home, variables)
    return subprocess.run(
        ["/bin/bash", "-c", command + script], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_full_disk_is_an_error_with_its_reason(tmp_path: Path) -> None:
    done = shell(f"plimsoll gpus -f {EXAMPLES / 'cluster'} > /dev/full", tmp_path)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "internal error" not in done.stderr


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_closed_output_does_not_change_the_result(tmp_path: Path, output: str) -> None:
    done = shell(f"plimsoll demand -f {EXAMPLES / 'demand'} -o {output} >&-", tmp_path)
    assert (done.returncode, done.stderr) == (2, "")


def test_characters_that_the_locale_lacks_are_replaced(tmp_path: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = shell(f"plimsoll top --once -f {EXAMPLES / 'cluster'}", tmp_path, **plain)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["demand", "gpus", "savings", "queues", "queues check", "plan"])
def test_standard_output_has_no_log(tmp_path: Path, command: str) -> None:
    (tmp_path / "config").write_text(yaml.safe_dump(INSECURE))
    done = run(f"{command} --kubeconfig {tmp_path / 'config'} -o json", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "disables the verification" in done.stderr


def test_an_empty_kubeconfig_variable_is_none(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(yaml.safe_dump(INSECURE))
    done = run("gpus", tmp_path, KUBECONFIG="")
    assert "127.0.0.1:1" in done.stderr


def test_an_empty_name_of_a_file_is_not_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("gpus -f ''", tmp_path)
    assert done.returncode == 1
    assert "name is empty" in done.stderr


OF_FILES = (
    *("demand", "plan", "gpus", "savings", "queues check", "top --once", "status", "audit"),
    *("why pod team-a/chat-0", "why node gpu-1", "why namespace team-a", "why queue default-queue"),
    *("why node-profile l4/g6.xlarge", f"diff --against {EXAMPLES / 'cluster'}"),
)


_CLOCK = re.compile(r"\d\d:\d\d:\d\d UTC")
"""`top` says when its state was read."""


@pytest.mark.parametrize("command", OF_FILES)
def test_files_are_named_by_an_option_or_not_and_standard_input_is_one(command: str) -> None:
    folder = EXAMPLES / "demand"
    together = "\n---\n".join(file.read_text() for file in sorted(folder.glob("*.yaml")))
    arguments = shlex.split(command)
    named = plimsoll(*arguments, "-f", str(folder))
    assert named.returncode in (0, 2), named.stderr
    for more in ((str(folder),), ("-",), ("-f", "-")):
        done = plimsoll(*arguments, *more, given=together)
        assert done.returncode == named.returncode, (more, done.stderr)
        assert _CLOCK.sub("", done.stdout) == _CLOCK.sub("", named.stdout), more


@pytest.mark.parametrize("command", [*OF_FILES[:-1], "ui --no-open"])
def test_options_of_a_cluster_have_no_effect_beside_files(command: str) -> None:
    done = plimsoll(*shlex.split(command), "-", "--context", "c")
    assert done.returncode == 1
    assert "--context has no effect with" in done.stderr


@pytest.mark.parametrize("command", ["gpus", "savings"])
def test_labels_are_no_markup(tmp_path: Path, command: str) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "[/b][red]"}},
        "status": {"allocatable": {"nvidia.com/gpu": "1"}},
    }
    (tmp_path / "node.yaml").write_text(yaml.safe_dump(node))
    done = run(f"{command} -f {tmp_path}/node.yaml", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[/b][red]" in done.stdout


@pytest.mark.parametrize("command", ["gpus", "savings", "queues"])
def test_objects_that_are_not_read_are_named(tmp_path: Path, command: str) -> None:
    (tmp_path / "map.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
    for output in ("text", "json"):
        done = run(f"{command} -f {tmp_path}/map.yaml -o {output}", tmp_path)
        assert "1 of kind ConfigMap (v1) skipped" in done.stdout


@pytest.mark.parametrize("amount", ["many", "-3"])
def test_an_amount_of_gpus_that_cannot_be_read_is_reported(tmp_path: Path, amount: str) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    node["status"] = {"allocatable": {"nvidia.com/gpu": amount}}
    (tmp_path / "node.yaml").write_text(yaml.safe_dump(node))
    done = run(f"gpus -f {tmp_path}/node.yaml", tmp_path)
    assert done.returncode == 2
    assert "UnreadableNode" in done.stdout


def test_a_check_of_queues_says_how_many_it_checked(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
    assert "0 Queues checked" in run(f"queues check -f {tmp_path}/map.yaml", tmp_path).stderr


def test_a_group_without_a_command_is_a_usage_error(tmp_path: Path) -> None:
    done = run("sandbox", tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "error: Missing command.")


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (f"demand -f {EXAMPLES / 'demand'}", ["DEMAND", "REQUESTED", "default-queue-d1d366af1a"]),
        (f"queues -f {EXAMPLES / 'cluster'}", ["fair share", "unlimited"]),
        ("presets", ["KV heads", "124.4", "one node"]),
        ("policy list", ["workspace-shape", "enforced in", "error"]),
    ],
)
@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_narrow_terminal_cuts_no_column(tmp_path: Path, command: str, needed: list[str], columns: str) -> None:
    done = run(command, tmp_path, COLUMNS=columns)
    assert not [each for each in needed if each not in done.stdout]
    assert "…" not in done.stdout
    tables = [line for line in done.stdout.splitlines() if line.startswith((" DEMAND", "GPUs of", "preset ", "┃ rule"))]
    assert max(map(len, tables)) <= 80


def test_nothing_is_folded_in_a_pipe(tmp_path: Path) -> None:
    rows = run("policy list", tmp_path).stdout.splitlines()
    (row,) = [each for each in rows if "workspace-instance-type" in each]
    assert "unless the Environment lets it narrow them." in row
    assert "pulumi, controller, cluster" in row


@pytest.mark.parametrize("command", ["", "queues", "why", "import", "policy", "sandbox", "demand", "run"])
def test_help_fits_80_columns_and_is_not_cut(tmp_path: Path, command: str) -> None:
    done = run(f"{command} --help", tmp_path)
    assert done.returncode == 0
    assert "..." not in done.stdout.replace("[ARGS]...", "").replace("[FILE_OR_DIR]...", "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.startswith("Usage: "), "one style for all"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(f"init {tmp_path}/file/project --on byo", tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path / 'file'}" in done.stderr and "internal error" not in done.stderr


@pytest.mark.parametrize("command", ["plan -f -", "queues check -f -"])
def test_standard_input_without_manifests_is_an_error(command: str, tmp_path: Path) -> None:
    for done, why in (
        (run(command, tmp_path), "it has no document"),
        (shell(f"plimsoll {command} <&-", tmp_path), "it is closed"),
    ):
        assert (done.returncode, done.stdout) == (1, "")
        assert f"error: standard input: {why}" in done.stderr


def test_completion_writes_no_log_to_standard_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config").write_text(yaml.safe_dump(INSECURE))
    structlog.reset_defaults()
    given = SimpleNamespace(params={"kubeconfig": tmp_path / "config", "context": None})
    assert workspaces(given, "") == []  # type: ignore[arg-type]
    written = capfd.readouterr()
    assert (written.out, "certificate" in written.err) == ("", True)


_PRINTING = """
import ctypes, sys
import plimsoll.cli

def print_banner(event, arguments):
    if event == "import" and arguments[0] == "plimsoll.presets":
        ctypes.CDLL(None).puts(b"banner")

sys.addaudithook(print_banner)
plimsoll.cli.main()
"""
"""The command line, with a library that prints when it runs a command, as a solver of linear programs may."""


@pytest.mark.parametrize(("ending", "reported"), [("", "banner\n"), ("2>&-", "")])
def test_what_a_compiled_library_prints_is_not_in_the_output(tmp_path: Path, ending: str, reported: str) -> None:
    done = shell(f"{sys.executable} -c {shlex.quote(_PRINTING)} presets -o json {ending}", tmp_path)
    assert (done.returncode, done.stderr) == (0, reported)
    json.loads(done.stdout)
