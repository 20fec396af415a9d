"""Writes the ConfigMap with the models that were read from a hub, in a background thread."""

from typing import Any, Final

import structlog

from plimsoll.kube import APPLY_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model.api import MODELS_NAME, MODELS_NAMESPACE, DeclaredPreset, models_config_map
from plimsoll.report.latest_writer import LatestWriter
from plimsoll.report.statuses import QUERY, TIMEOUT

_PATH: Final = f"/api/v1/namespaces/{MODELS_NAMESPACE}/configmaps/{MODELS_NAME}"

log = structlog.get_logger(__name__)


class ModelWriter(LatestWriter[tuple[DeclaredPreset, ...], bool]):
    """Writes the models when they change; models that no Workspace names any more are removed by the next
    change."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(1, "models")
        self._connection = connection
        self._written: tuple[DeclaredPreset, ...] = ()

    def write(self, models: tuple[DeclaredPreset, ...]) -> None:
        """Queues the models if they differ from those that were written. Returns at once."""
        ordered = tuple(sorted(models, key=lambda each: each.name))
        with self._lock:
            if ordered != self._written:
                self._queue({MODELS_NAME: ordered})

    def _write(self, item: tuple[DeclaredPreset, ...]) -> bool:
        manifest: dict[str, Any] = models_config_map(item)
        try:
            self._connection.request("PATCH", _PATH, manifest, query=QUERY, content_type=APPLY_PATCH, timeout=TIMEOUT)
        except (RequestError, ConnectionFailedError) as error:
            log.warning("cannot write models", error=error.message)
            return False
        return True

    def _wrote(self, key: str, item: tuple[DeclaredPreset, ...], result: bool) -> None:
        if result:
            self._written = item
