"""Takes capacity gates off pods, which no stack update declares."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import structlog

from plimsoll.kube import STRATEGIC_MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model import Lift
from plimsoll.model.api import CAPACITY_GATE, LIFTED

WRITERS: Final = 16
TIMEOUT: Final = 10.0

log = structlog.get_logger(__name__)


def lift_gates(connection: Connection, lifts: Iterable[Lift]) -> None:
    """Lifts the gates. What is not written is logged; the next plan has it again. A gate that is gone is no error."""
    due = list(lifts)
    if not due:
        return
    with ThreadPoolExecutor(min(WRITERS, len(due)), thread_name_prefix="gates") as pool:
        taken = list(pool.map(lambda lift: _write(connection, lift), due))
    lifted = [lift.key for lift, done in zip(due, taken, strict=True) if done]
    log.info("capacity gates lifted", pods=[str(key) for key in lifted])


def _write(connection: Connection, lift: Lift) -> bool:
    path = f"/api/v1/namespaces/{lift.key.namespace}/pods/{lift.key.name}"
    try:
        connection.request("PATCH", path, _patch(lift), content_type=STRATEGIC_MERGE_PATCH, timeout=TIMEOUT)
    except (RequestError, ConnectionFailedError) as error:
        # 404 and 409: the pod has gone, or is another one of its name.
        if not (isinstance(error, RequestError) and error.code in (404, 409)):
            log.warning("capacity gate is not lifted", object=str(lift.key), error=error.message)
        return False
    return True


def _patch(lift: Lift) -> dict[str, Any]:
    uid = {"uid": lift.uid} if lift.uid else {}
    return {
        "metadata": {**uid, "annotations": {LIFTED: lift.message}},
        # Only our own element of the list, so that the gates of others stay.
        "spec": {"schedulingGates": [{"$patch": "delete", "name": CAPACITY_GATE}]},
    }
