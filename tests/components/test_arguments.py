"""Every component can be offered to other languages, and its arguments are the fields of its model."""

from typing import Any

import pulumi
import pytest
from pulumi.provider.experimental.analyzer import Analyzer

from plimsoll.components import (
    PACKAGED,
    CapacityGate,
    ClusterTrainingRuntime,
    Controller,
    DataCache,
    Environment,
    Foundation,
    GpuDiscovery,
    Guard,
    Monitoring,
    NodePool,
    NodeProfile,
    Queue,
    QueueAdmission,
    ShareBinder,
    Topology,
    TrainingRuntime,
    Workspace,
)
from plimsoll.components.specs import (
    ControllerSpec,
    DataCacheSpec,
    FoundationSpec,
    GpuDiscoverySpec,
    GuardSpec,
    MonitoringSpec,
    QueueAdmissionSpec,
    ShareBinderSpec,
    TopologySpec,
    TrainingRuntimeSpec,
)
from plimsoll.model.api import CapacityGateSpec, EnvironmentSpec, NodeProfileSpec, WorkspaceSpec
from plimsoll.model.kai import QueueSpec
from plimsoll.model.karpenter import NodePoolSpec
from plimsoll.model.meta import Declared

OF_OBJECT = {"name", "patch_force"}


@pytest.mark.parametrize(
    ("component", "model", "others"),
    [
        (Environment, EnvironmentSpec, OF_OBJECT),
        (Queue, QueueSpec, {*OF_OBJECT, "write_all_amounts"}),
        (NodePool, NodePoolSpec, OF_OBJECT),
        (NodeProfile, NodeProfileSpec, OF_OBJECT),
        (Workspace, WorkspaceSpec, {*OF_OBJECT, "namespace", "labels"}),
        (TrainingRuntime, TrainingRuntimeSpec, {*OF_OBJECT, "namespace", "labels"}),
        (ClusterTrainingRuntime, TrainingRuntimeSpec, {*OF_OBJECT, "labels"}),
        (CapacityGate, CapacityGateSpec, set()),
        (Topology, TopologySpec, OF_OBJECT),
        (Foundation, FoundationSpec, set()),
        (ShareBinder, ShareBinderSpec, set()),
        (Guard, GuardSpec, {"name"}),
        (DataCache, DataCacheSpec, {*OF_OBJECT, "namespace"}),
        (Monitoring, MonitoringSpec, set()),
        (Controller, ControllerSpec, set()),
        (QueueAdmission, QueueAdmissionSpec, set()),
        (GpuDiscovery, GpuDiscoverySpec, {"auto_provisioning", "existing", "pool_taints"}),
    ],
)
def test_arguments_are_the_fields_of_the_model(
    component: type[pulumi.ComponentResource], model: type[Declared], others: set[str]
) -> None:
    arguments = component.__init__.__annotations__["args"]
    assert set(arguments.__annotations__) == set(model.model_fields) | others
    assert_covered(arguments, model)


def assert_covered(arguments: Any, model: type[Declared]) -> None:
    """Nested argument types also have the fields of the nested models."""
    for name, annotation in arguments.__annotations__.items():
        nested = _typed_dict_in(annotation)
        field = model.model_fields.get(name)
        inner = _model_in(field.annotation) if field else None
        if nested and inner:
            assert set(nested.__annotations__) == set(inner.model_fields), f"{arguments.__name__}.{name}"
            assert_covered(nested, inner)


def _typed_dict_in(annotation: Any) -> Any:
    return next((each for each in _flattened(annotation) if hasattr(each, "__total__")), None)


def _model_in(annotation: Any) -> type[Declared] | None:
    found = (each for each in _flattened(annotation) if isinstance(each, type) and issubclass(each, Declared))
    return next(found, None)


def _flattened(annotation: Any) -> Any:
    yield annotation
    for each in getattr(annotation, "__args__", ()):
        yield from _flattened(each)


@pytest.mark.parametrize("component", PACKAGED)
def test_component_has_a_schema(component: type[pulumi.ComponentResource]) -> None:
    """Every type and every output has a description, which editors show."""
    analysis = Analyzer("plimsoll").analyze([component])
    definition = analysis["component_definitions"][component.__name__]
    assert definition.outputs
    assert definition.description
    assert all(output.description for output in definition.outputs.values())
    assert component is Guard or all(field.optional for field in definition.inputs.values())
