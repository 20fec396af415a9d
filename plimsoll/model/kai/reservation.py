"""Reservations of KAI: a pod that holds one whole GPU of a node for a group of shares."""

from typing import Any, Final, Literal

from pydantic import Field

from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.meta import Declared

NAMESPACE: Final = "kai-resource-reservation"
"""Where KAI keeps reservations; its service account and app label have the same name."""
FORMER_NAMESPACE: Final = "runai-reservation"
"""Where KAI kept them before."""
NAMESPACES: Final = (NAMESPACE, FORMER_NAMESPACE)

APP: Final = "app"
RESERVATION_APP: Final = "app.runai.resource.reservation"
"""Label of a reservation: what its name begins with."""


class ReservationSettings(Declared):
    """How reservations are made. The defaults are KAI's of today, but for the image, which has none."""

    image: str = Field(min_length=1)
    """What runs in a reservation: `plimsoll probe`, or KAI's own."""
    command: tuple[str, ...] = ("plimsoll", "probe")
    """Empty: the image's own."""
    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    namespace: str = NAMESPACE
    former_namespaces: tuple[str, ...] = (FORMER_NAMESPACE,)
    """Where reservations are read too, and none is made."""
    service_account: str = NAMESPACE
    app: str = NAMESPACE
    """Value of the label `app`."""
    name_prefix: str = "gpu-reservation"
    """What names begin with, and the value of the label `app.runai.resource.reservation`."""
    container: str = "resource-reservation"
    labels: dict[str, str] = Field(default_factory=dict)
    """Further labels."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Further annotations."""
    env: dict[str, str] = Field(default_factory=dict)
    """Further variables, beside POD_NAME and POD_NAMESPACE."""
    requests: dict[str, str] = Field(default_factory=lambda: {"cpu": "1m", "memory": "10Mi"})
    """What it asks of its node beside the GPU."""
    limits: dict[str, str] = Field(default_factory=lambda: {"cpu": "50m", "memory": "100Mi"})
    tolerations: tuple[dict[str, Any], ...] = ()
    """Beside those of the pod that it is made for."""
    runtime_class: str = ""
    """The node's RuntimeClass for GPUs, such as `nvidia`; empty: its default."""
    gpu_resource: str = GPU_RESOURCE
    deadline_seconds: float = Field(default=40.0, gt=0)
    """How long the GPU's UUID is waited for."""
    grace_seconds: float = Field(default=30.0, ge=0)
    """How long a reservation without pods is kept."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Where reservations are read."""
        return tuple(dict.fromkeys((self.namespace, *self.former_namespaces)))
