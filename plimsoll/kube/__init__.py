"""A client of one apiserver: objects, watches, waits and typed errors."""

from plimsoll.kube.awaiting import SKIP_AWAIT, Interruption, Waiting, awaited
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
    annotation,
    id_of,
    kind_of,
    kind_of_type,
    metadata_of,
    name_of,
    namespace_of,
    new_field_manager,
    parse_id,
    type_of,
)
from plimsoll.kube.json_text import parse_json
from plimsoll.kube.kubeconfig import Kubeconfig, SettingsError
from plimsoll.kube.managed_fields import CREATOR, owned_by_apply, take_over
from plimsoll.kube.objects import Mapping, NoSuchKindError, Object, Objects
from plimsoll.kube.ready import NotReadyError, readiness

__all__ = [
    "APPLY_PATCH",
    "CHUNK",
    "CREATOR",
    "JSON",
    "MERGE_PATCH",
    "SKIP_AWAIT",
    "STRATEGIC_MERGE_PATCH",
    "Connection",
    "ConnectionFailedError",
    "Interruption",
    "Kind",
    "Kubeconfig",
    "Mapping",
    "NoSuchKindError",
    "NotReadyError",
    "Object",
    "Objects",
    "RequestError",
    "SettingsError",
    "Waiting",
    "annotation",
    "awaited",
    "id_of",
    "kind_of",
    "kind_of_type",
    "metadata_of",
    "name_of",
    "namespace_of",
    "new_field_manager",
    "owned_by_apply",
    "parse_id",
    "parse_json",
    "readiness",
    "take_over",
    "type_of",
]
