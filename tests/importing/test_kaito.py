"""KAITO's manifests become Workspaces of Plimsoll, and everything that is lost is named."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.kaito import Conversion, convert
from plimsoll.model.api import Workspace
from tests.command import plimsoll
from tests.shared import shared

TYPE = "Standard_NC24ads_A100_v4"
CONTAINER = {"name": "main", "image": "own:1"}


def of_kaito(
    resource: dict[str, Any] | None = None,
    inference: dict[str, Any] | None = None,
    version: str = "v1beta1",
    **fields: Any,
) -> dict[str, Any]:
    """A Workspace in KAITO's form, without `spec`."""
    selected = {"labelSelector": {"matchLabels": {"apps": "phi"}}}
    return {
        "apiVersion": f"kaito.sh/{version}",
        "kind": "Workspace",
        "metadata": {"name": "phi", "namespace": "research"},
        "resource": {"instanceType": TYPE, **selected, **(resource or {})},
        **({} if "tuning" in fields else {"inference": inference or {"preset": {"name": "phi-4-mini-instruct"}}}),
        **fields,
    }


def a_set(**spec: Any) -> dict[str, Any]:
    template = {"resource": {"instanceType": TYPE}, "inference": {"preset": {"name": "phi-4"}}}
    given = {"labelSelector": {"matchLabels": {"apps": "phi"}}, "template": template, **spec}
    return {"apiVersion": "kaito.sh/v1beta1", "kind": "InferenceSet", "metadata": {"name": "set"}, "spec": given}


TUNING = {
    "preset": {"name": "phi-4"},
    "method": "qlora",
    "input": {"name": "data", "image": "data:1"},
    "output": {"image": "out:1", "imagePushSecret": "push"},
}
SHAPES = {
    "plain": of_kaito(),
    "alpha": of_kaito({"count": 1}, version="v1alpha1"),
    "template": of_kaito(inference={"template": {"spec": {"containers": [CONTAINER]}}}),
    "partition": of_kaito({"instanceType": "", "partition": {"mode": "mig", "profile": "1g.10gb"}}),
    "config": of_kaito(inference={"preset": {"name": "phi-4"}, "config": "options"}),
    "adapters": of_kaito(
        inference={
            "preset": {"name": "phi-4"},
            "adapters": [{"source": {"name": "law", "image": "law:1"}, "strength": "1.0"}],
        }
    ),
    "gated": of_kaito(
        inference={"preset": {"name": "phi-4", "presetOptions": {"modelAccessSecret": "token", "image": "own:1"}}}
    ),
    "preferred": of_kaito({"preferredNodes": ["gpu-7"], "count": 2}),
    "tuning": of_kaito(tuning=TUNING),
    "set": a_set(replicas=3, nodeCountLimit=4),
}


def losses_of(conversion: Conversion) -> dict[str, bool]:
    """The named fields, and whether they are refused."""
    return {loss.field: loss.refused for loss in conversion.losses.found}


def converted(manifest: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bool]]:
    conversion = convert(manifest)
    assert conversion.workspace is not None, [str(loss) for loss in conversion.losses.found]
    Workspace.read(conversion.workspace)
    return conversion.workspace, losses_of(conversion)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_manifests_are_valid_for_kaito(shape: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    path = shared(f"crds/kaito.sh_{shape['kind'].lower()}s.yaml")
    versions = yaml.load(path.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    version = next(each for each in versions if shape["apiVersion"].endswith(each["name"]))
    jsonschema.validate(shape, version["schema"]["openAPIV3Schema"])


@pytest.mark.parametrize("shape", [each for name, each in SHAPES.items() if name != "tuning"])
def test_everything_except_tuning_is_converted(shape: dict[str, Any]) -> None:
    made, _ = converted(shape)
    assert made["apiVersion"] == "plimsoll.dev/v1alpha1"
    assert made["kind"] == "Workspace"


def test_a_plain_workspace_loses_nothing() -> None:
    made, losses = converted(of_kaito())
    assert losses == {}
    assert made == {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "phi", "namespace": "research"},
        "spec": {
            "resource": {"instanceType": TYPE, "labelSelector": {"matchLabels": {"apps": "phi"}}},
            "inference": {"preset": {"name": "phi-4-mini-instruct"}},
        },
    }


def test_fields_that_the_cluster_wrote_are_omitted_without_a_warning() -> None:
    given = of_kaito(status={"workerNodes": ["n"]})
    given["metadata"] |= {"uid": "u", "resourceVersion": "1", "finalizers": ["workspace.finalizer.kaito.sh"]}
    made, losses = converted(given)
    assert (made["metadata"], losses) == ({"name": "phi", "namespace": "research"}, {})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (of_kaito({"count": 2}), "resource.count"),
        (of_kaito({"preferredNodes": ["gpu-7"]}), "resource.preferredNodes"),
        (SHAPES["config"], "inference.config"),
        (SHAPES["gated"], "inference.preset.presetOptions.image"),
        (of_kaito({"instanceType": None}, version="v1alpha1"), "resource.instanceType"),
        (of_kaito(inference={"preset": {"name": "none-such"}}), "inference.preset.name"),
        (of_kaito({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}),
         "resource.labelSelector.matchExpressions"),
        (of_kaito({"labelSelector": {"matchLabels": {"a": "b", "kaito.sh/workspace": "c"}}}),
         "resource.labelSelector.matchLabels"),
        (SHAPES["set"], "kind"),
        (a_set(autoUpgrade={"enabled": True}), "spec.autoUpgrade"),
    ],
)  # fmt: skip
def test_each_loss_is_named(given: dict[str, Any], field: str) -> None:
    _, losses = converted(given)
    assert losses[field] is False


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (of_kaito(tuning=TUNING), "tuning"),
        (of_kaito({"labelSelector": {"matchExpressions": [{"key": ["a"], "operator": "Exists"}]}}),
         ""),
        (of_kaito({"labelSelector": {"matchLabels": {"kaito.sh/workspace": "c"}}}),
         "resource.labelSelector.matchLabels"),
        (of_kaito(inference={"preset": {"name": "phi-4"}, "adapters": [{"source": {"name": "a", "urls": ["u"]}}]}),
         "inference.adapters[0].source.urls"),
        (of_kaito(inference={"preset": {"name": "phi-4"}, "engine": "x"}), "inference.engine"),
        ({**of_kaito(), "kind": "RAGEngine"}, "kind"),
        ({**of_kaito(), "apiVersion": "kaito.sh/v2"}, "apiVersion"),
        (of_kaito({"labelSelector": {"matchLabels": {"a": "no value"}}}), ""),
        (of_kaito({"count": 0}), "resource.count"),
        (of_kaito({"count": "three"}, inference={"template": {"spec": {"containers": [CONTAINER]}}}), "resource.count"),
        (of_kaito({"count": 1.5}), "resource.count"),
        ({**of_kaito(), "inference": {}}, ""),
        (of_kaito(inference={"preset": {"name": "phi-4"}, "template": {"spec": {"containers": [CONTAINER]}}}), ""),
    ],
)  # fmt: skip
def test_fields_that_must_not_be_lost_are_refused_by_name(given: dict[str, Any], field: str) -> None:
    conversion = convert(given)
    assert conversion.workspace is None
    assert losses_of(conversion)[field] is True


