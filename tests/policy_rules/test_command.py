"""`plimsoll policy check | list`: findings of files, exit codes, reports for CI, bad files."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from plimsoll.observe.files import checked_objects
from plimsoll.policy import markdown
from tests.command import plimsoll
from tests.policy_rules.manifests import ASKED, a_kaito_workspace, a_node_pool, a_pod, a_queue

FIELDS = ["rule", "severity", "kind", "namespace", "name", "field", "message", "file", "line"]
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}


def checked(*arguments: str, given: str = "") -> tuple[int, list[dict[str, Any]]]:
    done = plimsoll("policy", "check", *arguments, "--output", "json", given=given)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return done.returncode, found


def test_clean_files_are_an_empty_list_and_exit_code_0(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all([a_pod({"gpu-fraction": "0.5"}), a_kaito_workspace()]))
    (tmp_path / "below" / "pool.json").write_text(json.dumps(a_node_pool()))
    assert checked(str(tmp_path)) == (0, [])


def test_findings_have_every_field_and_exit_code_2(tmp_path: Path) -> None:
    wrong = a_pod({"gpu-fraction": "1.5"}, image="a:latest")
    config = configured(tmp_path, {"rules": ASKED})
    code, found = checked("-", "-c", config, given=yaml.safe_dump_all([a_queue("team"), wrong]))
    assert code == 2
    assert [list(each) for each in found] == [FIELDS] * 2
    assert [(each["rule"], each["kind"], each["namespace"], each["name"]) for each in found] == [
        ("gpu-share-fraction", "Pod", "research", "train"),
        ("image-tag-pinned", "Pod", "research", "train"),
    ]


def test_the_same_object_in_two_files_is_found_in_both(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("dev.yaml", "prod.yaml")]
    for file in files:
        Path(file).write_text(yaml.safe_dump_all([a_pod(name="other"), a_pod({"gpu-fraction": "1.5"})]))
    line = Path(files[0]).read_text().splitlines().index("---") + 2
    _, found = checked(str(tmp_path))
    assert [(each["name"], each["file"], each["line"]) for each in found] == [("train", each, line) for each in files]
    text = plimsoll("policy", "check", str(tmp_path)).stdout
    assert all(f"{each}:{line}" in text for each in files)
    assert "2 findings" in text


def test_lists_and_several_documents_are_read(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [a_pod(image="a"), a_node_pool(gpu_limit=4)]}
    given = yaml.safe_dump_all([a_pod(name="second", image="b"), None, listed])
    code, found = checked("-", "-c", configured(tmp_path, {"rules": ASKED}), given=given)
    assert code == 2
    assert sorted((each["name"], each["rule"]) for each in found) == [
        ("gpu", "node-pool-limits-fit"),
        ("second", "image-tag-pinned"),
        ("train", "image-tag-pinned"),
    ]


@pytest.mark.parametrize("output", ["text", "sarif", "junit"])
@pytest.mark.parametrize("given", ["", "# all of it is a comment\n---\n"])
def test_nothing_to_check_on_standard_input_is_an_error(output: str, given: str) -> None:
    done = plimsoll("policy", "check", "-", "--output", output, given=given)
    assert (done.returncode, done.stdout) == (1, "")
    assert "standard input" in done.stderr


def test_files_without_any_document_are_an_error_and_one_beside_others_is_none(tmp_path: Path) -> None:
    (tmp_path / "commented.yaml").write_text("# nothing yet")
    assert plimsoll("policy", "check", str(tmp_path)).returncode == 1
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump(a_pod()))
    assert checked(str(tmp_path)) == (0, [])


def test_settings_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("# rules: {}")
    assert checked("-", "-c", str(tmp_path / "settings.yaml"), given=yaml.safe_dump(a_pod())) == (0, [])


def test_objects_that_no_rule_reads_are_not_checked() -> None:
    done = plimsoll("policy", "check", "-", given=yaml.safe_dump(SERVICE))
    assert (done.returncode, done.stdout.strip()) == (0, "nothing checked")


def test_kinds_without_a_rule_are_skipped_and_counted() -> None:
    done = plimsoll("policy", "check", "-", given=yaml.safe_dump_all([SERVICE, SERVICE, a_pod()]))
    assert done.returncode == 0
    assert "nothing found" in done.stdout
    assert "2 Service (v1)" in done.stderr
    assert "1 object checked" in done.stderr


def test_pods_that_ended_are_skipped_and_counted(tmp_path: Path) -> None:
    pods = [{**a_pod(name=phase.lower()), "status": {"phase": phase}} for phase in ("Running", "Succeeded", "Failed")]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    objects = checked_objects([str(tmp_path)])
    assert [each["metadata"]["name"] for each in objects.manifests] == ["running"]
    assert objects.passed_over == {"Pod (v1) that ended": 2}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", ["document 1, line ", "not YAML"]),
        (yaml.safe_dump(SERVICE) + "---\na: b: c\n", ["document 2, line 6", "not YAML"]),
        (yaml.safe_dump(SERVICE) + "---\nspec: {}\n", ["document 2, line 6", "apiVersion"]),
        ("- a", ["document 1, line 1", "not an object"]),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: []}\n", ["document 1, line 1", "metadata"]),
        ("kind: List\napiVersion: v1\nitems:\n- kind: Pod\n", ["document 1, item 1, line 4", "apiVersion"]),
    ],
)
def test_an_invalid_file_is_exit_code_1_with_file_and_line(text: str, words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    done = plimsoll("policy", "check", str(file), "--output", "json")
    assert (done.returncode, done.stdout) == (1, "")
    assert all(each in done.stderr for each in [str(file), *words])
    assert "Traceback" not in done.stderr


def configured(tmp_path: Path, config: dict[str, Any]) -> str:
    file = tmp_path / "config" / "policies.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(config))
    return str(file)


def test_the_environment_comes_from_the_configuration(tmp_path: Path) -> None:
    given = yaml.safe_dump(a_kaito_workspace("Standard_NC24ads_A100_v4"))
    byo = configured(tmp_path, {"environment": {"nodeAutoProvisioning": "disabled"}})
    assert [each["rule"] for each in checked("-", "--config", byo, given=given)[1]] == ["workspace-instance-type"]
    assert checked("-", given=given) == (0, [])


def test_exemptions_are_evaluated_at_the_given_date(tmp_path: Path) -> None:
    exemption = {"rule": "image-tag-pinned", "name": "train", "reason": "moves", "until": "2027-01-31"}
    config = configured(tmp_path, {"rules": ASKED, "exemptions": [exemption]})
    given = yaml.safe_dump(a_pod(image="a"))
    assert checked("-", "-c", config, "--date", "2027-01-31", given=given) == (0, [])
    code, found = checked("-", "-c", config, "--date", "2027-02-01", given=given)
    assert code == 2
    assert [each["rule"] for each in found] == ["exemption-expired", "image-tag-pinned"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"rule": {}}, "rule: unknown field (did you mean rules?)"),
        ({"rules": {"gpu-share-fraction": {"level": "error"}}}, "level: unknown field (its fields: severity, options)"),
        ({"rules": {"none": {}}}, "rules: there is no rule 'none'"),
        ({"rules": {"gpu-budget": {"options": {"gpus": 1}}}}, "options of rule gpu-budget: gpus: unknown field"),
        ({"environment": {"nodeAutoProvisioning": "yes"}}, "environment.nodeAutoProvisioning"),
    ],
)
def test_a_wrong_configuration_is_exit_code_1(config: dict[str, Any], words: str, tmp_path: Path) -> None:
    done = plimsoll("policy", "check", "-", "-c", configured(tmp_path, config), given=yaml.safe_dump(a_pod()))
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert f"{tmp_path}/" in done.stderr


@pytest.mark.parametrize("name", ["values", "values-prod", "gfd_values", "values2", "valuesProd"])
def test_values_and_chart_files_are_detected_by_their_names(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.yaml").write_text("image: {repository: a, tag: latest}\n")
    dependencies = [{"name": "gfd", "version": "^0.17.2", "repository": "https://charts.example"}]
    chart = {"apiVersion": "v2", "name": "stack", "version": "1.0.0", "dependencies": dependencies}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(chart))
    config = configured(tmp_path.parent, {"rules": ASKED})
    code, found = checked(str(tmp_path), "-c", config)
    assert code == 2
    assert [(each["rule"], each["kind"], each["name"]) for each in found] == [
        ("chart-version-pinned", "Chart.yaml", "stack"),
        ("image-tag-pinned", "Values", name),
    ]


def test_junit_has_a_case_for_each_object(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(yaml.safe_dump_all([a_pod(), a_pod({"gpu-fraction": "2"}, image="a", name="bad\u0001")]))
    config = configured(tmp_path, {"rules": ASKED})
    done = plimsoll("policy", "check", str(file), "-c", config, "--output", "junit")
    assert done.returncode == 2
    root = ElementTree.fromstring(done.stdout)
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    (suite,) = root
    assert suite.get("name") == str(file)
    good, bad = suite
    assert (good.get("name"), list(good)) == ("Pod research/train", [])
    (failure,) = bad
    assert failure.get("message") == "gpu-share-fraction, image-tag-pinned"
    line = file.read_text().splitlines().index("---") + 2
    assert f"{file}:{line}" in (failure.text or "")


def test_the_reference_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "policies.md"
    assert page.read_text() == markdown(), "write it anew: plimsoll policy list --output markdown"


def test_list_shows_every_rule_with_its_options() -> None:
    rules = json.loads(plimsoll("policy", "list", "--output", "json").stdout)
    by_name = {each["rule"]: each for each in rules}
    assert by_name["node-pool-consolidation"]["options"] == {"minimumSeconds": 300}
    assert by_name["gpu-share-fraction"]["enforced"] == ["pulumi", "controller", "cluster"]
    assert "queue-cycle" in by_name
    assert "node-pool-consolidation" in plimsoll("policy", "list").stdout


def an_environment(**policies: Any) -> dict[str, Any]:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "test"},
        "spec": {"policies": policies},
    }


EXEMPTION = {"rule": "image-tag-pinned", "kind": "Pod", "name": "train", "reason": "moving", "until": "2099-01-01"}


@pytest.mark.parametrize(
    ("declared", "config", "severities"),
    [
        ({}, {}, []),
        ({"rules": {"image-tag-pinned": {}}}, {}, ["error"]),
        ({"rules": {"image-tag-pinned": {"severity": "warning"}}}, {}, ["warning"]),
        ({"rules": {"image-tag-pinned": {"severity": "warning"}}}, {"rules": {"image-tag-pinned": {}}}, ["warning"]),
        ({"rules": {"image-tag-pinned": {}}}, {"rules": {"image-tag-pinned": {"severity": "off"}}}, []),
        ({"rules": {"image-tag-pinned": {}}, "exemptions": [EXEMPTION]}, {}, []),
        ({"rules": {"image-tag-pinned": {}}}, {"exemptions": [EXEMPTION]}, []),
        ({"rules": {"image-tag-pinned": {}}}, {"environment": {}}, []),
    ],
    ids=[
        "none", "declared", "as a warning", "configured without a severity", "configured as off", "exempted",
        "exempted by the configuration", "another Environment is configured",
    ],
)  # fmt: skip
def test_policies_of_an_environment_among_the_objects_hold_under_the_configuration(
    declared: dict[str, Any], config: dict[str, Any], severities: list[str], tmp_path: Path
) -> None:
    given = yaml.safe_dump_all([an_environment(**declared), a_pod(image="a")])
    _, found = checked("-", "-c", configured(tmp_path, config), given=given)
    assert [each["severity"] for each in found if each["rule"] == "image-tag-pinned"] == severities


@pytest.mark.parametrize("rules", [{"no-such-rule": {}}, {"image-digest": {"options": {"required": "yes"}}}])
def test_invalid_policies_of_an_environment_are_an_error(rules: dict[str, Any]) -> None:
    done = plimsoll("policy", "check", "-", given=yaml.safe_dump(an_environment(rules=rules)))
    assert (done.returncode, done.stdout) == (1, "")
    assert "policies of the Environment: " in done.stderr
