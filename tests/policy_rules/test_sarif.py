"""SARIF 2.1.0 of findings: the required parts, rule metadata, levels, and lines of the objects in their files."""

import json
from pathlib import Path
from typing import Any

import yaml

from plimsoll.policy import RULES
from tests.command import plimsoll
from tests.policy_rules.manifests import ASKED, a_kaito_workspace, a_pod


def report(file: Path) -> dict[str, Any]:
    config = file.with_name("policies.yaml")
    config.write_text(yaml.safe_dump({"rules": ASKED}))
    done = plimsoll("policy", "check", str(file), "-c", str(config), "--output", "sarif")
    assert done.returncode == 2
    (run,) = _checked(json.loads(done.stdout))["runs"]
    found: dict[str, Any] = run
    return found


def _checked(log: dict[str, Any]) -> dict[str, Any]:
    """The properties that the standard requires, with their references (OASIS SARIF 2.1.0, sections 3.13 to 3.49)."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"] and driver["semanticVersion"]
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(set(ids)) == len(ids)
        for rule in driver["rules"]:
            assert rule["shortDescription"]["text"] and rule["help"]["text"]
            own = rule["defaultConfiguration"]
            assert own == {"enabled": False} or own["level"] in ("error", "warning")
        for result in run["results"]:
            assert ids[result["ruleIndex"]] == result["ruleId"]
            assert result["level"] in ("error", "warning")
            assert result["message"]["text"]
            for location in result["locations"]:
                physical = location["physicalLocation"]
                assert " " not in physical["artifactLocation"]["uri"]
                assert physical["region"]["startLine"] >= 1
    return log


def test_every_rule_is_described(tmp_path: Path) -> None:
    file = tmp_path / "a pod.yaml"
    file.write_text(yaml.safe_dump(a_pod(image="a")))
    run = report(file)
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(RULES)
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("/a%20pod.yaml")


def test_results_point_at_the_lines_of_their_objects(tmp_path: Path) -> None:
    good, bad = a_pod(name="good"), a_pod(name="bad", image="a")
    listed = {"apiVersion": "v1", "kind": "List", "items": [good, bad]}
    file = tmp_path / "pods.yaml"
    warned = a_kaito_workspace(resource__preferredNodes=["a"])
    file.write_text("# a comment\n" + yaml.safe_dump_all([good, listed, warned], sort_keys=False))
    lines = file.read_text().splitlines()
    assert [
        (
            result["ruleId"],
            result["level"],
            lines[result["locations"][0]["physicalLocation"]["region"]["startLine"] - 1],
        )
        for result in report(file)["results"]
    ] == [
        ("image-tag-pinned", "error", "- apiVersion: v1"),
        ("workspace-ignored-field", "warning", "apiVersion: kaito.sh/v1beta1"),
    ]


def test_items_of_json_have_lines_too(tmp_path: Path) -> None:
    listed = {"items": [a_pod(name="good"), a_pod(name="bad", image="a")], "kind": "List", "apiVersion": "v1"}
    file = tmp_path / "pods.json"
    file.write_text(json.dumps(listed, indent=1))
    (result,) = report(file)["results"]
    line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
    rest = "\n".join(file.read_text().splitlines()[line - 1 :])
    assert json.JSONDecoder().raw_decode(rest.lstrip())[0]["metadata"]["name"] == "bad"
