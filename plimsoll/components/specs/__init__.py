"""Specs of what the components declare, and the CustomResourceDefinitions made from the models."""

from plimsoll.components.specs.controller import SETTINGS as CONTROLLER_SETTINGS
from plimsoll.components.specs.controller import ControllerSpec, NetworkPeer, UiSpec
from plimsoll.components.specs.crd import definitions, environment_definition, workspace_definition
from plimsoll.components.specs.data_cache import LEADER, SET_NAME, DataCacheSpec
from plimsoll.components.specs.data_cache import PORT as CACHE_PORT
from plimsoll.components.specs.foundation import FoundationSpec, ServedNamespaces
from plimsoll.components.specs.gpu_discovery import ExistingGpuSoftware, GpuDiscoverySpec
from plimsoll.components.specs.guard import GuardSpec, Layer
from plimsoll.components.specs.monitoring import MonitoringSpec
from plimsoll.components.specs.queue_admission import QueueAdmissionSpec
from plimsoll.components.specs.schema import structural
from plimsoll.components.specs.share_binder import ShareBinderSpec
from plimsoll.components.specs.topology import Placement, TopologySpec
from plimsoll.components.specs.training_runtime import TRAINER_API_VERSION, Kind, TrainingRuntimeSpec

__all__ = [
    "CACHE_PORT",
    "CONTROLLER_SETTINGS",
    "LEADER",
    "SET_NAME",
    "TRAINER_API_VERSION",
    "ControllerSpec",
    "DataCacheSpec",
    "ExistingGpuSoftware",
    "FoundationSpec",
    "GpuDiscoverySpec",
    "GuardSpec",
    "Kind",
    "Layer",
    "MonitoringSpec",
    "NetworkPeer",
    "Placement",
    "QueueAdmissionSpec",
    "ServedNamespaces",
    "ShareBinderSpec",
    "TopologySpec",
    "TrainingRuntimeSpec",
    "UiSpec",
    "definitions",
    "environment_definition",
    "structural",
    "workspace_definition",
]
