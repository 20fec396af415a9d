"""Reads manifests from files; errors name file, document and field."""

import io
import json
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.labels import INSTANCE_TYPE
from plimsoll.model import Snapshot
from plimsoll.observe.files import ManifestError, read_documents, snapshot_from_files
from plimsoll.plan.demand import DemandPlanner
from plimsoll.yaml_text import YamlLoader, write_yaml

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"pool": "a"}},
    "status": {"conditions": None},
}
WORKSPACE: dict[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "Workspace",
    "metadata": {"name": "ws"},
    "spec": {"resource": {"labelSelector": {"matchLabels": {"pool": "a"}}}, "inference": {"preset": {"name": "phi-4"}}},
}
ENVIRONMENT: dict[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "Environment",
    "spec": {"nodeAutoProvisioning": "enabled"},
}


def named(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest.get("metadata", {}), "name": name}}


def read(tmp_path: Path, text: str, name: str = "file.yaml") -> Snapshot:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return snapshot_from_files([str(file)])


def refused(tmp_path: Path, text: str, name: str = "file.yaml") -> str:
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, text, name)
    return str(caught.value)


def names(snapshot: Snapshot) -> list[str]:
    return [node.name for node in snapshot.nodes]


@pytest.mark.parametrize("kind", ["yaml", "json"])
@pytest.mark.parametrize("form", ["single", "documents", "List", "NodeList", "List in a List"])
def test_forms(tmp_path: Path, kind: str, form: str) -> None:
    items = [named(NODE, "n1")] if form == "single" else [named(NODE, "n1"), named(NODE, "n2")]
    if form in ("single", "documents"):
        documents = items
    elif form == "NodeList":
        bare = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in items]
        documents = [{"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": bare}]
    else:
        documents = [{"apiVersion": "v1", "kind": "List", "items": items}]
        if form == "List in a List":
            documents = [{"apiVersion": "v1", "kind": "List", "items": documents}]
    dump = json.dumps if kind == "json" else yaml.safe_dump
    text = ("\n" if kind == "json" else "---\n").join(dump(document) for document in documents)
    assert names(read(tmp_path, text, f"file.{kind}")) == [item["metadata"]["name"] for item in items]


def test_folders_are_read_recursively_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    for path, name in (("b/c/1.yml", "third"), ("b/1.json", "second"), ("a.yaml", "first"), ("b/notes.txt", "none")):
        (tmp_path / path).write_text(json.dumps(named(NODE, name)))
    assert names(snapshot_from_files([str(tmp_path)])) == ["first", "second", "third"]


def test_hidden_folders_and_files_are_those_of_tools(tmp_path: Path) -> None:
    """Also `on` of a workflow of GitHub is no text in YAML 1.1."""
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "preview.yaml").write_text("on: push\n")
    (tmp_path / ".pre-commit-config.yaml").write_text("repos: []\n")
    (tmp_path / "node.yaml").write_text(json.dumps(NODE))
    assert names(snapshot_from_files([str(tmp_path)])) == ["n1"]
    (workflows / "preview.yaml").write_text(json.dumps(named(NODE, "named")))
    assert names(snapshot_from_files([str(tmp_path / ".github")])) == ["named"], "unless it is named"


def test_each_file_of_a_volume_of_a_config_map_is_read_once(tmp_path: Path) -> None:
    kept = tmp_path / "..2026_11_22_09_13_00.42"
    kept.mkdir()
    (kept / "node.yaml").write_text(json.dumps(NODE))
    (tmp_path / "..data").symlink_to(kept.name)
    (tmp_path / "node.yaml").symlink_to("..data/node.yaml")
    assert names(snapshot_from_files([str(tmp_path)])) == ["n1"]
    assert names(snapshot_from_files([str(tmp_path / "..data")])) == ["n1"]


@pytest.mark.parametrize("text", [yaml.safe_dump(NODE), json.dumps(NODE)])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert names(snapshot_from_files(["-"])) == ["n1"]


