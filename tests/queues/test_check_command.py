"""`plimsoll queues check`: a list of findings, exit codes, any shape of input."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from plimsoll.kube import Connection, RequestError
from plimsoll.observe.cluster import queue_objects
from tests.command import plimsoll
from tests.queues.manifests import pod, queue

FIELDS = ["rule", "severity", "kind", "namespace", "name", "field", "message"]


def checked(*arguments: str, given: str = "") -> tuple[int, list[dict[str, str]]]:
    done = plimsoll("queues", "check", *arguments, "--output", "json", given=given)
    found: list[dict[str, str]] = json.loads(done.stdout)
    return done.returncode, found


def test_a_clean_folder_is_an_empty_list(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "root.yaml").write_text(yaml.safe_dump(queue("a")))
    (tmp_path / "below" / "leaf.json").write_text(json.dumps(queue("b", "a")))
    assert checked("-f", str(tmp_path)) == (0, [])


def test_findings_are_exit_code_2_with_every_field() -> None:
    code, found = checked("-f", "-", given=yaml.safe_dump_all([queue("a", "gone"), pod("p", "nobody")]))
    assert code == 2
    assert [list(each) for each in found] == [FIELDS] * 2
    assert [(each["rule"], each["kind"], each["namespace"], each["name"]) for each in found] == [
        ("queue-unknown", "Pod", "research", "p"),
        ("queue-parent-missing", "Queue", "", "a"),
    ]


def test_the_items_of_a_list_are_checked_with_the_other_files(tmp_path: Path) -> None:
    items = [queue("a", "b"), queue("b", "c")]
    (tmp_path / "list.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump(queue("c")))
    assert checked("-f", str(tmp_path / "list.yaml"), "-f", str(other)) == (0, [])
    assert checked("-f", str(tmp_path / "list.yaml"), "--known", "c") == (0, [])
    assert [each["rule"] for each in checked("-f", str(tmp_path / "list.yaml"))[1]] == ["queue-parent-missing"]


def test_a_planned_deletion_is_checked() -> None:
    given = yaml.safe_dump_all([queue("a"), queue("b", "a")])
    assert [each["rule"] for each in checked("-f", "-", "--delete", "a", given=given)[1]] == [
        "queue-deleted-with-children"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "not YAML"),
        ("- a", "not an object"),
        ("apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {}", "metadata.name"),
        ("apiVersion: scheduling.run.ai/v2\nmetadata: {name: a}", "kind"),
        ("kind: List\nitems: 5", "items"),
    ],
)
def test_an_invalid_manifest_is_exit_code_1_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    done = plimsoll("queues", "check", "-f", str(file), "--output", "json")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{file}, document 1" in done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_text_output_has_one_line_for_each_finding(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    given: list[Any] = [queue("a", "b"), queue("b", "a")]
    file.write_text(yaml.safe_dump_all(given))
    done = plimsoll("queues", "check", "-f", str(file))
    assert done.returncode == 2
    assert "queue-cycle  Queue a  spec.parentQueue" in done.stdout
    assert "1 finding" in done.stdout


@pytest.mark.parametrize(("more", "code"), [([], 2), ([queue("root", "")], 0)])
def test_where_all_was_skipped_nothing_was_checked(more: list[Any], code: int) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    done = plimsoll("queues", "check", "-", given=yaml.safe_dump_all([service, *more]))
    assert done.returncode == code, done.stdout
    assert "1 Service" in done.stderr


ENVIRONMENT = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Environment", "metadata": {"name": "e"}}


def test_an_environment_alone_has_no_queues_to_check() -> None:
    done = plimsoll("queues", "check", "-", given=yaml.safe_dump(ENVIRONMENT))
    assert done.returncode == 2, done.stderr
    assert plimsoll("queues", "check", "-", given=yaml.safe_dump_all([ENVIRONMENT, queue("a")])).returncode == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([{**ENVIRONMENT, "metadata": {"name": "other"}}], "a second Environment"),
        ([], "spec.nodePoolLabelKye"),
    ],
)
def test_an_environment_that_the_cluster_would_not_have_is_an_error(more: list[Any], words: str) -> None:
    """Its label of node pools would be another one, silently."""
    first = ENVIRONMENT if more else {**ENVIRONMENT, "spec": {"nodePoolLabelKye": "x"}}
    done = plimsoll("queues", "check", "-", given=yaml.safe_dump_all([queue("a"), first, *more]))
    assert done.returncode == 1, done.stderr
    assert words in done.stderr and "document" in done.stderr


def test_an_environment_of_another_group_is_an_object_as_others() -> None:
    """It names a queue, and says nothing of the label of node pools."""
    other = {**pod("p", "nobody"), "apiVersion": "other.dev/v1", "kind": "Environment"}
    other["spec"] = {**other.get("spec", {}), "nodePoolLabelKey": "other.dev/pool"}
    code, found = checked("-f", "-", given=yaml.safe_dump_all([queue("a"), other]))
    assert (code, [(each["rule"], each["kind"]) for each in found]) == (2, [("queue-unknown", "Environment")])
    plain = {"apiVersion": "other.dev/v1", "kind": "Environment", "metadata": {"name": "e"}}
    done = plimsoll("queues", "check", "-f", "-", given=yaml.safe_dump(plain))
    assert (done.returncode, "Environment (other.dev/v1)" in done.stderr) == (2, True)


class Api:
    """Lists of what a cluster has, for an account without rights on one of the kinds."""

    def __init__(self, forbidden: str) -> None:
        self._forbidden = forbidden

    def list_items(self, path: str, **_: Any) -> list[dict[str, Any]]:
        if path.endswith(f"/{self._forbidden}"):
            raise RequestError(403, "Forbidden", f"forbidden: {path}")
        return [queue("a")] if path.endswith("/queues") else []


def test_without_rights_on_environments_the_label_is_that_of_kai() -> None:
    found = list(queue_objects(cast("Connection", Api("environments"))))
    assert [each["metadata"]["name"] for each in found] == ["a"]
    for kind in ("queues", "pods"):
        with pytest.raises(RequestError):
            list(queue_objects(cast("Connection", Api(kind))))


def test_the_configuration_of_a_tool_is_skipped_and_an_object_without_metadata_is_not(tmp_path: Path) -> None:
    objects = [queue("a"), {"apiVersion": "v1", "kind": "Config", "clusters": []}]
    done = plimsoll("queues", "check", "-f", "-", given=yaml.safe_dump_all(objects))
    assert (done.returncode, "1 Config (v1)" in done.stderr) == (0, True)
    assert (
        plimsoll("queues", "check", "-f", "-", given=yaml.safe_dump({**queue("a"), "metadata": None})).returncode == 1
    )
