"""StepWriter: carries out the binder's steps. A step may be repeated: it succeeds if it was written already, or if the
object has changed since."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from plimsoll.bind.cluster_cache import ClusterCache
from plimsoll.bind.config_maps import ForeignConfigMapError, write_config_maps
from plimsoll.bind.kai import groups_of_bind_requests
from plimsoll.bind.planning import (
    Bind,
    BindStep,
    Claim,
    DeleteReservation,
    Evict,
    MarkUnknown,
    Reserve,
    SetUnscheduled,
    Unclaim,
    UnscheduledReason,
    claim_patch,
    claimed,
    reservation_manifest,
    unclaim_patch,
)
from plimsoll.cluster.pods import gpu_groups
from plimsoll.kube import MERGE_PATCH, Connection, RequestError
from plimsoll.labels import GPU_PORTION, RESERVED_GPU, UNKNOWN_GPU, VISIBLE_DEVICES
from plimsoll.model.api import BinderSettings
from plimsoll.model.cluster import Pod

log = structlog.get_logger(__name__)

_WRITERS: Final = 16
_STATUS_PATCH: Final = "application/strategic-merge-patch+json"
"""Merges conditions by type, so that those of other writers are kept."""
_THROTTLED: Final = 429
_CHANGED_MEANWHILE: Final = (404, 409)
"""Responses to a step that is no longer valid. The next round plans again."""


class StepWriter:
    """`on_refused` is called with the node if the cluster refuses a reservation; `on_unbindable` with the UID of a pod
    that cannot be bound."""

    def __init__(
        self,
        connection: Connection,
        settings: BinderSettings,
        cluster: ClusterCache,
        on_refused: Callable[[str], None],
        on_unbindable: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._cluster = cluster
        self._on_refused = on_refused
        self._on_unbindable = on_unbindable
        self._pool = ThreadPoolExecutor(_WRITERS, thread_name_prefix="bind")

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def carry_out(self, steps: Sequence[BindStep]) -> None:
        """Carries out the steps concurrently. Refusals are logged. Raises ConnectionFailedError."""
        kept: set[str] = set()
        if any(isinstance(step, DeleteReservation) and step.group_is_empty for step in steps):
            kept = groups_of_bind_requests(self._connection)
        wanted = [step for step in steps if not _is_kept(step, kept)]
        list(self._pool.map(self._carry_out, wanted))

    def _carry_out(self, step: BindStep) -> None:
        try:
            self._do(step)
        except RequestError as error:
            missing = isinstance(step, Reserve) and error.code == 404  # the namespace is missing
            if error.code in _CHANGED_MEANWHILE and not missing:
                log.debug("step not written: its object has changed", step=type(step).__name__, answer=error.message)
                return
            log.warning("the apiserver refused a step", step=type(step).__name__, answer=error.message)
            if error.code == _THROTTLED or error.code >= 500:
                return  # the apiserver is to blame, not the node or the pod; the next round tries again
            if isinstance(step, Reserve):
                self._on_refused(step.node)
            elif isinstance(step, Bind):
                self._unbindable(step.pod, error.message)

    def _do(self, step: BindStep) -> None:
        match step:
            case Claim():
                self._note(
                    self._patch(step.pod, claim_patch(step.pod, step.assignment)), claimed(step.pod, step.assignment)
                )
                log.info(
                    "node and GPU groups chosen for the pod",
                    pod=_name(step.pod),
                    node=step.assignment.node,
                    groups=step.assignment.groups,
                )
            case Unclaim():
                self._patch(step.pod, unclaim_patch(step.pod))
                log.info("choice of node and GPU groups withdrawn from the pod", pod=_name(step.pod), why=step.why)
            case Reserve():
                self._reserve(step)
            case MarkUnknown():
                self._mark_unknown(step.reservation)
            case Bind():
                self._bind(step)
            case SetUnscheduled():
                self._set_unscheduled(step)
            case DeleteReservation():
                self._delete_reservation(step)
            case Evict():
                self._evict(step)

    def _reserve(self, step: Reserve) -> None:
        settings = self._settings.reservation
        manifest = reservation_manifest(settings, step.node, step.group, step.pod.placement.tolerations, step.attempt)
        made = self._connection.request("POST", f"/api/v1/namespaces/{settings.namespace}/pods", manifest)
        self._cluster.note(Pod.read(made), new=True)
        log.info("reservation created", reservation=manifest["metadata"]["name"], node=step.node, group=step.group)

    def _mark_unknown(self, reservation: Pod) -> None:
        """Fails if the probe has written meanwhile, because the resource version is then another."""
        own = {"uid": reservation.uid, "resourceVersion": reservation.resource_version}
        self._patch(reservation, {"metadata": {**own, "annotations": {RESERVED_GPU: UNKNOWN_GPU}}})
        log.warning(
            "no GPU was reported for the reservation in time",
            reservation=_name(reservation),
            node=reservation.node_name,
        )

    def _bind(self, step: Bind) -> None:
        pod = step.pod
        try:
            write_config_maps(self._connection, pod, step.gpus, step.portion, self._exists)
        except ForeignConfigMapError as error:
            self._unbindable(pod, str(error))
            return
        # The apiserver writes these annotations to the pod together with the node.
        handed = {VISIBLE_DEVICES: ",".join(step.gpus)} | ({GPU_PORTION: step.portion} if step.portion else {})
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "annotations": handed},
            "target": {"apiVersion": "v1", "kind": "Node", "name": step.node},
        }
        self._connection.request("POST", f"{_path(pod)}/binding", binding)
        self._cluster.note(
            pod.model_copy(update={"node_name": step.node, "annotations": {**pod.annotations, **handed}})
        )
        log.info("pod bound", pod=_name(pod), node=step.node, gpus=step.gpus)

    def _exists(self, uid: str) -> bool:
        return any(pod.uid == uid for pod in self._cluster.pods())

    def _unbindable(self, pod: Pod, why: str) -> None:
        self._on_unbindable(pod.uid)
        self._carry_out(SetUnscheduled(pod, UnscheduledReason.REFUSED, why))

    def _set_unscheduled(self, step: SetUnscheduled) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": step.reason.value,
            "message": step.message,
            "lastTransitionTime": now,
        }
        body = {"metadata": {"uid": step.pod.uid}, "status": {"conditions": [condition]}}
        self._connection.request("PATCH", f"{_path(step.pod)}/status", body, content_type=_STATUS_PATCH)
        log.info("condition PodScheduled written", pod=_name(step.pod), reason=step.reason.value, message=step.message)

    def _delete_reservation(self, step: DeleteReservation) -> None:
        pod = step.reservation
        unchanged = {"uid": pod.uid, "resourceVersion": pod.resource_version}
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": unchanged}
        self._connection.request("DELETE", _path(pod), options)
        log.info("reservation deleted", reservation=_name(pod), node=pod.node_name, why=step.why)

    def _evict(self, step: Evict) -> None:
        pod = step.pod
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        self._connection.request("POST", f"{_path(pod)}/eviction", eviction)
        log.error("pod evicted", pod=_name(pod), why=step.why)

    def _patch(self, pod: Pod, body: dict[str, Any]) -> dict[str, Any]:
        return self._connection.request("PATCH", _path(pod), body, content_type=MERGE_PATCH)

    def _note(self, answer: dict[str, Any], pod: Pod) -> None:
        self._cluster.note(pod.model_copy(update={"resource_version": str(answer["metadata"]["resourceVersion"])}))


def _is_kept(step: BindStep, groups: set[str]) -> bool:
    return (
        isinstance(step, DeleteReservation)
        and step.group_is_empty
        and not groups.isdisjoint(gpu_groups(step.reservation))
    )


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
