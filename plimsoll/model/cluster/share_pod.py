"""SharePod: a pod that the share binder can bind."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll.labels import VISIBLE_DEVICES
from plimsoll.model.cluster.pod import Pod

CONFIG_MAP: Final = "runai/shared-gpu-configmap"
"""KAI's annotation: prefix of the names of the pod's ConfigMaps; see `config_map_names`."""
NVIDIA_VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"

_UNPLACED_AFFINITY: Final = {"podAffinity": "affinity to other pods", "podAntiAffinity": "anti-affinity to other pods"}
_UNPLACED_VOLUMES: Final = ("persistentVolumeClaim", "ephemeral")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class SharePod(Pod):
    obstacle: str = ""
    """Why the binder cannot bind it on any node; empty if it can."""


def config_map_names(prefix: str) -> tuple[str, str]:
    """The two ConfigMaps that KAI's admission adds to the first container: for single variables, and for `envFrom`."""
    return f"{prefix}-0", f"{prefix}-0-evar"


def obstacle_of(pod: Mapping[str, Any]) -> str:
    """What the pod requires and the binder does not support. Such pods are refused."""
    spec = pod.get("spec") or {}
    return next(_obstacles(spec, (pod.get("metadata") or {}).get("annotations") or {}), "")


def _obstacles(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> Iterator[str]:
    for what in (*_placed_by_others(spec), *_bound_to_places(spec)):
        yield f"{what}, which needs a scheduler"
    if not any(_takes_gpu(container, annotations) for container in spec.get("containers") or ()):
        yield (
            f"no container takes {NVIDIA_VISIBLE_DEVICES} from the annotation {VISIBLE_DEVICES} (fieldRef), nor from "
            f"the ConfigMap that the annotation {CONFIG_MAP} names, so it would see every GPU or none: the "
            "cluster adds it to pods that are made once ShareBinder is declared with its deviceVariables"
        )


def _placed_by_others(spec: Mapping[str, Any]) -> Iterator[str]:
    """What depends on where other pods are."""
    affinity = spec.get("affinity") or {}
    for kind, words in _UNPLACED_AFFINITY.items():
        if (affinity.get(kind) or {}).get(_REQUIRED):
            yield f"it requires {words} (spec.affinity.{kind})"
    spread = [each.get("whenUnsatisfiable") or "DoNotSchedule" for each in spec.get("topologySpreadConstraints") or ()]
    if "DoNotSchedule" in spread:
        yield "it requires to be spread (spec.topologySpreadConstraints)"


def _bound_to_places(spec: Mapping[str, Any]) -> Iterator[str]:
    """What only some nodes have, or only once."""
    for volume in spec.get("volumes") or ():
        for source in _UNPLACED_VOLUMES:
            if volume.get(source) is not None:
                yield f"its volume {volume.get('name')} is bound to places ({source})"
    if spec.get("resourceClaims"):
        yield "it claims devices (spec.resourceClaims)"
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    if any(port.get("hostPort") for container in containers for port in container.get("ports") or ()):
        yield "it uses a port of its node (hostPort)"


def _takes_gpu(container: Mapping[str, Any], annotations: Mapping[str, str]) -> bool:
    prefix = annotations.get(CONFIG_MAP)
    names = config_map_names(prefix) if prefix else ()
    for source in container.get("envFrom") or ():
        if (source.get("configMapRef") or {}).get("name") in names:
            return True
    for variable in container.get("env") or ():
        origin = variable.get("valueFrom") or {}
        if variable.get("name") != NVIDIA_VISIBLE_DEVICES:
            continue
        if (origin.get("fieldRef") or {}).get("fieldPath") == f"metadata.annotations['{VISIBLE_DEVICES}']":
            return True
        if (origin.get("configMapKeyRef") or {}).get("name") in names:
            return True
    return False
