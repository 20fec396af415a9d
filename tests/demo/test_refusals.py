"""Steps of the demo that show a refusal or an end: they fail if something else happened."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from demo import byo, provisioned
from demo.__main__ import _run_stage
from demo.stage import CommandFailedError, Stage
from plimsoll.sandbox import Sandbox

Script = Callable[[str, str], None]

POLICY = "- [mandatory]  workspace-instance-type-in-stack  (Workspace: phi)\n  Workspace default/phi: remove it"
DENIED = "error: policy 'plimsoll-foundation' denied request: Environment sandbox still exists"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A stage whose programs are scripts of the test."""
    environ = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    return Stage("one", tmp_path, {"admin": environ, "controller": environ}, tmp_path / "log")


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(name: str, body: str) -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    return write


def pulumi(preview: str = "exit 0", destroy: str = "exit 0", export: str = "") -> str:
    return f'case "$1" in preview) {preview};; destroy) {destroy};; stack) {export};; esac'


def failing(text: str) -> str:
    return f'echo "{text}"; exit 255'


def exporting(folder: Path, *states: str) -> str:
    """Prints one state after the other."""
    for number, state in enumerate(states):
        (folder / f"state-{number}").write_text(state)
    return f'cat "$(ls {folder}/state-* | head -1)"; rm "$(ls {folder}/state-* | head -1)"'


def a_state(*urns: str) -> str:
    resources = ", ".join(f'{{"urn": "{urn}"}}' for urn in urns)
    return f'{{"deployment": {{"resources": [{resources}]}}}}'


def test_the_refusal_of_the_policy_is_shown(stage: Stage, script: Script) -> None:
    script("pulumi", pulumi(preview=failing(POLICY)))

    assert byo.check_policy(stage).endswith("refused\nWorkspace default/phi: remove it")


def test_a_preview_that_fails_otherwise_is_no_refusal(stage: Stage, script: Script) -> None:
    script("pulumi", pulumi(preview=failing("error: incorrect passphrase")))

    with pytest.raises(CommandFailedError, match=r"not with 'workspace-instance-type-in-stack'(?s:.*)passphrase"):
        byo.check_policy(stage)


def test_the_refusal_of_the_destroy_is_shown(stage: Stage, script: Script, tmp_path: Path) -> None:
    export = exporting(tmp_path, a_state("a", "b"), a_state("a", "b"))
    script("pulumi", pulumi(destroy=failing(DENIED), export=export))

    assert provisioned.refuse_destroy(stage).endswith("nothing is deleted\nEnvironment sandbox still exists")


def test_a_destroy_that_fails_otherwise_is_no_refusal(stage: Stage, script: Script, tmp_path: Path) -> None:
    script("pulumi", pulumi(destroy=failing("error: locked"), export=exporting(tmp_path, a_state("a"))))

    with pytest.raises(CommandFailedError, match=r"not with 'denied request: '(?s:.*)locked"):
        provisioned.refuse_destroy(stage)


def test_a_destroy_that_deletes_before_it_is_refused_fails_the_demo(
    stage: Stage, script: Script, tmp_path: Path
) -> None:
    script("pulumi", pulumi(destroy=failing(DENIED), export=exporting(tmp_path, a_state("a", "b"), a_state("a"))))

    with pytest.raises(CommandFailedError, match="Deleted in spite of the refusal: b"):
        provisioned.refuse_destroy(stage)


def listing(folder: Path, *claims: str) -> str:
    """A script that prints a list of NodeClaims; one that ends in - is left out from the second time on."""
    for number in range(2):
        names = [name.rstrip("-") for name in claims if not (number and name.endswith("-"))]
        items = [{"metadata": {"name": name}} for name in names]
        (folder / f"claims-{number}").write_text(json.dumps({"items": items}))
    return f'cat "$(ls {folder}/claims-* | head -1)"; rm -f {folder}/claims-0'


@pytest.mark.parametrize("claims", [("a", "b", "c"), ("a-", "b", "c"), ("a-", "b-", "c-")])
def test_a_scale_down_that_does_not_leave_one_fails_the_demo(
    stage: Stage, script: Script, tmp_path: Path, claims: tuple[str, ...]
) -> None:
    script("pulumi", "exit 0")
    script("plimsoll", "exit 0")
    script("kubectl", listing(tmp_path, *claims))

    with pytest.raises(CommandFailedError, match="One of a, b, c should be left"):
        provisioned.scale_down(stage)


def test_a_scale_down_that_leaves_one_is_shown(stage: Stage, script: Script, tmp_path: Path) -> None:
    script("pulumi", "exit 0")
    script("plimsoll", "exit 0")
    script("kubectl", listing(tmp_path, "a-", "b-", "c"))

    assert provisioned.scale_down(stage).endswith("deleted: a, b")


def test_fewer_node_claims_than_replicas_fail_the_demo(stage: Stage, script: Script, tmp_path: Path) -> None:
    script("plimsoll", "exit 0")
    script("kubectl", listing(tmp_path, "a", "b"))

    with pytest.raises(CommandFailedError, match="3 replicas need as many NodeClaims, and there are: a, b"):
        provisioned.settle(stage)


def test_a_plan_with_changes_at_the_end_fails_the_demo(stage: Stage, script: Script) -> None:
    script("plimsoll", 'case "$1" in plan) echo "1 to create; 1 Workspace accepted, 1 refused"; exit 2;; esac')
    with pytest.raises(CommandFailedError, match="would change something"):
        byo.show_status(stage)

    script("plimsoll", 'case "$1" in plan) echo "nothing to do; 1 Workspace accepted, 1 refused"; exit 2;; esac')
    assert byo.show_status(stage) == "nothing to do, one Workspace refused"


def test_node_claims_that_are_left_fail_the_demo(stage: Stage, script: Script) -> None:
    script("plimsoll", "exit 0")
    script("kubectl", "echo chat-1")

    with pytest.raises(CommandFailedError, match=r"NodeClaims are left(?s:.*)chat-1"):
        provisioned.destroy(stage)

    script("kubectl", "exit 0")
    assert provisioned.destroy(stage) == "NodeClaims left: none"


def test_a_sandbox_of_the_demo_ends_with_it(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is killed, or its terminal is closed."""
    asked: dict[str, object] = {}
    monkeypatch.setattr(Sandbox, "up", lambda _, **options: asked.update(options))
    monkeypatch.setattr(Sandbox, "down", lambda _: None)
    monkeypatch.setattr(Stage, "on", lambda *_: stage)
    monkeypatch.setattr("demo.__main__.PROJECT", tmp_path)
    (tmp_path / ".plimsoll").mkdir()

    _run_stage("sandbox", (), tmp_path, [])

    assert asked["stop_with_caller"] is True
