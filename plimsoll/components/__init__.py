"""Pulumi components: each declares the Kubernetes objects of one kind of setting."""

from pulumi import ComponentResource

from plimsoll.components.access import (
    AGGREGATED,
    CONTROLLER,
    CONTROLLER_ELSEWHERE,
    CONTROLLER_FOR_DEMAND,
    CONTROLLER_FOR_WORKSPACES,
    CONTROLLER_IN_ITS_NAMESPACE,
    CONTROLLER_NAME,
    NAMESPACE,
    RESERVATION,
    SHARE_BINDER,
    SHARE_BINDER_FOR_RESERVATIONS,
    SHARE_BINDER_IN_ITS_NAMESPACE,
    UI,
    UI_IN_ITS_NAMESPACE,
    Rule,
)
from plimsoll.components.admission import FOUNDATION_GUARD, Guard, GuardArgs, Mutation, MutationPolicy, rule_policies
from plimsoll.components.capacity_gate import GATE_NAME, CapacityGate, CapacityGateArgs, gate_policies
from plimsoll.components.controller import Controller, ControllerArgs
from plimsoll.components.data_cache import DataCache, DataCacheArgs
from plimsoll.components.declaring import ENGINE, EngineVersionError, InvalidArgumentError, metadata
from plimsoll.components.environment import Environment, EnvironmentArgs
from plimsoll.components.foundation import Foundation, FoundationArgs
from plimsoll.components.gpu_discovery import ExistingGpuSoftwareArgs, GpuDiscovery, GpuDiscoveryArgs
from plimsoll.components.monitoring import (
    MONITORING_NAME,
    Monitoring,
    MonitoringArgs,
    alert_rules,
    dashboard_json,
)
from plimsoll.components.node_pool import NodePool, NodePoolArgs
from plimsoll.components.node_profile import ClaimDevicesArgs, NodeProfile, NodeProfileArgs
from plimsoll.components.package import schema, serve
from plimsoll.components.queue import Queue, QueueArgs
from plimsoll.components.queue_admission import QueueAdmission, QueueAdmissionArgs
from plimsoll.components.restricted import RESTRICTED
from plimsoll.components.share_binder import ShareBinder, ShareBinderArgs
from plimsoll.components.topology import Topology, TopologyArgs
from plimsoll.components.training_runtime import (
    ClusterTrainingRuntime,
    ClusterTrainingRuntimeArgs,
    JobSetTemplateArgs,
    PlacementArgs,
    TrainingRuntime,
    TrainingRuntimeArgs,
)
from plimsoll.components.ui import UI_NAME, UiArgs
from plimsoll.components.workspace import Workspace, WorkspaceArgs

__all__ = [
    "AGGREGATED",
    "CONTROLLER",
    "CONTROLLER_ELSEWHERE",
    "CONTROLLER_FOR_DEMAND",
    "CONTROLLER_FOR_WORKSPACES",
    "CONTROLLER_IN_ITS_NAMESPACE",
    "CONTROLLER_NAME",
    "ENGINE",
    "FOUNDATION_GUARD",
    "GATE_NAME",
    "MONITORING_NAME",
    "NAMESPACE",
    "PACKAGED",
    "RESERVATION",
    "RESTRICTED",
    "SHARE_BINDER",
    "SHARE_BINDER_FOR_RESERVATIONS",
    "SHARE_BINDER_IN_ITS_NAMESPACE",
    "UI",
    "UI_IN_ITS_NAMESPACE",
    "UI_NAME",
    "CapacityGate",
    "CapacityGateArgs",
    "ClaimDevicesArgs",
    "ClusterTrainingRuntime",
    "ClusterTrainingRuntimeArgs",
    "Controller",
    "ControllerArgs",
    "DataCache",
    "DataCacheArgs",
    "EngineVersionError",
    "Environment",
    "EnvironmentArgs",
    "ExistingGpuSoftwareArgs",
    "Foundation",
    "FoundationArgs",
    "GpuDiscovery",
    "GpuDiscoveryArgs",
    "Guard",
    "GuardArgs",
    "InvalidArgumentError",
    "JobSetTemplateArgs",
    "Monitoring",
    "MonitoringArgs",
    "Mutation",
    "MutationPolicy",
    "NodePool",
    "NodePoolArgs",
    "NodeProfile",
    "NodeProfileArgs",
    "PlacementArgs",
    "Queue",
    "QueueAdmission",
    "QueueAdmissionArgs",
    "QueueArgs",
    "Rule",
    "ShareBinder",
    "ShareBinderArgs",
    "Topology",
    "TopologyArgs",
    "TrainingRuntime",
    "TrainingRuntimeArgs",
    "UiArgs",
    "Workspace",
    "WorkspaceArgs",
    "alert_rules",
    "dashboard_json",
    "gate_policies",
    "metadata",
    "rule_policies",
    "schema",
    "serve",
]

PACKAGED: list[type[ComponentResource]] = [
    CapacityGate,
    ClusterTrainingRuntime,
    DataCache,
    Controller,
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
]
"""Components of the package `plimsoll`, for programs in any language."""
