"""When an object is ready: the conditions of each kind, from what its controller reports in the status."""

from collections.abc import Callable
from typing import Any, Final

from plimsoll.errors import PlimsollError
from plimsoll.kube.identity import annotation, kind_of, metadata_of, name_of
from plimsoll.kube.objects import Object
from plimsoll.kube.wait_for import wait_for

WAIT_FOR: Final = "pulumi.com/waitFor"

Condition = Callable[[Object], str | None]
"""Returns None if the condition holds, else what is missing. Raises NotReadyError if it will never hold."""


class NotReadyError(PlimsollError):
    """The object exists but did not become ready, or was not deleted; `live` is its last state."""

    def __init__(self, message: str, live: Object, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.live = live


def readiness(obj: Object) -> Condition | None:
    """The condition of the object's `pulumi.com/waitFor` annotation, else that of its kind; None for kinds that are
    ready at once."""
    expression = annotation(obj, WAIT_FOR)
    kind = kind_of(obj)
    return wait_for(expression) if expression else _READY.get((kind.group, kind.kind))


def _status(obj: Object) -> dict[str, Any]:
    status = obj.get("status")
    return status if isinstance(status, dict) else {}


def _spec(obj: Object) -> dict[str, Any]:
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else {}


def _condition(obj: Object, name: str) -> dict[str, Any]:
    return next((c for c in _status(obj).get("conditions") or [] if c.get("type") == name), {})


def _text(condition: dict[str, Any]) -> str:
    return " ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key)) or "no reason given"


def _pod(pod: Object) -> str | None:
    phase = _status(pod).get("phase")
    if phase == "Succeeded" or _condition(pod, "Ready").get("status") == "True":
        return None
    if phase == "Failed":
        raise NotReadyError(f"Pod {name_of(pod)} has failed: {_text(_status(pod))}", pod)
    scheduled = _condition(pod, "PodScheduled")
    waiting = scheduled if scheduled.get("status") == "False" else _condition(pod, "Ready")
    return f"the pod is not Ready: {_text(waiting)}"


def _observed(obj: Object) -> bool:
    """Whether the status is of this generation. An older one may tell of a failure that the change has mended."""
    return int(_status(obj).get("observedGeneration") or 0) >= int(metadata_of(obj).get("generation") or 0)


def _rollout(obj: Object, wanted: int, **counts: str) -> str | None:
    """What is missing until the controller has observed this generation and each count has reached `wanted`; None if
    nothing is."""
    if not _observed(obj):
        return "its controller has not observed the change yet"
    status = _status(obj)
    for what, field in counts.items():
        have = int(status.get(field) or 0)
        if have < wanted:
            return f"{have} of {wanted} pods are {what}"
    return None


def _deployment(obj: Object) -> str | None:
    progressing = _condition(obj, "Progressing")
    if _observed(obj) and progressing.get("reason") == "ProgressDeadlineExceeded":
        raise NotReadyError(f"Deployment {name_of(obj)}: {_text(progressing)}", obj)
    wanted = int(_spec(obj).get("replicas", 1))
    missing = _rollout(obj, wanted, updated="updatedReplicas", available="availableReplicas")
    surplus = int(_status(obj).get("replicas") or 0) - int(_status(obj).get("updatedReplicas") or 0)
    return missing or (f"{surplus} old pods still exist" if surplus > 0 else None)


def _stateful_set(obj: Object) -> str | None:
    strategy = _spec(obj).get("updateStrategy") or {}
    wanted = int(_spec(obj).get("replicas", 1))
    if strategy.get("type") == "OnDelete" or (strategy.get("rollingUpdate") or {}).get("partition"):
        return _rollout(obj, wanted, ready="readyReplicas")
    return _rollout(obj, wanted, updated="updatedReplicas", ready="readyReplicas")


def _daemon_set(obj: Object) -> str | None:
    wanted = int(_status(obj).get("desiredNumberScheduled") or 0)
    counts = {"available": "numberAvailable"}
    if (_spec(obj).get("updateStrategy") or {}).get("type") != "OnDelete":
        counts["updated"] = "updatedNumberScheduled"
    return _rollout(obj, wanted, **counts)


def _job(obj: Object) -> str | None:
    failed = _condition(obj, "Failed")
    if failed.get("status") == "True":
        raise NotReadyError(f"Job {name_of(obj)} has failed: {_text(failed)}", obj)
    return None if _condition(obj, "Complete").get("status") == "True" else "the job is not complete"


def _service(obj: Object) -> str | None:
    if _spec(obj).get("type") != "LoadBalancer" or (_status(obj).get("loadBalancer") or {}).get("ingress"):
        return None
    return "the load balancer has no address yet"


def _definition(obj: Object) -> str | None:
    names = _condition(obj, "NamesAccepted")
    if names.get("status") == "False":
        raise NotReadyError(f"CustomResourceDefinition {name_of(obj)}: {_text(names)}", obj)
    return None if _condition(obj, "Established").get("status") == "True" else "the definition is not established"


_READY: Final[dict[tuple[str, str], Condition]] = {
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
}