def test_only_workspaces_of_v1alpha1_have_a_default_instance_type() -> None:
    """By KAITO's CRDs."""
    given = {**a_set(), "apiVersion": "kaito.sh/v1alpha1"}
    given["spec"]["template"]["resource"] = {}
    assert not any("instanceType" in field for field in converted(given)[1])


@pytest.mark.parametrize(("value", "lost"), [("True", True), ("False", False), ("true", False)])
def test_a_load_balancer_is_lost_where_kaito_creates_one(value: str, lost: bool) -> None:
    given = of_kaito()
    given["metadata"]["annotations"] = {"kaito.sh/enablelb": value}
    assert any("LoadBalancer" in loss.remedy for loss in convert(given).losses.found) is lost


def test_kaitos_own_labels_are_omitted_with_a_warning() -> None:
    given = of_kaito()
    given["metadata"] |= {
        "labels": {"team": "a", "kaito.sh/workspace": "w"},
        "annotations": {"kaito.sh/runtime": "transformers"},
    }
    made, losses = converted(given)
    assert made["metadata"]["labels"] == {"team": "a"}
    assert "annotations" not in made["metadata"]
    assert set(losses) == {"metadata.labels.kaito.sh/workspace", "metadata.annotations.kaito.sh/runtime"}


def test_an_inference_set_becomes_one_workspace_with_its_replicas_and_limit() -> None:
    made, _ = converted(a_set(replicas=3, nodeCountLimit=4))
    assert made["spec"]["inference"]["replicas"] == 3
    assert made["spec"]["resource"]["nodeCountLimit"] == 4
    assert made["spec"]["resource"]["labelSelector"] == {"matchLabels": {"apps": "phi"}}


def test_the_command_prints_workspaces_and_losses(tmp_path: Path) -> None:
    file = tmp_path / "kaito.yaml"
    file.write_text(yaml.safe_dump_all([of_kaito({"count": 2}), a_set()]))
    done = plimsoll("import", "kaito", str(file))
    assert done.returncode == 0, done.stderr
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(done.stdout)] == ["phi", "set"]
    assert "warning: Workspace research/phi: resource.count: 2 is not converted" in done.stderr


def test_the_command_refuses_what_it_names_and_converts_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "kaito.yaml"
    file.write_text(yaml.safe_dump_all([of_kaito(), of_kaito(tuning=TUNING)]))
    done = plimsoll("import", "kaito", str(file), "--output", "json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["metadata"]["name"] == "phi"
    assert "refused: Workspace research/phi: tuning: fine-tuning is not implemented" in done.stderr


def test_a_bad_file_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    done = plimsoll("import", "kaito", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert "no objects of kaito.sh" in done.stderr


def test_planning_names_the_import(tmp_path: Path) -> None:
    file = tmp_path / "kaito.yaml"
    file.write_text(yaml.safe_dump(of_kaito()))
    done = plimsoll("plan", "-f", str(file), "--output", "json")
    assert "plimsoll import kaito FILE" in json.loads(done.stdout)["warnings"][0]


@pytest.mark.parametrize("name", ["phi.v2", "4-phi", "p" * 64])
def test_a_name_that_will_be_refused_is_a_warning(name: str) -> None:
    _, losses = converted(of_kaito(metadata={"name": name}))
    assert losses == {"metadata.name": False}
    assert not converted(of_kaito(inference=None) | {"metadata": {"name": "phi"}})[1]


def test_a_gated_preset_without_a_secret_is_a_warning() -> None:
    llama: dict[str, Any] = {"name": "llama-3.1-8b-instruct"}
    assert converted(of_kaito(inference={"preset": llama}))[1] == {
        "inference.preset.presetOptions.modelAccessSecret": False
    }
    held = llama | {"presetOptions": {"modelAccessSecret": "token"}}
    assert not converted(of_kaito(inference={"preset": held}))[1]
    template = {"template": {"spec": {"containers": [CONTAINER]}}}
    assert not converted(a_set(template={"resource": {"instanceType": TYPE}, "inference": template}))[1].keys() - {
        "kind"
    }
