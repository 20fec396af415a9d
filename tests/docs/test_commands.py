"""The commands of the README and of the docs run as printed, with the printed output.

Pages that start a sandbox: tests/e2e/test_guides.py.
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from tests.pages import CHECKOUT, copy_of_checkout, pages

Done = subprocess.CompletedProcess[str]


def of_the_readme(text: str, done: Done, _checkout: Path) -> None:
    (shown,) = re.findall(r"```\n(  [+!] .*?)```", text, re.DOTALL)
    printed = iter([" ".join(line.split()) for line in done.stdout.splitlines()])
    for line in shown.splitlines():
        beginning = " ".join(line.split()).removesuffix("...")
        assert any(each.startswith(beginning) for each in printed), f"{line}: missing, or in another order"


def of_kai(text: str, done: Done, _checkout: Path) -> None:
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed[0] == "nothing found"
    for shown in re.findall(r"```\n(.*?)```", re.sub(r"```sh\n.*?```", "", text, flags=re.DOTALL), re.DOTALL):
        for line in shown.splitlines():
            assert line.rstrip() in printed


def of_kaito(text: str, done: Done, _checkout: Path) -> None:
    (warning,) = re.findall(r"```\n(warning: .*?)\n```", text, re.DOTALL)
    assert done.stderr.strip() == warning
    assert "accepted" in done.stdout
    assert "+ NodeClaim workspace-phi-4-mini-" in done.stdout


def of_shares_to_claims(text: str, done: Done, checkout: Path) -> None:
    (warning,) = re.findall(r"```\n(warning: .*?)\n```", text, re.DOTALL)
    assert done.stderr.strip() == warning
    made = list(yaml.safe_load_all((checkout / "claims.yaml").read_text()))
    assert [each["kind"] for each in made] == ["ResourceClaimTemplate", "Deployment"]


def of_packing(_text: str, done: Done, _checkout: Path) -> None:
    (line,) = re.findall(r"^ *pods +(.*)$", done.stdout, re.MULTILINE)
    shares, kai, holds, _, ours, bound, *_ = line.split()
    assert (shares, kai, holds, ours, float(bound)) == ("4", "2", "3", "3", 3.0)
    assert '"600": 1.0' in done.stdout


def of_demand(_text: str, done: Done, checkout: Path) -> None:
    assert done.stdout
    assert (checkout / "gpus.html").exists()


def of_estimate(text: str, done: Done, _checkout: Path) -> None:
    (shown,) = re.findall(r"```\n(phi-4-mini-instruct on .*?)```", text, re.DOTALL)
    printed, rest = done.stdout.split("{", 1)
    assert [line.split() for line in printed.splitlines()] == [line.split() for line in shown.splitlines()]
    assert json.loads("{" + rest)["nodes"] == 2


def of_ui(_text: str, done: Done, _checkout: Path) -> None:
    assert "Lower bound of any packing onto these nodes" in done.stdout


def of_others(_text: str, done: Done, _checkout: Path) -> None:
    assert done.stdout


SAY: dict[str, Callable[[str, Done, Path], None]] = {
    "README.md": of_the_readme,
    "docs/guides/estimate.md": of_estimate,
    "docs/guides/kai.md": of_kai,
    "docs/guides/kaito.md": of_kaito,
    "docs/guides/packing.md": of_packing,
    "docs/guides/shares-to-claims.md": of_shares_to_claims,
    "docs/guides/ui.md": of_ui,
    "docs/reference/demand.md": of_demand,
}
PAGES = {str(page): page for page in pages() if not page.needs_sandbox}


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_run(name: str, tmp_path: Path) -> None:
    page, checkout = PAGES[name], copy_of_checkout(tmp_path / "plimsoll")
    SAY.get(name, of_others)(page.text, page.run(checkout, timeout=120), checkout)


def test_the_page_on_plans_from_files_prints_what_the_command_prints(tmp_path: Path) -> None:
    text = (CHECKOUT / "docs" / "guides" / "plan-from-files.md").read_text()
    (manifests,) = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (error,) = re.findall(r"^error: ws.yaml, (.*)$", text, re.MULTILINE)
    (plan,) = re.findall(r"^```\n(accepted .*?)^```", text, re.DOTALL | re.MULTILINE)
    wrong = "kind: Node\napiVersion: v1\nmetadata: {name: gpu-0}\n---\n" + manifests.split("---\n")[1].replace(
        "name: chat", "name: llama\n  namespace: research"
    ).replace("instanceType", "instancetype")
    for name, written in (("whole.yaml", manifests), ("ws.yaml", wrong)):
        (tmp_path / name).write_text(written)

    planned = CliRunner().invoke(app, ["plan", "-f", str(tmp_path / "whole.yaml")])
    refused = CliRunner().invoke(app, ["plan", "-f", str(tmp_path / "ws.yaml")])

    assert planned.stdout.split() == plan.split()
    assert str(refused.exception).partition("\n")[0] == f"{tmp_path / 'ws.yaml'}, {error}"


def test_the_listed_pages_exist() -> None:
    assert PAGES.keys() >= SAY.keys()
