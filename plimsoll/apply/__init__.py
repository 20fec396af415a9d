"""Applies Plans as updates of the capacity stacks."""

from plimsoll.apply.applier import Applier
from plimsoll.apply.delta import Outcome, Timing
from plimsoll.apply.drift import Drift, DriftKind, find_drift
from plimsoll.apply.engine import check_passphrase, make_work_folder
from plimsoll.apply.errors import (
    ApplyError,
    BackendUnreachableError,
    ClusterUnreachableError,
    EngineKilledError,
    EngineMissingError,
    Failure,
    FailureKind,
    LeaseHeldError,
    LeaseLostError,
    LockedError,
    LockHolder,
    NamespaceMissingError,
    OtherClusterError,
    PassphraseError,
    PlanMismatchError,
    ProviderMissingError,
    StateChangedError,
    StateDamagedError,
    StateFolderFullError,
    StateUnreadableError,
    UpdateFailedError,
    UpdateInterruptedError,
    WriterStoppingError,
    engine_error,
    object_failure,
)
from plimsoll.apply.execution import Execution
from plimsoll.apply.identity import ClusterIdentity, cluster_identity
from plimsoll.apply.lease import EXPIRED_HOLDERS, LAST_DELTA, LEASE_VERSION, POD_UID, Lease, boot_clock
from plimsoll.apply.pods import CreationSignals, PodWriter
from plimsoll.apply.project import ProjectStack, project_environment
from plimsoll.apply.settings import ApplySettings, LeaseSettings, plugin_version
from plimsoll.apply.state import OwnedResource

__all__ = [
    "EXPIRED_HOLDERS",
    "LAST_DELTA",
    "LEASE_VERSION",
    "POD_UID",
    "Applier",
    "ApplyError",
    "ApplySettings",
    "BackendUnreachableError",
    "ClusterIdentity",
    "ClusterUnreachableError",
    "CreationSignals",
    "Drift",
    "DriftKind",
    "EngineKilledError",
    "EngineMissingError",
    "Execution",
    "Failure",
    "FailureKind",
    "Lease",
    "LeaseHeldError",
    "LeaseLostError",
    "LeaseSettings",
    "LockHolder",
    "LockedError",
    "NamespaceMissingError",
    "OtherClusterError",
    "Outcome",
    "OwnedResource",
    "PassphraseError",
    "PlanMismatchError",
    "PodWriter",
    "ProjectStack",
    "ProviderMissingError",
    "StateChangedError",
    "StateDamagedError",
    "StateFolderFullError",
    "StateUnreadableError",
    "Timing",
    "UpdateFailedError",
    "UpdateInterruptedError",
    "WriterStoppingError",
    "boot_clock",
    "check_passphrase",
    "cluster_identity",
    "engine_error",
    "find_drift",
    "make_work_folder",
    "object_failure",
    "plugin_version",
    "project_environment",
]
