"""Waiting until an object is ready or gone, by one watch of that object; interruptible."""

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from plimsoll.connection import ConnectionFailedError, RequestError
from plimsoll.model.errors import PlimsollError
from plimsoll.provider.identity import Kind, annotation, kind_of, metadata_of, name_of, namespace_of
from plimsoll.provider.objects import Object, Objects, Watch
from plimsoll.provider.wait_for import wait_for

SKIP_AWAIT: Final = "pulumi.com/skipAwait"
WAIT_FOR: Final = "pulumi.com/waitFor"
TIMEOUT: Final = "pulumi.com/timeoutSeconds"
DEFAULT_SECONDS: Final = 600.0
"""How long to wait where the resource sets no custom timeout: the plugin's ten minutes."""
_WATCH_SECONDS: Final = 240

Condition = Callable[[Object], str | None]
"""None once it holds, else what is missing. Raises NotReadyError where it never will."""


class NotReadyError(PlimsollError):
    """The object exists but did not become ready (or did not go); `live` is its last state."""

    def __init__(self, message: str, live: Object | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.live = live


class Interruption:
    """The end of one engine call's patience: cancelled by the user, or the engine has gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self.stopped = False

    def stop(self) -> None:
        with self._lock:
            self.stopped = True
            if self._watch is not None:
                self._watch.stop()

    def guard(self, watch: Watch | None) -> bool:
        """Makes `stop` end this watch; False where it has been called already."""
        with self._lock:
            self._watch = watch
            return not self.stopped


def until_ready(objects: Objects, live: Object, seconds: float, interruption: Interruption) -> Object:
    """The object once it is ready by its kind's measure or its `pulumi.com/waitFor`; at once where it has none.

    Raises NotReadyError.
    """
    if annotation(live, SKIP_AWAIT) == "true":
        return live
    expression = annotation(live, WAIT_FOR)
    kind = kind_of(live)
    condition = wait_for(expression) if expression else _READY.get((kind.group, kind.kind))
    if condition is None:
        return live
    return _wait(objects, live, condition, _deadline(live, seconds), interruption)


def until_gone(objects: Objects, live: Object, seconds: float, interruption: Interruption) -> None:
    """Returns once the object has gone. Raises NotReadyError where it is still there in the end."""
    uid = metadata_of(live).get("uid")

    def gone(obj: Object) -> str | None:
        if not obj or metadata_of(obj).get("uid") != uid:
            return None
        finalizers = ", ".join(metadata_of(obj).get("finalizers") or []) or "none"
        return f"still there (finalizers: {finalizers})"

    _wait(objects, live, gone, _deadline(live, seconds), interruption)


def _deadline(live: Object, seconds: float) -> float:
    if not seconds:
        text = annotation(live, TIMEOUT)
        seconds = float(text) if text.isdecimal() else DEFAULT_SECONDS
    return time.monotonic() + seconds


def _wait(objects: Objects, live: Object, condition: Condition, deadline: float, interruption: Interruption) -> Object:
    """The object once the condition holds; an empty one where it has gone and the condition accepts that."""
    kind, namespace, name = kind_of(live), namespace_of(live), name_of(live)
    what = f"{kind.kind} {namespace}/{name}" if namespace else f"{kind.kind} {name}"
    last = live
    while (missing := condition(last)) is not None:
        if interruption.stopped:
            raise NotReadyError(f"{what}: waiting was interrupted: {missing}", live)
        left = deadline - time.monotonic()
        if left <= 0:
            raise NotReadyError(
                f"{what} is not there yet after the time allowed: {missing}",
                live,
                "set customTimeouts, or pulumi.com/skipAwait to not wait",
            )
        try:
            last = _observe(objects, kind, last, condition, min(left, _WATCH_SECONDS), interruption)
        except (ConnectionFailedError, RequestError):
            last = objects.get(kind, namespace, name) or {}
        if last:
            live = last
        elif condition(last) is not None:
            raise NotReadyError(f"{what} was deleted while it was waited for", live)
    return last


def _observe(
    objects: Objects, kind: Kind, last: Object, condition: Condition, seconds: float, interruption: Interruption
) -> Object:
    """Follows the object until the condition holds or the watch ends; an empty object where it has gone."""
    namespace, name = namespace_of(last), name_of(last)
    version = str(metadata_of(last).get("resourceVersion") or "0")
    with objects.watch(kind, namespace, name, version, max(1, int(seconds))) as watch:
        if not interruption.guard(watch):
            return last
        try:
            for event, obj in watch:
                if event == "DELETED":
                    return {}
                if event == "ERROR":
                    break
                if event in ("ADDED", "MODIFIED"):
                    last = obj
                    if condition(obj) is None:
                        return obj
        finally:
            interruption.guard(None)
    return last if interruption.stopped else objects.get(kind, namespace, name) or {}


def _status(obj: Object) -> dict[str, Any]:
    status = obj.get("status")
    return status if isinstance(status, dict) else {}


def _spec(obj: Object) -> dict[str, Any]:
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else {}


def _condition(obj: Object, name: str) -> dict[str, Any]:
    return next((c for c in _status(obj).get("conditions") or [] if c.get("type") == name), {})


def _said(condition: dict[str, Any]) -> str:
    return " ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key)) or "no reason given"


def _pod_ready(pod: Object) -> str | None:
    phase = _status(pod).get("phase")
    if phase == "Succeeded" or _condition(pod, "Ready").get("status") == "True":
        return None
    if phase == "Failed":
        raise NotReadyError(f"Pod {name_of(pod)} has failed: {_said(_status(pod))}", pod)
    scheduled = _condition(pod, "PodScheduled")
    waiting = scheduled if scheduled.get("status") == "False" else _condition(pod, "Ready")
    return f"the pod is not Ready: {_said(waiting)}"


def _rollout(obj: Object, wanted: int, **counts: str) -> str | None:
    """Whether the controller has seen this generation and each count has reached `wanted`."""
    status = _status(obj)
    if int(status.get("observedGeneration") or 0) < int(metadata_of(obj).get("generation") or 0):
        return "its controller has not seen the change yet"
    for what, field in counts.items():
        have = int(status.get(field) or 0)
        if have < wanted:
            return f"{have} of {wanted} pods are {what}"
    return None


def _deployment_ready(obj: Object) -> str | None:
    progressing = _condition(obj, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        raise NotReadyError(f"Deployment {name_of(obj)}: {_said(progressing)}", obj)
    wanted = int(_spec(obj).get("replicas", 1))
    missing = _rollout(obj, wanted, updated="updatedReplicas", available="availableReplicas")
    surplus = int(_status(obj).get("replicas") or 0) - int(_status(obj).get("updatedReplicas") or 0)
    return missing or (f"{surplus} old pods have not gone yet" if surplus > 0 else None)


def _stateful_set_ready(obj: Object) -> str | None:
    strategy = _spec(obj).get("updateStrategy") or {}
    wanted = int(_spec(obj).get("replicas", 1))
    if strategy.get("type") == "OnDelete" or (strategy.get("rollingUpdate") or {}).get("partition"):
        return _rollout(obj, wanted, ready="readyReplicas")
    return _rollout(obj, wanted, updated="updatedReplicas", ready="readyReplicas")


def _daemon_set_ready(obj: Object) -> str | None:
    wanted = int(_status(obj).get("desiredNumberScheduled") or 0)
    counts = {"available": "numberAvailable"}
    if (_spec(obj).get("updateStrategy") or {}).get("type") != "OnDelete":
        counts["updated"] = "updatedNumberScheduled"
    return _rollout(obj, wanted, **counts)


def _job_ready(obj: Object) -> str | None:
    failed = _condition(obj, "Failed")
    if failed.get("status") == "True":
        raise NotReadyError(f"Job {name_of(obj)} has failed: {_said(failed)}", obj)
    return None if _condition(obj, "Complete").get("status") == "True" else "the job is not complete"


def _service_ready(obj: Object) -> str | None:
    if _spec(obj).get("type") != "LoadBalancer" or (_status(obj).get("loadBalancer") or {}).get("ingress"):
        return None
    return "the load balancer has no address yet"


def _definition_ready(obj: Object) -> str | None:
    names = _condition(obj, "NamesAccepted")
    if names.get("status") == "False":
        raise NotReadyError(f"CustomResourceDefinition {name_of(obj)}: {_said(names)}", obj)
    return None if _condition(obj, "Established").get("status") == "True" else "the definition is not established"


_READY: Final[dict[tuple[str, str], Condition]] = {
    ("", "Pod"): _pod_ready,
    ("", "Service"): _service_ready,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition_ready,
    ("apps", "DaemonSet"): _daemon_set_ready,
    ("apps", "Deployment"): _deployment_ready,
    ("apps", "StatefulSet"): _stateful_set_ready,
    ("batch", "Job"): _job_ready,
}
