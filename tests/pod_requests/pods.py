"""Pods that ask for devices in given forms, one container for each or all in one."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from plimsoll.cluster.pods import KnownParts
from plimsoll.model.cluster import Pod

TF: Final = "tensor-fusion.ai/"
SHARED, SLICE, OTHER_SLICE = "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
DECLARED: Final = ("example.com/half", "example.com/third")
PROVIDED: Final = (SHARED, "nvidia.com/mig-2g.10gb")
KNOWN: Final = KnownParts(frozenset(DECLARED), frozenset(PROVIDED))

ANNOTATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "fraction": {"gpu-fraction": "0.5"},
    "memory": {"gpu-memory": "2048"},
    "container": {"nvidia.com/container.main.gpu-memory.request": "2Gi"},
    "tensor-fusion": {f"{TF}vram-request": "2Gi"},
}
RESOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "whole": ("nvidia.com/gpu",),
    "declared": DECLARED,
    "provided": PROVIDED,
    "undeclared": (SLICE, OTHER_SLICE),
    "vendor": ("amd.com/gpu", "gpu.intel.com/i915"),
    "unknown": ("nvidia.com/GA102GL_A10", "nvidia.com/mlnxnics"),
    "network": ("nvidia.com/hostdev", "rdma/hca"),
}
"""Two of each form, where there are two."""
FORMS: Final = (*ANNOTATIONS, *RESOURCES, "claim")


def a_pod(
    annotations: Mapping[str, str], resources: Sequence[Mapping[str, Any]], claims: Sequence[str] = (), **parts: Any
) -> Pod:
    """A pod with a container for each of `resources`, the first of them main; `parts` are those of its spec."""
    names = ["main", *(f"side-{number}" for number in range(1, len(resources)))]
    containers = [{"name": name, "resources": each} for name, each in zip(names, resources, strict=True)]
    return Pod.read(
        {
            "metadata": {"name": "pod", "namespace": "team", "uid": "uid-pod", "annotations": dict(annotations)},
            "spec": {
                "schedulerName": "kai-scheduler",
                "containers": containers,
                "resourceClaims": [{"name": name, "resourceClaimTemplateName": name} for name in claims],
                **parts,
            },
            "status": {
                "phase": "Running" if parts.get("nodeName") else "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            },
        }
    )


def layouts(*forms: str) -> list[Pod]:
    """Pods that ask in these forms, in every layout of containers; a form that is given twice is two resources."""
    annotations: dict[str, str] = {}
    named: list[str] = []
    claims: list[str] = []
    for number, form in enumerate(forms):
        if form in ANNOTATIONS:
            annotations |= ANNOTATIONS[form]
        elif form == "claim":
            claims.append(f"claim-{number}")
        else:
            named.append(RESOURCES[form][forms[:number].count(form)])
    together = dict.fromkeys(named, "1")
    apart = [{"limits": {name: "1"}} for name in named] or [{}]
    init = [{"name": f"init-{name}", "resources": {"limits": {name: 1}}} for name in named]
    sidecars = [each | {"restartPolicy": "Always"} for each in init]
    return [
        a_pod(annotations, [{"limits": together}], claims),
        a_pod(annotations, [{"requests": together, "limits": together}], claims),
        a_pod(annotations, apart, claims),
        a_pod(annotations, [{}], claims, initContainers=init),
        a_pod(annotations, apart[:1], claims, initContainers=sidecars[1:]),
    ]
