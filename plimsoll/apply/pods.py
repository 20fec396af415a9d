"""PodWriter: writes to pods, which no stack declares: conditions of trigger pods, capacity gates, deletion costs.

A pod that was deleted, or replaced by another of that name, is not an error. Other failures are logged.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from time import monotonic
from typing import Any, Final, Self, TypeVar

import structlog

from plimsoll.kube import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model import GateRemoval, ObjectKey, PreferredDeletion, Signal
from plimsoll.model.api import CAPACITY_GATE, GATE_REMOVED_REASON

T = TypeVar("T", Signal, GateRemoval)

DELETION_COST: Final = {"controller.kubernetes.io/pod-deletion-cost": "-1000"}
"""When a ReplicaSet scales down, ready pods with the lowest cost are deleted first. Pods without the annotation have
cost 0.

https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
"""
_MOST_REQUESTS: Final = 16
"""Maximum number of concurrent requests; each uses a thread."""
_REFUSED_PAUSE_SECONDS: Final = 600.0
"""Pause after the cluster has refused to let a pod's gate be removed, as in a namespace that the controller has no
rights in: a tenant there may have created any number of gated pods."""
_TIMEOUT_SECONDS: Final = 10.0
"""Limit of one attempt. The next plan repeats signals and removals that failed."""

log = structlog.get_logger(__name__)


class PodWriter:
    """Writes through one connection, from any thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._refused: dict[str, float] = {}
        """When the cluster refused to let the gate be removed, by the pod's UID; monotonic, in seconds."""

    def signal(self, signals: Sequence[Signal]) -> tuple[Signal, ...]:
        """Writes the signals and returns those that the cluster accepted. The next plan repeats the others."""
        return self._accepted(self.send, signals)

    def remove_gates(self, removals: Sequence[GateRemoval]) -> int:
        """Removes capacity gates from pods, and returns how many. The next plan repeats removals that failed; those
        that the cluster refused wait for a while."""
        since = monotonic() - _REFUSED_PAUSE_SECONDS
        asked = {removal.uid for removal in removals}
        self._refused = {uid: when for uid, when in self._refused.items() if uid in asked and when > since}
        removed = self._accepted(self._remove_gate, [each for each in removals if each.uid not in self._refused])
        if removed:
            log.info("capacity gates removed", pods=[str(each.key) for each in removed])
        return len(removed)

    def set_deletion_cost(self, pods: Iterable[PreferredDeletion]) -> None:
        """Sets the deletion cost of these pods, so that a Deployment that scales down deletes them first. Without it,
        another pod would be deleted, and this one moved."""
        body = {"metadata": {"annotations": DELETION_COST}}
        try:
            for pod in pods:
                self._patch(f"{pod.namespace}/pods/{pod.name}", pod.uid, body)
        except ConnectionFailedError as error:
            log.warning("cannot set the deletion cost of pods", error=error.message)

    def send(self, signal: Signal) -> bool:
        """Writes one signal. Returns whether the cluster accepted it."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": signal.reason.value,
            "message": signal.message,
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        # Nothing else writes conditions of a pod that no scheduler and no kubelet handles.
        body = {"status": {"conditions": [condition]}}
        return self._try_patch(f"{signal.key.namespace}/pods/{signal.key.name}/status", signal.uid, body)

    def _remove_gate(self, removal: GateRemoval) -> bool:
        body = {
            "metadata": {"annotations": {GATE_REMOVED_REASON: removal.message}},
            # Patches only Plimsoll's element of the list, so that other gates stay.
            "spec": {"schedulingGates": [{"$patch": "delete", "name": CAPACITY_GATE}]},
        }
        return self._try_patch(
            f"{removal.key.namespace}/pods/{removal.key.name}", removal.uid, body, STRATEGIC_MERGE_PATCH
        )

    def _accepted(self, write: Callable[[T], bool], items: Sequence[T]) -> tuple[T, ...]:
        if not items:
            return ()
        with ThreadPoolExecutor(min(_MOST_REQUESTS, len(items)), thread_name_prefix="pods") as pool:
            return tuple(item for item, done in zip(items, pool.map(write, items), strict=True) if done)

    def _try_patch(self, path: str, uid: str, body: dict[str, Any], content_type: str = MERGE_PATCH) -> bool:
        try:
            return self._patch(path, uid, body, content_type)
        except ConnectionFailedError as error:
            log.warning("cannot write to the pod", pod=path, error=error.message)
            return False

    def _patch(self, path: str, uid: str, body: dict[str, Any], content_type: str = MERGE_PATCH) -> bool:
        """Whether the cluster accepted the patch. An empty UID means any pod of that name."""
        metadata = ({"uid": uid} if uid else {}) | body.get("metadata", {})
        body = body | {"metadata": metadata} if metadata else body
        try:
            self._connection.request(
                "PATCH", f"/api/v1/namespaces/{path}", body, content_type=content_type, timeout=_TIMEOUT_SECONDS
            )
        except RequestError as error:
            if error.code == HTTPStatus.FORBIDDEN and uid:
                self._refused[uid] = monotonic()
            if error.code not in (404, 409):
                log.warning("cannot write to the pod", pod=path, error=error.message)
            return False
        return True


class CreationSignals:
    """Writes the signals of new pods as soon as each pod exists, while the rest of the Plan is applied.

    `created` may be called from any thread, and repeatedly for the same pod. At the end of the context, all started
    writes have ended.
    """

    def __init__(self, pods: PodWriter, signals: Iterable[Signal]) -> None:
        self._pods = pods
        self._waiting = {signal.key: signal for signal in signals}
        self._sent: list[tuple[Signal, Future[bool]]] = []
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_MOST_REQUESTS, thread_name_prefix="pods")

    def created(self, key: ObjectKey) -> None:
        """Writes the signal of the pod, if there is one."""
        with self._lock:
            signal = self._waiting.pop(key, None)
            if signal is not None:
                self._sent.append((signal, self._pool.submit(self._pods.send, signal)))

    def finish(self, created: Iterable[ObjectKey]) -> tuple[Signal, ...]:
        """Writes the remaining signals of these pods. Returns all signals that the cluster accepted."""
        for key in created:
            self.created(key)
        return tuple(signal for signal, accepted in self._sent if accepted.result())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting.clear()  # an update that is still ending may report further pods
        self._pool.shutdown(wait=True)
