"""Controllers that provide capacity for the same pods as Plimsoll: both together buy twice."""

from collections.abc import Iterable
from typing import Final

from plimsoll.model.cluster import Pod

ADJUSTER: Final = "node-scale-adjuster"
"""KAI's, as its Deployment is named."""
KAITO: Final = "kaito-workspace"
"""KAITO's, as its chart names the Deployment."""

_PREFIXES: Final = tuple(f"{name}-" for name in (ADJUSTER, KAITO))
_WARNINGS: Final = {
    ADJUSTER: "KAI's node-scale-adjuster runs ({pod}): it asks for nodes for the shares that Plimsoll plans for; "
    "switch it off with --set global.clusterAutoscaling=false",
    KAITO: "KAITO's controller runs ({pod}): it makes NodeClaims for its own Workspaces, which Plimsoll does not count "
    "on; convert them with `plimsoll import kaito`, or keep the two to NodePools of their own",
}


def is_rival(name: str) -> bool:
    """Whether a pod of that name is one of such a controller."""
    return name.startswith(_PREFIXES)


def rival_warnings(pods: Iterable[Pod]) -> tuple[str, ...]:
    """What to say of the controllers whose pods run, each once."""
    running = sorted(f"{pod.namespace}/{pod.name}" for pod in pods if is_rival(pod.name) and not pod.finished)
    found: dict[str, str] = {}
    for pod in running:
        controller = next(name for name in (ADJUSTER, KAITO) if pod.partition("/")[2].startswith(f"{name}-"))
        found.setdefault(controller, _WARNINGS[controller].format(pod=pod))
    return tuple(found.values())
