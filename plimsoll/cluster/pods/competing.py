"""Other controllers that provision nodes for the same pods as Plimsoll. Together, they would create nodes twice."""

from collections.abc import Iterable
from typing import Final

from plimsoll.model.cluster import Pod

ADJUSTER: Final = "node-scale-adjuster"
"""KAI's, by the name of its Deployment."""
KAITO: Final = "kaito-workspace"
"""KAITO's, by the name of its Deployment in the chart."""

_PREFIXES: Final = tuple(f"{name}-" for name in (ADJUSTER, KAITO))
_WARNINGS: Final = {
    ADJUSTER: "KAI's node-scale-adjuster runs ({pod}): it requests nodes for the same GPU shares as Plimsoll; "
    "disable it with --set global.clusterAutoscaling=false",
    KAITO: "KAITO's controller runs ({pod}): it creates NodeClaims for its own Workspaces, which Plimsoll does not "
    "count; convert them with `plimsoll import kaito`, or use separate NodePools for the two",
}


def is_competing(name: str) -> bool:
    """Whether a pod of that name belongs to such a controller."""
    return name.startswith(_PREFIXES)


def competing_warnings(pods: Iterable[Pod]) -> tuple[str, ...]:
    """One warning for each of these controllers that runs."""
    running = sorted(f"{pod.namespace}/{pod.name}" for pod in pods if is_competing(pod.name) and not pod.finished)
    found: dict[str, str] = {}
    for pod in running:
        controller = next(name for name in (ADJUSTER, KAITO) if pod.partition("/")[2].startswith(f"{name}-"))
        found.setdefault(controller, _WARNINGS[controller].format(pod=pod))
    return tuple(found.values())