def test_several_files_make_one_snapshot(tmp_path: Path) -> None:
    for name in ("n1", "n2"):
        (tmp_path / f"{name}.yaml").write_text(json.dumps(named(NODE, name)))
    assert names(snapshot_from_files([str(tmp_path / "n2.yaml"), str(tmp_path / "n1.yaml")])) == ["n2", "n1"]


def test_without_an_environment_auto_provisioning_is_disabled(tmp_path: Path) -> None:
    assert not read(tmp_path, yaml.safe_dump(NODE)).environment.spec.auto_provisioning
    assert read(tmp_path, yaml.safe_dump(ENVIRONMENT)).environment.spec.auto_provisioning


def test_without_an_environment_workspaces_with_an_instance_type_are_warned_of(tmp_path: Path) -> None:
    """They are refused, whatever the cluster's Environment says."""
    typed = {**WORKSPACE, "spec": {**WORKSPACE["spec"], "resource": {"instanceType": "g6.xlarge"}}}
    (warning,) = read(tmp_path, yaml.safe_dump(typed)).warnings
    assert "Environment" in warning and "1 Workspace" in warning
    assert not read(tmp_path, yaml.safe_dump_all([typed, ENVIRONMENT])).warnings
    assert not read(tmp_path, yaml.safe_dump(WORKSPACE)).warnings


def test_a_workspace_without_a_namespace_is_in_default(tmp_path: Path) -> None:
    [workspace] = read(tmp_path, yaml.safe_dump(WORKSPACE)).workspaces
    assert workspace.key == ("default", "ws")


def test_timestamps_stay_strings_and_empty_documents_are_skipped(tmp_path: Path) -> None:
    text = "---\n---\n# nothing\n---\n" + yaml.safe_dump(NODE).replace(
        "metadata:", "metadata:\n  creationTimestamp: 2026-01-01T00:00:00Z"
    )
    [node] = read(tmp_path, text).nodes
    assert node.creation_timestamp == "2026-01-01T00:00:00Z"


def test_other_kinds_are_skipped_with_one_warning_each(tmp_path: Path) -> None:
    others = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")]
    foreign = {"apiVersion": "kaito.sh/v1beta1", "kind": "Workspace", "metadata": {"name": "c"}}
    plain = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    snapshot = read(tmp_path, yaml.safe_dump_all([*others, foreign, plain, NODE]))
    assert len(snapshot.warnings) == 3
    assert any("2 of kind ConfigMap" in warning for warning in snapshot.warnings)
    assert any("kaito.sh/v1beta1" in warning for warning in snapshot.warnings)
    assert snapshot.workspaces == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            (text, text)
            for text in ("=", "10:20", "1:30.5", "2024-01-01", "truE", "._5", "_1", "1e", "0o", "0o8", "0b2")
        ),
        *((text, True) for text in ("yes", "On", "TRUE", "y", "Y")),
        *((text, False) for text in ("no", "Off", "False", "n", "N")),
        *((text, 15) for text in ("15", "+15", "0o17", "017", "0xF", "0b1111", "1_5", "0_17")),
        *((text, -8) for text in ("-8", "-08", "-0o10", "-0x8", "-0b1000")),
        *((text, 1000) for text in ("1e3", "1E3", "1.e3", "1_000.0", "10e+2")),
        *((text, 0.5) for text in (".5", "+.5", "0.5", "5e-1")),
        ("!!str 10", "10"),
    ],
)
def test_a_value_is_read_as_kubernetes_reads_it(tmp_path: Path, text: str, value: Any) -> None:
    (tmp_path / "file.yaml").write_text(f"a: {text}")
    (document,) = read_documents([str(tmp_path / "file.yaml")])
    read = document.value["a"]
    assert read == value
    assert isinstance(read, bool | str) is isinstance(value, bool | str)


