"""What a file says where nobody reads it, or nearly right, is named with what was meant."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.model import Snapshot
from plimsoll.observe.files import ManifestError, snapshot_from_files

SPEC = {"schedulerName": "kai-scheduler", "containers": [{"name": "c"}]}


def read(folder: Path, text: str) -> Snapshot:
    file = folder / "file.yaml"
    file.write_text(text, encoding="utf-8")
    return snapshot_from_files([str(file)])


def an_object(version: str, kind: str, name: str = "x", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {}, **fields}


def a_pod(annotations: Mapping[str, str], labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": "x", "annotations": dict(annotations), "labels": dict(labels or {})}
    return an_object("v1", "Pod", metadata=metadata, spec=SPEC)


def a_deployment(own: Mapping[str, str], of_template: Mapping[str, str]) -> dict[str, Any]:
    template = {"metadata": {"annotations": dict(of_template)}, "spec": SPEC}
    metadata = {"name": "x", "annotations": dict(own)}
    return an_object("apps/v1", "Deployment", metadata=metadata, spec={"replicas": 3, "template": template})


HALF = {"gpu-fraction": "0.5"}
TEMPLATE = "Deployment x: metadata.annotations[gpu-fraction]: no pod gets it: move it to spec.template.metadata"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (a_pod({"gpu_fraction": "0.5"}), "annotations[gpu_fraction]: nothing reads it: did you mean gpu-fraction?"),
        (a_pod({"gpuMemory": "100"}), "annotations[gpuMemory]: nothing reads it: did you mean gpu-memory?"),
        (a_pod({}, HALF), "metadata.labels[gpu-fraction]: it is read as an annotation"),
        (a_deployment(HALF, {}), TEMPLATE),
        (a_deployment({}, {"gpu-fracton": "1"}), "spec.template.metadata.annotations[gpu-fracton]: nothing reads it"),
    ],
)
def test_a_share_that_nobody_reads_is_warned_of_once(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    (warning,) = read(tmp_path, yaml.safe_dump(given)).warnings
    assert said in warning


@pytest.mark.parametrize(
    "given",
    [
        a_pod(HALF),
        a_pod(HALF, HALF),
        a_pod({**HALF, "gpu_fraction": "0.5", "gpu-info": "x", "example.com/gpu_fraction": "1", "fraction": "2"}),
        a_deployment(HALF, HALF),
        an_object("v1", "Node", metadata={"name": "x", "annotations": {"gpu_fraction": "1"}, "labels": HALF}),
    ],
)
def test_what_is_read_and_what_is_of_others_is_not(given: dict[str, Any], tmp_path: Path) -> None:
    assert read(tmp_path, yaml.safe_dump(given)).warnings == ()


@pytest.mark.parametrize(
    ("version", "kind", "meant"),
    [
        ("v1", "pod", "Pod"),
        ("apps/v1", "Deployments", "Deployment"),
        ("karpenter.sh/v1", "Nodepool", "NodePool"),
        ("v1", "Secret", ""),
        ("kubeflow.org/v1", "MXJob", ""),
        ("example.com/v1", "pod", ""),
    ],
)
def test_a_kind_that_is_nearly_one_of_its_group_is_named(version: str, kind: str, meant: str, tmp_path: Path) -> None:
    (warning,) = read(tmp_path, yaml.safe_dump(an_object(version, kind))).warnings
    assert ("did you mean" in warning) == bool(meant)
    assert meant in warning


def quantity(**fields: Any) -> dict[str, Any]:
    return an_object("v1", "Pod", spec={"nodeName": "n", "containers": [{"name": "a"}, {"name": "b", **fields}]})


def requirement(operator: str) -> dict[str, Any]:
    requirements = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": operator, "values": ["c"]}]
    return an_object("karpenter.sh/v1", "NodePool", spec={"template": {"spec": {"requirements": requirements}}})


@pytest.mark.parametrize(
    ("given", "said", "hint"),
    [
        (quantity(resources={"limits": {"memory": "1GB"}}), "containers[1].resources.limits.memory: '1GB' is not", ""),
        (an_object("v1", "Pod", metadata={"name": True}), "metadata.name: must be a string, not True", "in quotes"),
        ({"name": "ci", "on": "push"}, "apiVersion: missing", "leave out files of others"),
        (requirement("in"), "spec.template.spec.requirements[1].operator: 'in' is not known: use In, NotIn", ""),
        (an_object("plimsoll.dev/v1alpha1", "Workspace", resource={}), "Workspace default/x: resource", "under spec"),
        (an_object("plimsoll.dev/v1alpha1", "Environment", demand={}), "Environment x: demand: unknown", "under spec"),
        *[
            (an_object(version, kind, name), f"metadata.name: {name!r} is not a valid name", "")
            for version, kind in (("v1", "Pod"), ("apps/v1", "Deployment"), ("scheduling.run.ai/v2", "Queue"))
            for name in ("two\nlines", "\x1b[31mred", "größe", "{{ name }}")
        ],
    ],
)
def test_what_the_apiserver_refuses_is_an_error_with_its_field(
    given: dict[str, Any], said: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, yaml.safe_dump(given))
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["{{- if .Values.a }}\nkind: Pod\n{{- end }}\n", "kind: {{ .kind }}\n"])
def test_a_template_is_to_be_rendered_first(text: str, tmp_path: Path) -> None:
    for written, hinted in ((text, True), ("kind: [", False)):
        with pytest.raises(ManifestError) as caught:
            read(tmp_path, written)
        assert ("helm template" in (caught.value.hint or "")) == hinted
