"""Writes what trigger pods say to autoscalers: a status, which no stack update declares."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from plimsoll.connection import MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model.plan import Signal

WRITERS: Final = 16
TIMEOUT: Final = 10.0

log = structlog.get_logger(__name__)


def send(connection: Connection, signals: Sequence[Signal]) -> tuple[Signal, ...]:
    """Writes the signals, and returns those that the cluster has taken; the next plan has the others again."""
    if not signals:
        return ()
    with ThreadPoolExecutor(min(WRITERS, len(signals)), thread_name_prefix="signals") as pool:
        taken = list(pool.map(lambda signal: _write(connection, signal), signals))
    return tuple(signal for signal, done in zip(signals, taken, strict=True) if done)


def _write(connection: Connection, signal: Signal) -> bool:
    path = f"/api/v1/namespaces/{signal.key.namespace}/pods/{signal.key.name}/status"
    try:
        connection.request("PATCH", path, _patch(signal), content_type=MERGE_PATCH, timeout=TIMEOUT)
    except (RequestError, ConnectionFailedError) as error:
        # 404 and 409: the pod has gone, or is another one of its name.
        if not (isinstance(error, RequestError) and error.code in (404, 409)):
            log.warning("signal is not written", object=str(signal.key), signal=signal.reason, error=error.message)
        return False
    return True


def _patch(signal: Signal) -> dict[str, Any]:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": signal.reason.value,
        "message": signal.message,
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    # Nobody else writes conditions of a pod that no scheduler and no kubelet serves.
    metadata = {"metadata": {"uid": signal.uid}} if signal.uid else {}
    return {**metadata, "status": {"conditions": [condition]}}