def test_merged_keys_are_fields(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text("a: &a {b: 1, c: 1}\nd: {<<: *a, c: 2}")
    (document,) = read_documents([str(tmp_path / "file.yaml")])
    assert document.value["d"] == {"b": 1, "c": 2}


WRONG: list[Any] = [
    pytest.param({"spec": {"resorce": {}}}, "spec.resorce: unknown field", id="unknown field"),
    *[
        pytest.param(
            {"spec": {"inference": {"preset": {"name": "x"}, **fields}}}, f"spec.inference.{path}: unknown field{hint}"
        )
        for fields, path, hint in (
            ({"rolloutStrategy": "Surge"}, "rolloutStrategy", " (did you mean rollout?)"),
            ({"rollout": {"maxsurge": 1}}, "rollout.maxsurge", " (did you mean maxSurge?)"),
            (
                {"rollout": {"maxUnavailable": 1}},
                "rollout.maxUnavailable",
                " (its fields: strategy, maxSurge, deadlineSeconds)",
            ),
            ({"adapters": [{"name": "a", "sourc": {}}]}, "adapters[0].sourc", " (did you mean source?)"),
        )
    ],
    pytest.param({"spec": None}, "spec: is required", id="no spec"),
    pytest.param({"spec": {"inference": {"preset": {"name": "x"}, "replicas": -1}}}, "inference.replicas", id="neg"),
    pytest.param(
        {"spec": {"inference": {"preset": {"name": "x"}, "gpuMemoryGiB": "16Gi"}}},
        "spec.inference.gpuMemoryGiB",
        id="unit",
    ),
    pytest.param({"spec": {"inference": {"template": {"spec": {}}}}}, "spec.containers", id="template"),
    pytest.param({"spec": {"inference": {}}}, "spec.inference: needs a preset or a template", id="neither"),
    pytest.param(
        {"spec": {"resource": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}}},
        "spec.resource.labelSelector.matchExpressions[0].operator",
        id="operator",
    ),
    pytest.param({"metadata": {}}, "metadata.name", id="no name"),
    pytest.param({"metadata": {"name": "Not a name"}}, "metadata.name: 'Not a name'", id="name"),
    pytest.param({"metadata": {"name": "a", "labels": {"on": True}}}, "metadata.labels.on", id="label"),
    pytest.param({"metadata": []}, "metadata: must be an object", id="metadata"),
    pytest.param({"kind": None}, "kind: missing", id="no kind"),
    pytest.param({"kind": 3}, "kind: 3 is not a string", id="kind"),
    pytest.param({"apiVersion": None}, "apiVersion: missing", id="no version"),
    pytest.param({"apiVersion": "plimsoll.dev/v9"}, "apiVersion: 'plimsoll.dev/v9'", id="version"),
]


@pytest.mark.parametrize(("change", "reported"), WRONG)
def test_a_wrong_object_is_an_error_with_its_place(tmp_path: Path, change: dict[str, Any], reported: str) -> None:
    text = yaml.safe_dump_all([NODE, {**WORKSPACE, **change}])
    message = refused(tmp_path, text)
    assert f"{tmp_path / 'file.yaml'}, document 2" in message
    assert reported in message


def test_fields_of_another_object_are_not_meant(tmp_path: Path) -> None:
    spec = {"inference": {"preset": {"name": "x"}, "pods": {"nodeCountLimit": 1}}}
    assert refused(tmp_path, yaml.safe_dump({**WORKSPACE, "spec": spec})).endswith("pods.nodeCountLimit: unknown field")


def test_a_wrong_item_of_a_list_is_named_by_its_number(tmp_path: Path) -> None:
    wrong = {**NODE, "metadata": {"name": "n2", "labels": {"nvidia.com/gpu.count": 8}}}
    message = refused(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, wrong]}), "f.json")
    assert "document 1, item 2, line 1: metadata.labels.nvidia.com/gpu.count: must be a string" in message
    assert "put it in quotes" in message


@pytest.mark.parametrize("value", ["y", "1"])
def test_a_value_that_a_pod_selects_is_a_string(tmp_path: Path, value: str) -> None:
    def written(text: str, *, selector: bool) -> str:
        expressions = f"matchExpressions: [{{key: team, operator: In, values: [{text}]}}]"
        affinity = f"affinity: {{nodeAffinity: {{{TERMS}: {{nodeSelectorTerms: [{{{expressions}}}]}}}}}}"
        placed = f"nodeSelector: {{team: {text}}}" if selector else affinity
        spec = f"{{{placed}, containers: [{{name: c}}]}}"
        return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: web, annotations: {{gpu-fraction: '1'}}}}\nspec: {spec}"

    for selector in (True, False):
        message = refused(tmp_path, written(value, selector=selector))
        assert "Pod default/web: spec" in message and "team: must be a string" in message
        assert read(tmp_path, written(f'"{value}"', selector=selector)).pods


