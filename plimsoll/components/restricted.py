"""Pod Security's level restricted: https://kubernetes.io/docs/concepts/security/pod-security-standards/, and the pods
that a NetworkPolicy admits."""

from typing import Any, Final

RESTRICTED: Final = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/enforce-version": "latest",
}
"""Labels of the namespace."""
_USER: Final = 65532
"""User and group ID in the image."""


def pod_security() -> dict[str, Any]:
    """The securityContext of a pod that runs the image."""
    return {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "fsGroup": _USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """The securityContext of its container, which can write to its volumes only."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
