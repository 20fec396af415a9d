"""The built-in Kubernetes provider, to which the engine attaches if the plugin is not available.

It implements the tokens of pulumi-kubernetes 4.34 and keeps the format of its state, so a stack can switch between
both.
"""

from plimsoll.provider.autonaming import adopt_autoname, autoname
from plimsoll.provider.chart import Chart, ChartError, prerequisites, resource_name
from plimsoll.provider.comparison import Change, changes, parse_property_path, property_path, prune, touches
from plimsoll.provider.inputs import declared
from plimsoll.provider.operations import PATCH_FIELD_MANAGER, create, delete, read, update
from plimsoll.provider.replacement import Diff, diff
from plimsoll.provider.server import Served, serve
from plimsoll.provider.session import Call, Session, Settings
from plimsoll.provider.state import API_VERSION, FIELD_MANAGER, INPUTS, InitializationFailedError, State, state_of
from plimsoll.provider.values import (
    UNKNOWN,
    Properties,
    Secret,
    decode,
    encode,
    has_secrets,
    has_unknowns,
    mark_secrets,
    plain,
    secret_texts,
)

__all__ = [
    "API_VERSION",
    "FIELD_MANAGER",
    "INPUTS",
    "PATCH_FIELD_MANAGER",
    "UNKNOWN",
    "Call",
    "Change",
    "Chart",
    "ChartError",
    "Diff",
    "InitializationFailedError",
    "Properties",
    "Secret",
    "Served",
    "Session",
    "Settings",
    "State",
    "adopt_autoname",
    "autoname",
    "changes",
    "create",
    "declared",
    "decode",
    "delete",
    "diff",
    "encode",
    "has_secrets",
    "has_unknowns",
    "mark_secrets",
    "parse_property_path",
    "plain",
    "prerequisites",
    "property_path",
    "prune",
    "read",
    "resource_name",
    "secret_texts",
    "serve",
    "state_of",
    "touches",
    "update",
]