@pytest.mark.parametrize("kind", ["NodePool", "NodeClaim"])
@pytest.mark.parametrize("value", ["N", "4", "1e3"])
def test_a_value_of_a_requirement_is_a_string(tmp_path: Path, kind: str, value: str) -> None:
    """`N` is a boolean without quotes, and 4 a number: Karpenter's definitions refuse both."""

    def written(text: str) -> str:
        requirements = f"requirements: [{{key: a, operator: Exists}}, {{key: b, operator: In, values: [{text}]}}]"
        spec = f"{{template: {{spec: {{{requirements}}}}}}}" if kind == "NodePool" else f"{{{requirements}}}"
        return f"apiVersion: karpenter.sh/v1\nkind: {kind}\nmetadata: {{name: x}}\nspec: {spec}"

    message = refused(tmp_path, written(value))
    assert f"{kind} x: spec." in message and "requirements[1].values: must be a string" in message
    assert read(tmp_path, written(f'"{value}"'))


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("kind: [", "document 1"),
        ("null\n---\na: [", "document 2"),
        ("a: 1\na: 2", "field 'a' occurs twice"),
        ("metadata:\n\tname: x", "line 2: not YAML: a tab"),
        ("a:\n  b: x\n\tc: x", "line 3: not YAML: a tab"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: {}}", "spec.containers: must be a list"),
        ("apiVersion: v1\nkind: Node\nmetadata: {name: x, labels: a}", "metadata.labels: must be an object"),
        ("- 1", "not an object, but a list"),
        ("just text", "not an object, but 'just text'"),
        ("1: x\nkind: Node", "field 1 is not a string"),
        ("kind: !!python/object:os.system {}", "document 1"),
        ("a: !!binary aGVsbG8=", "is not a JSON value"),
        ("a: .nan", "is not a JSON value"),
        ("a: 99999999999999999999", "is not a JSON value"),
        ("a: &a [*a]", "nested deeper"),
        ("a: " + "[" * 200 + "]" * 200, "nested deeper"),
    ],
)
def test_text_that_is_not_a_manifest_is_an_error(tmp_path: Path, text: str, reported: str) -> None:
    message = refused(tmp_path, text)
    assert str(tmp_path / "file.yaml") in message
    assert reported in message


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "aliases" in refused(tmp_path, "\n".join(lines))


def test_json_texts_and_items_have_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "objects.json"
    many = '{"kind": "List",\n "items": [{},\n  {}]}'
    file.write_text(f"\n{json.dumps(NODE)}\n\n{json.dumps(WORKSPACE, indent=1)} {many}\n{many}\n")
    found = [(document.place.line, document.item_lines) for document in read_documents([str(file)])]
    indented = json.dumps(WORKSPACE, indent=1).count("\n")
    first = 4 + indented
    assert found == [(2, ()), (4, ()), (first, (first + 1, first + 2)), (first + 3, (first + 4, first + 5))]


def test_json_lines_are_read_without_a_copy_of_the_rest_for_each(tmp_path: Path) -> None:
    """Which took 2 s for 1,000 objects, and four times as long for twice as many."""
    file = tmp_path / "nodes.json"
    file.write_text("".join(json.dumps(named(NODE, "n" * 200)) + "\n" for _ in range(500)))
    documents = read_documents([str(file)])
    next(documents)
    tracemalloc.start()
    assert sum(1 for _ in documents) == 499
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < file.stat().st_size / 4


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("{", "document 1: not JSON"),
        (json.dumps(NODE) + "\n{,}", "document 2: not JSON"),
        ('{"a": 1, "a": 2}', "field 'a' occurs twice"),
        ("[1]", "not an object, but a list"),
        ("[" * 100_000, "document 1"),
        ('{"a": "\\ud800"}', "is not a JSON value"),
    ],
)
def test_invalid_json_is_an_error(tmp_path: Path, text: str, reported: str) -> None:
    assert reported in refused(tmp_path, text, "file.json")


