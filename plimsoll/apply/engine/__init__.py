"""Runs Pulumi's engine: one process runs a program for one stack, and reports its operations in its event log."""

from plimsoll.apply.engine.cluster_provider import ClusterProvider, find_provider
from plimsoll.apply.engine.environment import (
    check_passphrase,
    engine_environment,
    engine_home,
    make_engine_home,
    make_work_folder,
)
from plimsoll.apply.engine.language import InlineLanguage
from plimsoll.apply.engine.orphans import end_orphans, is_writer_running
from plimsoll.apply.engine.process import HOLDER, PASSPHRASE_VARIABLE, Engine, end_session, find_pulumi, is_running
from plimsoll.apply.engine.program import (
    CLUSTER_TYPE,
    PROVIDER_TYPE,
    STACK_TYPE,
    CalledOffError,
    DeclaredResource,
    Deleting,
    Program,
    Registrations,
    cluster_urn,
    provider_urn,
    stack_urn,
    urn_of,
)
from plimsoll.apply.engine.progress import EngineEvent, Operation, Progress
from plimsoll.apply.engine.stack import CapacityStack

__all__ = [
    "CLUSTER_TYPE",
    "HOLDER",
    "PASSPHRASE_VARIABLE",
    "PROVIDER_TYPE",
    "STACK_TYPE",
    "CalledOffError",
    "CapacityStack",
    "ClusterProvider",
    "DeclaredResource",
    "Deleting",
    "Engine",
    "EngineEvent",
    "InlineLanguage",
    "Operation",
    "Program",
    "Progress",
    "Registrations",
    "check_passphrase",
    "cluster_urn",
    "end_orphans",
    "end_session",
    "engine_environment",
    "engine_home",
    "find_provider",
    "find_pulumi",
    "is_running",
    "is_writer_running",
    "make_engine_home",
    "make_work_folder",
    "provider_urn",
    "stack_urn",
    "urn_of",
]
