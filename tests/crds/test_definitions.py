"""The generated CRDs are valid for Kubernetes and agree with the models."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import Field, ValidationError

from plimsoll.components.specs import definitions, environment_definition, structural, workspace_definition
from plimsoll.model.api import EnvironmentSpec, WorkspaceSpec
from plimsoll.model.meta import Declared, Described

FORBIDDEN = {"$ref", "$defs", "definitions", "anyOf", "oneOf", "allOf", "const", "title", "default", "examples"}
DEFAULTED = ".spec.inference.replicas"
"""The only field with a default in the schema, because the scale subresource fails without it."""


def schema_of(definition: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema of every value, with its path."""
    yield path, schema
    for name, item in schema.get("properties", {}).items():
        yield from nodes(item, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


def at(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        schema = schema["properties"][name]
    return schema


@pytest.mark.parametrize("definition", definitions(), ids=lambda each: each["metadata"]["name"])
def test_schemas_are_structural(definition: dict[str, Any]) -> None:
    for path, schema in nodes(schema_of(definition)):
        assert "type" in schema, path
        assert not FORBIDDEN & (set(schema) - ({"default"} if path == DEFAULTED else set())), path
        assert not ("properties" in schema and "additionalProperties" in schema), path


@pytest.mark.parametrize("definition", definitions(), ids=lambda each: each["metadata"]["name"])
def test_specs_are_bounded_so_that_rules_have_a_cost(definition: dict[str, Any]) -> None:
    for path, schema in nodes(at(schema_of(definition), "spec")):
        if schema["type"] == "string" and "enum" not in schema:
            assert "maxLength" in schema, path
        if schema["type"] == "array":
            assert "maxItems" in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path


def test_fields_have_kaitos_names() -> None:
    spec = at(schema_of(workspace_definition()), "spec")
    assert set(at(spec, "resource")["properties"]) >= {"instanceType", "labelSelector", "count"}
    inference = at(spec, "inference")["properties"]
    assert set(inference) >= {"preset", "template", "replicas", "perReplicaNodeCount", "gpuMemoryGiB"}
    template = inference["template"]
    assert template["description"] == "A PodTemplateSpec, used unchanged in the workload."
    container = at(template, "spec", "containers")["items"]
    assert all(each["x-kubernetes-preserve-unknown-fields"] for each in (template, at(template, "spec"), container))


def test_bounds_and_choices_are_the_models() -> None:
    spec = at(schema_of(workspace_definition()), "spec")
    assert at(spec, "inference", "replicas")["minimum"] == 0
    memory = at(spec, "inference", "gpuMemoryGiB")
    assert (memory["minimum"], memory["exclusiveMinimum"]) == (0, True)
    environment = at(schema_of(environment_definition()), "spec")
    assert at(environment, "nodeAutoProvisioning")["enum"] == ["enabled", "disabled"]


def test_descriptions_come_from_the_docstrings() -> None:
    spec = at(schema_of(workspace_definition()), "spec")
    assert at(spec, "queue")["description"].startswith("KAI queue")
    assert "GiB" in at(spec, "inference", "gpuMemoryGiB")["description"]
    environment, workspace, demand, profile = (at(schema_of(definition), "status") for definition in definitions())
    assert "NodeClaims" in at(environment, "nodeClaims")["description"]
    assert "Failed attempts" in at(workspace, "provisioning", "tries")["description"]
    assert "At most 500" in at(demand, "objects")["description"]
    assert "first seen" in at(profile, "learned", "seen")["description"]


def test_a_fields_docstring_goes_before_that_of_its_type() -> None:
    class Part(Described):
        """A part."""

    class Whole(Described):
        described: Part = Part()
        """The part that is described."""
        optional: Part | None = None
        """None: there is no part."""
        plain: Part = Part()

    properties = structural(Whole)["properties"]
    assert {name: each["description"] for name, each in properties.items()} == {
        "described": "The part that is described.",
        "optional": "None: there is no part.",
        "plain": "A part.",
    }


def test_status_is_a_subresource_with_conditions_by_type() -> None:
    for definition in definitions():
        assert definition["spec"]["versions"][0]["subresources"]["status"] == {}
    for definition in (environment_definition(), workspace_definition()):
        conditions = at(schema_of(definition), "status", "conditions")
        assert conditions["x-kubernetes-list-type"] == "map"
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    status = at(schema_of(environment_definition()), "status")["properties"]
    assert (status["nodeClaims"]["type"], status["workloads"]["type"]) == ("integer", "integer")


def test_a_field_of_two_types_is_refused() -> None:
    class Loose(Declared):
        amount: int | str = Field(default=1)

    with pytest.raises(ValueError, match="no single type"):
        structural(Loose)


def spec_of(inference: dict[str, Any]) -> Any:
    return WorkspaceSpec.model_validate({"inference": {"preset": {"name": "phi-4"}, **inference}}).inference


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("replicas", each) for each in ("3", True, "3.0", 2.5)),
        *(("gpuMemoryGiB", each) for each in ("80", True)),
        *(("stableIdentity", each) for each in ("yes", "true", 1, 0)),
    ],
)
def test_a_value_of_another_type_is_refused_as_by_the_schema(field: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=field):
        spec_of({field: value})


@pytest.mark.parametrize(("value", "read"), [(3, 3), (3.0, 3)])
def test_a_whole_number_may_be_written_with_a_point(value: float, read: int) -> None:
    assert spec_of({"replicas": value, "gpuMemoryGiB": 80}).replicas == read


@pytest.mark.parametrize("price", ["32.5", True])
def test_a_value_in_a_map_is_of_its_type(price: Any) -> None:
    with pytest.raises(ValidationError, match=r"p4d\.24xlarge: must be a number"):
        EnvironmentSpec.model_validate({"catalog": {"prices": {"p4d.24xlarge": price}}})
    known = EnvironmentSpec.model_validate({"catalog": {"prices": {"p4d.24xlarge": 32}}})
    assert known.catalog.prices == {"p4d.24xlarge": 32.0}