def test_a_binary_or_missing_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ManifestError, match="not UTF-8"):
        snapshot_from_files([str(tmp_path / "binary.yaml")])
    with pytest.raises(ManifestError, match=r"gone\.yaml: No such file"):
        snapshot_from_files([str(tmp_path / "gone.yaml")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ManifestError, match="no manifests found"):
        snapshot_from_files([str(tmp_path / "empty")])


def test_the_same_object_twice_is_an_error_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text(yaml.safe_dump(NODE))
    (tmp_path / "2.yaml").write_text(yaml.safe_dump_all([ENVIRONMENT, NODE]))
    with pytest.raises(ManifestError) as caught:
        snapshot_from_files([str(tmp_path)])
    assert f"{tmp_path / '2.yaml'}, document 2, line 6: Node n1 is already in {tmp_path / '1.yaml'}, document 1" in str(
        caught.value
    )


def test_a_uid_that_another_object_has_is_an_error_with_both(tmp_path: Path) -> None:
    copy = {**NODE, "metadata": {**NODE["metadata"], "name": "copy", "uid": "one"}}
    text = yaml.safe_dump_all([{**NODE, "metadata": {**NODE["metadata"], "uid": "one"}}, copy])
    assert "document 2, line 11: Node copy: metadata.uid: 'one' is already used by Node n1" in refused(tmp_path, text)


@pytest.mark.parametrize("name", ["default", "other"])
def test_two_environments_are_an_error_with_both_places(tmp_path: Path, name: str) -> None:
    message = refused(tmp_path, yaml.safe_dump_all([ENVIRONMENT, named(ENVIRONMENT, name)]))
    assert "document 2" in message
    assert "document 1" in message


def test_a_wrong_environment_names_its_field(tmp_path: Path) -> None:
    message = refused(tmp_path, yaml.safe_dump({**ENVIRONMENT, "spec": {"nodeAutoProvisioning": True}}))
    assert "spec.nodeAutoProvisioning" in message


def test_the_same_name_in_two_namespaces_or_kinds_is_fine(tmp_path: Path) -> None:
    elsewhere = {**WORKSPACE, "metadata": {"name": "ws", "namespace": "other"}}
    snapshot = read(tmp_path, yaml.safe_dump_all([WORKSPACE, elsewhere, named(NODE, "ws")]))
    assert len(snapshot.workspaces) == 2


def test_pods_without_gpus_and_daemon_sets_count_with_their_requests(tmp_path: Path) -> None:
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "agent-x",
            "namespace": "kube-system",
            "ownerReferences": [{"kind": "DaemonSet", "name": "agent", "controller": True}],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]},
    }
    ended = named(plain, "ended") | {"status": {"phase": "Failed"}}
    pending = {**named(plain, "pending"), "spec": {"containers": []}}
    share = {**named(pending, "share"), "metadata": {"name": "share", "annotations": {"gpu-fraction": "0.5"}}}
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {"template": {"spec": plain["spec"]}},
    }
    items = [NODE, plain, ended, pending, share, agent]
    snapshot = read(tmp_path, json.dumps({"kind": "List", "items": items}), "file.json")
    assert [pod.name for pod in snapshot.pods] == ["share"]
    loads = {node: (load.cpu_milli, load.pods) for node, load in snapshot.host_loads.items()}
    assert loads == {"n1": (500, 1)}, "neither that which ended nor that on no node"
    (read_agent,) = snapshot.daemon_sets
    assert read_agent.title in snapshot.host_loads["n1"].daemon_sets
    assert read_agent.host.cpu_milli == 500
    assert not snapshot.warnings


