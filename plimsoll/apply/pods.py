"""Writes to pods, which no stack update declares: what trigger pods say to autoscalers, capacity gates, leaving pods.

A pod that has gone, or is another one of its name, is no error. What else is not written is logged.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final, Self, TypeVar

import structlog

from plimsoll.kube import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model import LeavingPod, Lift, ObjectKey, Signal
from plimsoll.model.api import CAPACITY_GATE, LIFTED

T = TypeVar("T", Signal, Lift)

DELETION_COST: Final = {"controller.kubernetes.io/pod-deletion-cost": "-1000"}
"""Of a ReplicaSet that shrinks, the cheapest of the ready pods go first; pods without the annotation cost 0.

https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
"""
_AT_ONCE: Final = 16
_TIMEOUT: Final = 10.0

log = structlog.get_logger(__name__)


class PodWriter:
    """Writes through one connection, from any thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def signal(self, signals: Sequence[Signal]) -> tuple[Signal, ...]:
        """Writes the signals; those that the cluster has taken. The next plan has the others again."""
        return self._taken(self.send, signals)

    def lift(self, lifts: Sequence[Lift]) -> None:
        """Takes capacity gates off pods. The next plan has again what is not written."""
        lifted = self._taken(self._lift, lifts)
        if lifts:
            log.info("capacity gates removed", pods=[str(lift.key) for lift in lifted])

    def mark_leaving(self, pods: Iterable[LeavingPod]) -> None:
        """Makes a Deployment that shrinks end these pods first; one that is not marked moves instead of staying."""
        body = {"metadata": {"annotations": DELETION_COST}}
        try:
            for pod in pods:
                self._patch(f"{pod.namespace}/pods/{pod.name}", pod.uid, body)
        except ConnectionFailedError as error:
            log.warning("cannot set the deletion cost of pods", error=error.message)

    def send(self, signal: Signal) -> bool:
        """Whether the cluster has taken it."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": signal.reason.value,
            "message": signal.message,
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        # Nobody else writes conditions of a pod that no scheduler and no kubelet serves.
        body = {"status": {"conditions": [condition]}}
        return self._tried(f"{signal.key.namespace}/pods/{signal.key.name}/status", signal.uid, body)

    def _lift(self, lift: Lift) -> bool:
        body = {
            "metadata": {"annotations": {LIFTED: lift.message}},
            # Only our own element of the list, so that the gates of others stay.
            "spec": {"schedulingGates": [{"$patch": "delete", "name": CAPACITY_GATE}]},
        }
        return self._tried(f"{lift.key.namespace}/pods/{lift.key.name}", lift.uid, body, STRATEGIC_MERGE_PATCH)

    def _taken(self, write: Callable[[T], bool], items: Sequence[T]) -> tuple[T, ...]:
        if not items:
            return ()
        with ThreadPoolExecutor(min(_AT_ONCE, len(items)), thread_name_prefix="pods") as pool:
            return tuple(item for item, done in zip(items, pool.map(write, items), strict=True) if done)

    def _tried(self, path: str, uid: str, body: dict[str, Any], content_type: str = MERGE_PATCH) -> bool:
        try:
            return self._patch(path, uid, body, content_type)
        except ConnectionFailedError as error:
            log.warning("cannot write pod", pod=path, error=error.message)
            return False

    def _patch(self, path: str, uid: str, body: dict[str, Any], content_type: str = MERGE_PATCH) -> bool:
        """Whether the cluster has taken it. An empty UID is any pod's of that name."""
        metadata = ({"uid": uid} if uid else {}) | body.get("metadata", {})
        body = body | {"metadata": metadata} if metadata else body
        try:
            self._connection.request(
                "PATCH", f"/api/v1/namespaces/{path}", body, content_type=content_type, timeout=_TIMEOUT
            )
        except RequestError as error:
            if error.code not in (404, 409):
                log.warning("cannot write pod", pod=path, error=error.message)
            return False
        return True


class CreationSignals:
    """Signals of pods that a delta creates: each is written as soon as its pod is there, beside the rest of the delta.

    `created` may come from any thread, and again for the same pod. On leaving its context all that was begun has ended.
    """

    def __init__(self, pods: PodWriter, signals: Iterable[Signal]) -> None:
        self._pods = pods
        self._waiting = {signal.key: signal for signal in signals}
        self._sent: list[tuple[Signal, Future[bool]]] = []
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pods")

    def created(self, key: ObjectKey) -> None:
        """The pod is there. Nothing where no signal waits for it."""
        with self._lock:
            signal = self._waiting.pop(key, None)
            if signal is not None:
                self._sent.append((signal, self._pool.submit(self._pods.send, signal)))

    def finish(self, created: Iterable[ObjectKey]) -> tuple[Signal, ...]:
        """Writes what waits for these pods, too; the signals that the cluster has taken."""
        for key in created:
            self.created(key)
        return tuple(signal for signal, taken in self._sent if taken.result())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting.clear()  # an update that goes on to its end may still tell of pods
        self._pool.shutdown(wait=True)
