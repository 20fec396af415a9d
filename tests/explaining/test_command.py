"""`plimsoll why workspace NAME`, as a user runs it."""

import json
import unicodedata
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from plimsoll.cli import app
from plimsoll.errors import PlimsollError

EXAMPLES = str(Path(__file__).resolve().parents[2] / "examples" / "byo")
REQUIRING_DIGESTS = """
apiVersion: plimsoll.dev/v1alpha1
kind: Environment
metadata: {name: test}
spec: {policies: {rules: {image-digest: {options: {required: true}}}}}
"""
WITH_CONTROLS = r"""
apiVersion: plimsoll.dev/v1alpha1
kind: Workspace
metadata: {name: written}
spec:
  resource: {labelSelector: {matchLabels: {app: written}}}
  inference: {preset: {name: phi-4}}
status:
  conditions:
  - {type: ResourceReady, status: "False", reason: "\e]0;title\a", message: "\e[2J\e[1;1H\x9b31mTrusted\b"}
"""


def explained(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["why", "workspace", *arguments, "-f", EXAMPLES], catch_exceptions=False)


def test_an_accepted_workspace_is_explained_from_files() -> None:
    done = explained("llama")
    assert done.exit_code == 0
    for words in ("Workspace research/llama", "a100-3", "not usable: cordoned", "+ Deployment llama"):
        assert words in done.stdout, done.stdout


def test_a_refused_workspace_exits_with_2_and_says_what_to_change() -> None:
    done = explained("mixed", "--output", "json")
    reported = json.loads(done.stdout)
    assert done.exit_code == 2
    assert reported["verdict"]["reason"] == "NonUniformNodes"
    assert {each["name"]: each["why"] for each in reported["nodes"]}["a100-3"] == "cordoned"
    assert reported["need"]["estimate"]["lines"][0]["sum"] == "80 GiB x 0.84"
    assert reported["plan"] == {"create": [], "update": [], "delete": [], "withheld": [], "warnings": []}


def test_an_object_that_a_policy_withholds_is_not_planned(tmp_path: Path) -> None:
    (tmp_path / "environment.yaml").write_text(REQUIRING_DIGESTS)
    done = explained("llama", "-f", str(tmp_path), "--output", "json")
    planned = json.loads(done.stdout)["plan"]
    assert done.exit_code == 2
    assert "Deployment" not in {each["kind"] for each in planned["create"]}
    assert {(each["rule"], each["kind"]) for each in planned["withheld"]} == {("image-digest", "Deployment")}
    assert "withheld: Deployment research/llama" in explained("llama", "-f", str(tmp_path)).stdout


def test_a_text_of_others_does_not_control_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "workspace.yaml").write_text(WITH_CONTROLS)
    printed = explained("written", "-f", str(tmp_path)).stdout
    assert "Trusted" in printed
    assert [each for each in printed if unicodedata.category(each) == "Cc" and each != "\n"] == []


def test_a_name_may_be_given_as_it_is_printed() -> None:
    assert explained("research/llama").exit_code == 0


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(PlimsollError) as error:
        CliRunner().invoke(
            app, ["why", "workspace", "none", "-f", EXAMPLES], catch_exceptions=False, standalone_mode=False
        )
    assert "research/llama" in (error.value.hint or "")
