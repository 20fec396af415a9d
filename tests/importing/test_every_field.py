"""Every field of KAITO's definitions is either converted or named as lost."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from plimsoll.kaito import convert
from tests.shared import shared

DEFINITIONS = shared("crds")
OPAQUE = ("template.spec", "template.metadata", "volumeSource")
"""Fields with Kubernetes' own types, which are not compared; `GIVEN` has their values."""
GIVEN: dict[str, Any] = {
    "metadata": {"name": "it", "namespace": "team"},
    "inference.template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    "volumeSource": {"emptyDir": {}},
    "labelSelector": {"matchLabels": {"apps": "x"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]},
    "partition": {"mode": "mig", "profile": "1g.10gb"},
    "preset.name": "phi-4",
    "source.name": "law",
    "strength": "0.5",
    "urls": ["u"],
    "count": 3,
    "replicas": 4,
    "nodeCountLimit": 9,
    "updateStrategy": {"type": "Recreate"},
    "spec.template.metadata": {"labels": {"a": "b"}},
}
CARRIED = {"apiVersion", "kind", "status", "metadata"}


def definitions() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in sorted(DEFINITIONS.glob("kaito.sh_*.yaml")):
        definition = yaml.load(path.read_text(), yaml.CSafeLoader)["spec"]
        for version in definition["versions"]:
            yield definition["names"]["kind"], version["name"], version["schema"]["openAPIV3Schema"]


def value_of(path: str, schema: dict[str, Any]) -> Any:
    for ending, value in GIVEN.items():
        if path == ending or path.endswith(f".{ending}"):
            return value
    if schema.get("type") == "object" and "properties" in schema:
        return {name: value_of(f"{path}.{name}".lstrip("."), each) for name, each in schema["properties"].items()}
    if schema.get("type") == "array":
        return [value_of(f"{path}[0]", schema["items"])]
    if "enum" in schema:
        return schema["enum"][-1]
    return {"integer": 5, "boolean": True, "object": {}}.get(schema.get("type", ""), f"value-of-{path}"[:60])


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from leaves(each, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from leaves(each, f"{path}[{number}]")
    else:
        yield path, value


CASES = list(definitions())


@pytest.mark.parametrize(("kind", "version", "schema"), CASES, ids=lambda each: each if isinstance(each, str) else "")
@pytest.mark.parametrize("without", [("template",), ("preset", "adapters", "config")], ids=["preset", "template"])
def test_every_field_is_converted_or_named(
    kind: str, version: str, schema: dict[str, Any], without: tuple[str, ...]
) -> None:
    manifest = value_of("", schema) | {"apiVersion": f"kaito.sh/{version}", "kind": kind}
    manifest.pop("tuning", None)
    holder = manifest["spec"]["template"] if kind == "InferenceSet" else manifest
    for name in without:
        holder["inference"].pop(name, None)
    for adapter in holder["inference"].get("adapters", ()):
        adapter["source"].pop("urls")
        adapter["source"].pop("volumeSource", None)
        adapter["source"]["image"] = "image:1"
    conversion = convert(manifest)
    assert conversion.workspace is not None, [str(each) for each in conversion.losses.found if each.refused]
    named = [each.field for each in conversion.losses.found]
    made = [value for _, value in leaves(conversion.workspace["spec"])]
    for path, value in leaves(manifest):
        if path.split(".")[0] in CARRIED or value in ({}, []):
            continue
        assert value in made or any(path.startswith(field) for field in named), path


@pytest.mark.parametrize("field", ["tuning", "inference", "resource", "metadata"])
@pytest.mark.parametrize("value", ["text", [1], 7, True])
def test_values_that_are_not_objects_are_refused_by_name(field: str, value: Any) -> None:
    manifest = {"apiVersion": "kaito.sh/v1beta1", "kind": "Workspace", "metadata": {"name": "it"}, field: value}
    conversion = convert(manifest)
    assert conversion.workspace is None
    assert any(each.refused and each.field == field for each in conversion.losses.found)


@pytest.mark.parametrize(
    ("inference", "field"),
    [
        ({"preset": "phi-4"}, "inference.preset"),
        ({"preset": {"name": "phi-4", "size": 3}}, "inference.preset.size"),
        ({"preset": {"name": "phi-4", "presetOptions": {"token": "t"}}}, "inference.preset.presetOptions.token"),
        ({"preset": {"name": "phi-4"}, "adapters": {"source": {}}}, "inference.adapters"),
        ({"preset": {"name": "phi-4"}, "adapters": ["law"]}, "inference.adapters[0]"),
        ({"preset": {"name": "phi-4"}, "adapters": [{"source": {"name": "a", "image": "i", "uri": "u"}}]},
         "inference.adapters[0].source.uri"),
        ({"template": ["pod"]}, "inference.template"),
    ],
)  # fmt: skip
def test_nested_fields_that_kaito_does_not_have_are_refused(inference: dict[str, Any], field: str) -> None:
    manifest = {"apiVersion": "kaito.sh/v1beta1", "kind": "Workspace", "metadata": {"name": "it"}}
    conversion = convert({**manifest, "inference": inference})
    assert conversion.workspace is None
    assert field in [each.field for each in conversion.losses.found if each.refused]


def test_fields_of_an_inference_set_are_named_with_their_path() -> None:
    template = {"resource": {"instanceType": "x", "count": 2}, "inference": {"preset": {"name": "none-such"}}}
    spec = {"labelSelector": {"matchLabels": {"karpenter.sh/nodepool": "a"}}, "template": template}
    manifest = {"apiVersion": "kaito.sh/v1beta1", "kind": "InferenceSet", "metadata": {"name": "it"}, "spec": spec}
    named = {(each.field, each.refused) for each in convert(manifest).losses.found}
    assert ("spec.template.resource.count", True) in named
    assert ("spec.labelSelector.matchLabels", False) in named
    assert ("spec.template.inference.preset.name", False) in named
