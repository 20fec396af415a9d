"""A client of one apiserver: objects, watches and typed errors."""

from plimsoll.kube.connection import (
    APPLY_PATCH,
    CHUNK,
    JSON,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Connection,
)
from plimsoll.kube.errors import ConnectionFailedError, RequestError
from plimsoll.kube.identity import (
    Kind,
    id_of,
    kind_of,
    kind_of_type,
    parse_id,
    type_of,
)
from plimsoll.kube.json_text import parse_json
from plimsoll.kube.kubeconfig import Kubeconfig, SettingsError
from plimsoll.kube.objects import Mapping, NoSuchKindError, Object, Objects

__all__ = [
    "APPLY_PATCH",
    "CHUNK",
    "JSON",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "Connection",
    "ConnectionFailedError",
    "Kind",
    "Kubeconfig",
    "Mapping",
    "NoSuchKindError",
    "Object",
    "Objects",
    "RequestError",
    "SettingsError",
    "id_of",
    "kind_of",
    "kind_of_type",
    "parse_id",
    "parse_json",
    "type_of",
]
