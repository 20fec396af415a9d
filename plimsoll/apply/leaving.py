"""Marks the pods on nodes that are to go, so that a Deployment that shrinks ends those and no others.

https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
"""

from collections.abc import Iterable
from typing import Final

import structlog

from plimsoll.kube import MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model import LeavingPod

COST: Final = {"controller.kubernetes.io/pod-deletion-cost": "-1000"}
"""Pods without the annotation cost 0; the cheapest of those that are ready go first."""

log = structlog.get_logger(__name__)


def mark_leaving(connection: Connection, pods: Iterable[LeavingPod]) -> None:
    """Annotates each pod. What cannot be marked is logged: its replica then moves instead of staying."""
    for pod in pods:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        body = {"metadata": {"uid": pod.uid, "annotations": COST}}
        try:
            connection.request("PATCH", path, body, content_type=MERGE_PATCH)
        except RequestError as error:
            if error.code not in (404, 409):  # gone, or another one of its name
                log.warning("pod is not marked as leaving", pod=f"{pod.namespace}/{pod.name}", error=error.message)
        except ConnectionFailedError as error:
            log.warning("pods are not marked as leaving", error=error.message)
            return
