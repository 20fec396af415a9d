"""Documented commands that no page can run as it stands: they do not end by themselves, change the user's shell or the
checkout, or name an object of a cluster. Each runs here with its defaults, in a folder of its own."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.model.api import CAPACITY_GATE
from plimsoll.sandbox.parts import find_programs
from tests.awaiting import await_condition
from tests.pages import CHECKOUT, copy_of_checkout, make, page

PLIMSOLL = Path(sys.executable).with_name("plimsoll")


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def test_the_pages_of_an_example_open_in_the_browser(tmp_path: Path) -> None:
    (command,) = re.findall(r"^plimsoll (ui -f \S+)", page("README.md").text, re.MULTILINE)
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    more = () if is_free(8765) else ("--port", "0")
    serving = subprocess.Popen(
        [PLIMSOLL, *command.split(), *more],
        cwd=CHECKOUT,
        env={**os.environ, "BROWSER": str(browser)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        await_condition(lambda: opened.exists() or serving.poll() is not None)
        assert opened.exists(), serving.communicate()
        with urllib.request.urlopen(opened.read_text().strip(), timeout=30) as answer:
            assert "p5.48xlarge" in answer.read().decode()
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=120) == 0
    finally:
        serving.kill()
        serving.communicate()


def test_the_installed_completion_completes_commands(tmp_path: Path) -> None:
    assert "`plimsoll --install-completion`" in page("docs/guides/ui.md").text

    def in_bash(script: str) -> str:
        # The command finds out which shell has started it.
        done = subprocess.run(
            ["bash", "--norc", "-c", f"{script}\nexit $?"],
            env={"HOME": str(tmp_path), "PATH": f"{PLIMSOLL.parent}:{os.environ['PATH']}", "SHELL": "/bin/bash"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    in_bash("plimsoll --install-completion")
    complete = "COMP_WORDS=(plimsoll wh)\nCOMP_CWORD=1\n_plimsoll_completion plimsoll\necho ${COMPREPLY[@]}"
    assert in_bash(f". ~/.bashrc\n{complete}").split() == ["why"]


def test_the_documented_patch_removes_the_gate_and_no_other(tmp_path: Path) -> None:
    kubectl = next(each.path for each in find_programs(["kubernetes"]) if each.name == "kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed: plimsoll sandbox install")
    (line,) = re.findall(r"^kubectl patch pod NAME (.*)$", page("docs/reference/capacity-gate.md").text, re.MULTILINE)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gated"},
        "spec": {
            "schedulingGates": [{"name": "another"}, {"name": CAPACITY_GATE}],
            "containers": [{"name": "c", "image": "i"}],
        },
    }
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(pod))
    done = subprocess.run(
        [kubectl, "patch", "--local", "-f", file, *shlex.split(line), "-o", "yaml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    patched: dict[str, Any] = yaml.safe_load(done.stdout)
    assert patched["spec"]["schedulingGates"] == [{"name": "another"}]


def test_the_hook_of_git_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = shutil.which("uv") or str(CHECKOUT / ".uv" / "bin" / "uv")
    if not Path(uv).exists():
        pytest.skip("uv is not installed: make install")
    checkout = copy_of_checkout(tmp_path / "plimsoll")
    shutil.copy(CHECKOUT / ".pre-commit-config.yaml", checkout)
    subprocess.run(["git", "init", "--quiet"], cwd=checkout, check=True)
    for name in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "PRE_COMMIT_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    done = make(checkout, "hooks", f"UV={uv}")
    if "Failed to fetch" in done.stderr:
        pytest.skip("pre-commit cannot be downloaded")
    assert done.returncode == 0, done.stderr
    assert "pre_commit" in (checkout / ".git" / "hooks" / "pre-commit").read_text()
    (hook,) = yaml.safe_load((checkout / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert hook["entry"] == "make check"