def test_a_pod_without_gpus_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    spec = {"nodeName": "n1", "containers": [{"name": "main", "resources": {"requests": {"cpu": "much"}}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    assert "Pod default/web" in refused(tmp_path, json.dumps(pod), "file.json")


TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": [1]},
        {"tolerations": -1},
        {"affinity": {"nodeAffinity": -1}},
        {"affinity": {"nodeAffinity": {TERMS: {"nodeSelectorTerms": [1]}}}},
        {"affinity": {"nodeAffinity": {TERMS: {"nodeSelectorTerms": [{"matchExpressions": -1}]}}}},
        {"affinity": {"nodeAffinity": {TERMS: {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": -1}]}]}}}},
    ],
)  # fmt: skip
def test_a_pod_with_a_wrong_placement_is_named_with_the_fields(tmp_path: Path, spec: dict[str, Any]) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    message = refused(tmp_path, json.dumps(pod), "file.json")
    assert "Pod default/web: spec: nodeSelector, affinity or tolerations" in message


@pytest.mark.parametrize("owners", [[-1], ["DaemonSet"], [["kind"]]])
def test_owners_of_another_type_are_none(tmp_path: Path, owners: Any) -> None:
    metadata = {"name": "web", "ownerReferences": owners}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n1"}}
    [load] = read(tmp_path, json.dumps(pod), "file.json").host_loads.values()
    assert load.pods == 1
    assert not load.daemon_sets


@pytest.mark.parametrize(
    "requirements", [-1, [-1], [[1]], [{"key": [1]}], *([{"key": INSTANCE_TYPE, "operator": "In", "values": each}]
    for each in (-1, True, "g6.xlarge", {"a": 1}, None))],
)  # fmt: skip
def test_requirements_of_another_type_name_no_instance_type(tmp_path: Path, requirements: Any) -> None:
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"nodeClassRef": node_class, "requirements": requirements}
    api = {"apiVersion": "karpenter.sh/v1"}
    claim = {**api, "kind": "NodeClaim", "metadata": {"name": "c"}, "spec": spec}
    pool = {**api, "kind": "NodePool", "metadata": {"name": "p"}, "spec": {"template": {"spec": spec}}}
    snapshot = read(tmp_path, yaml.safe_dump_all([claim, pool]))
    assert [each.instance_types for each in snapshot.node_claims] == [()]
    assert [each.instance_types for each in snapshot.node_pools] == [()]
    assert not DemandPlanner().plan(snapshot).demands


@pytest.mark.parametrize("replicas", [-1, 2**31])
def test_a_number_of_replicas_that_cannot_be_is_named(tmp_path: Path, replicas: int) -> None:
    metadata = {"name": "web", "labels": {"plimsoll.dev/workspace": "web"}}
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}}
    message = refused(tmp_path, json.dumps(workload), "file.json")
    assert "Deployment default/web: spec.replicas" in message


def a_priority_class(name: str, value: int, *, by_default: bool = False) -> dict[str, Any]:
    api = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**api, "value": value, "globalDefault": by_default}


def a_pod_of_priority(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {"gpu-fraction": "0.5"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_pods_without_a_priority_get_that_of_their_class_or_of_the_default(tmp_path: Path) -> None:
    """As the cluster does when a pod is created. The classes may be listed after the pods."""
    pods = [
        a_pod_of_priority("named", priorityClassName="high"),
        a_pod_of_priority("of-every-cluster", priorityClassName="system-node-critical"),
        a_pod_of_priority("none"),
        a_pod_of_priority("created", priorityClassName="high", priority=7),
        a_pod_of_priority("created-without", priority=0),
    ]
    classes = [
        a_priority_class("high", 1000),
        a_priority_class("usual", 10, by_default=True),
        a_priority_class("usual-too", 20, by_default=True),
    ]
    snapshot = read(tmp_path, yaml.safe_dump_all([*pods, *classes]))
    assert snapshot.warnings == ()
    assert {pod.name: (pod.priority, pod.priority_class) for pod in snapshot.pods} == {
        "named": (1000, "high"),
        "of-every-cluster": (2_000_001_000, "system-node-critical"),
        "none": (10, "usual"),
        "created": (7, "high"),
        "created-without": (0, ""),
    }


def test_a_priority_class_that_is_not_in_the_files_is_named(tmp_path: Path) -> None:
    pods = [a_pod_of_priority(name, priorityClassName="hihg") for name in "ab"] + [a_pod_of_priority("none")]
    snapshot = read(tmp_path, yaml.safe_dump_all([*pods, a_priority_class("high", 1000)]))
    assert {pod.priority for pod in snapshot.pods} == {0}
    (warning,) = snapshot.warnings
    assert "PriorityClass hihg" in warning


def test_a_priority_class_without_a_value_is_named_with_the_field(tmp_path: Path) -> None:
    invalid = {key: value for key, value in a_priority_class("high", 0).items() if key != "value"}
    assert "PriorityClass high: value: is required" in refused(tmp_path, yaml.safe_dump(invalid))


@given(
    st.recursive(
        st.one_of(
            st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.text(max_size=8)
        )
        | st.sampled_from(["y", "N", "1e3", "08", "0o17", "=", "10:20", "2026-01-01", "1_000", ".5", "on", "~", "0b1"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    )
)
def test_what_is_written_is_read_alike_by_kubernetes_and_by_other_readers(value: Any) -> None:
    text = write_yaml({"value": value})
    assert yaml.load(text, YamlLoader) == {"value": value}
    assert yaml.safe_load(text) == {"value": value}


KINDS = [
    ("v1", "Node", False, "nodes"),
    ("v1", "Pod", True, "pods"),
    ("karpenter.sh/v1", "NodeClaim", False, "node_claims"),
    ("karpenter.sh/v1", "NodePool", False, "node_pools"),
    ("karpenter.sh/v1alpha1", "NodeOverlay", False, "node_overlays"),
    ("karpenter.k8s.aws/v1", "EC2NodeClass", False, "node_classes"),
    ("karpenter.azure.com/v1beta1", "AKSNodeClass", False, "node_classes"),
    ("scheduling.run.ai/v2", "Queue", False, "queues"),
    ("scheduling.run.ai/v2alpha2", "PodGroup", True, "pod_groups"),
    ("kai.scheduler/v1alpha1", "Topology", False, "topologies"),
    ("kai.scheduler/v1", "SchedulingShard", False, "scheduling_shards"),
    ("plimsoll.dev/v1alpha1", "Workspace", True, "workspaces"),
    ("apps/v1", "DaemonSet", True, "daemon_sets"),
    ("v1", "Namespace", False, "namespaces"),
    ("v1", "ResourceQuota", True, "resource_quotas"),
    ("policy/v1", "PodDisruptionBudget", True, "disruption_budgets"),
    ("apps/v1", "Deployment", True, "workloads"),
    ("apps/v1", "StatefulSet", True, "workloads"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", True, "workloads"),
    ("v1", "Service", True, "workloads"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", True, "autoscalers"),
    ("plimsoll.dev/v1alpha1", "GPUDemand", False, "gpu_demands"),
    ("v1", "PodTemplate", True, "pod_templates"),
    ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", True, "capacity_buffers"),
    ("autoscaling.x-k8s.io/v1", "ProvisioningRequest", True, "provisioning_requests"),
]


@pytest.mark.parametrize(("version", "kind", "namespaced", "field"), KINDS, ids=str)
def test_each_kind_is_read_into_its_part_of_the_snapshot(
    tmp_path: Path, version: str, kind: str, namespaced: bool, field: str
) -> None:
    metadata = {"name": "one", "labels": {"plimsoll.dev/workspace": "ws"}}
    spec = WORKSPACE["spec"] if kind == "Workspace" else {}
    given = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    snapshot = read(tmp_path, yaml.safe_dump(given))
    [found] = getattr(snapshot, field)
    assert (found.name, found.namespace) == ("one", "default" if namespaced else "")
    assert not any("skipped" in warning for warning in snapshot.warnings)
    placed = {**given, "metadata": {**metadata, "namespace": "team"}}
    [found] = getattr(read(tmp_path, yaml.safe_dump(placed)), field)
    assert found.namespace == ("team" if namespaced else "")
