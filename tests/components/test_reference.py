"""The reference pages name every field."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from plimsoll.components.specs import ControllerSpec, GpuDiscoverySpec, TrainingRuntimeSpec
from plimsoll.model.api import (
    BinderSettings,
    CapacityGateSpec,
    EnvironmentSpec,
    NodeProfileSpec,
    NodeProfileStatus,
    WorkspaceSpec,
)
from plimsoll.model.dra import DeviceClassSpec, ResourceClaimTemplateSpec
from plimsoll.model.kai import QueueSpec
from plimsoll.model.karpenter import NodePoolSpec

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def names(model: type[BaseModel]) -> Iterator[str]:
    """Aliases of a model's fields and of those of its models."""
    for name, field in model.model_fields.items():
        yield field.alias or name
        for inner in _models(field.annotation):
            yield from names(inner)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in getattr(annotation, "__args__", ()):
        yield from _models(each)


@pytest.mark.parametrize(
    ("model", "page"),
    [
        (EnvironmentSpec, "environment.md"),
        (WorkspaceSpec, "workspace.md"),
        (NodePoolSpec, "components.md"),
        (NodeProfileSpec, "nodeprofile.md"),
        (NodeProfileStatus, "nodeprofile.md"),
        (DeviceClassSpec, "components.md"),
        (ResourceClaimTemplateSpec, "components.md"),
        (QueueSpec, "components.md"),
        (GpuDiscoverySpec, "components.md"),
        (TrainingRuntimeSpec, "components.md"),
        (BinderSettings, "reservations.md"),
        (CapacityGateSpec, "components.md"),
        (ControllerSpec, "controller.md"),
    ],
)
def test_every_field_is_in_the_reference(model: type[BaseModel], page: str) -> None:
    words = set(re.findall(r"[A-Za-z]+", (REFERENCE / page).read_text()))
    assert set(names(model)) - words == set()
