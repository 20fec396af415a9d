"""Rules of pods about other pods, as in manifests."""

from typing import Any

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _terms(app: str, key: str, **more: Any) -> dict[str, Any]:
    return {_REQUIRED: [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}]}


def apart(app: str, key: str = HOST, **more: Any) -> dict[str, Any]:
    return {"podAntiAffinity": _terms(app, key, **more)}


def near(app: str, key: str = HOST, **more: Any) -> dict[str, Any]:
    return {"podAffinity": _terms(app, key, **more)}


def spread(app: str, key: str = HOST, skew: int = 1, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint | more]}


def zones(*values: str) -> dict[str, Any]:
    """A requirement of a NodePool."""
    return {"key": ZONE, "operator": "In", "values": list(values)}
