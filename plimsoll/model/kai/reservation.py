"""Reservations of KAI: pods that each hold one whole GPU of a node for a group of shares."""

from typing import Any, Final, Literal

from pydantic import Field

from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.meta import Declared

NAMESPACE: Final = "kai-resource-reservation"
"""KAI's namespace for reservation pods; its service account and app label have the same name."""
FORMER_NAMESPACE: Final = "runai-reservation"
"""KAI's former namespace for reservation pods."""
NAMESPACES: Final = (NAMESPACE, FORMER_NAMESPACE)

APP: Final = "app"
RESERVATION_APP: Final = "app.runai.resource.reservation"
"""Label of a reservation pod: the prefix of its name."""


class ReservationSettings(Declared):
    """How reservation pods are created. The defaults are KAI's current ones, except for the image, which has none."""

    image: str = Field(min_length=1)
    """Image of the reservation container: `plimsoll probe`, or KAI's own."""
    command: tuple[str, ...] = ("plimsoll", "probe")
    """Empty: the image's own."""
    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    namespace: str = Field(default=NAMESPACE, min_length=1, max_length=63)
    former_namespaces: tuple[str, ...] = (FORMER_NAMESPACE,)
    """Namespaces from which reservations are read too, without creating any there."""
    service_account: str = Field(default=NAMESPACE, min_length=1, max_length=253)
    app: str = NAMESPACE
    """Value of the label `app`."""
    name_prefix: str = "gpu-reservation"
    """Prefix of names, and the value of the label `app.runai.resource.reservation`."""
    container: str = "resource-reservation"
    labels: dict[str, str] = Field(default_factory=dict)
    """Additional labels."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Additional annotations."""
    env: dict[str, str] = Field(default_factory=dict)
    """Additional environment variables, besides POD_NAME and POD_NAMESPACE."""
    requests: dict[str, str] = Field(default_factory=lambda: {"cpu": "1m", "memory": "10Mi"})
    """Requests besides the GPU."""
    limits: dict[str, str] = Field(default_factory=lambda: {"cpu": "50m", "memory": "100Mi"})
    tolerations: tuple[dict[str, Any], ...] = ()
    """Tolerations besides those of the pod that needs the reservation."""
    runtime_class: str = ""
    """RuntimeClass for GPUs, such as `nvidia`; empty: the node's default."""
    gpu_resource: str = GPU_RESOURCE
    deadline_seconds: float = Field(default=40.0, gt=0)
    """How long to wait for the GPU's UUID."""
    grace_seconds: float = Field(default=30.0, ge=0)
    """How long a reservation without pods is kept."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces from which reservations are read."""
        return tuple(dict.fromkeys((self.namespace, *self.former_namespaces)))
