"""ShareBinderSpec: the reservations of `plimsoll bind`, and the pods that it binds."""

from pydantic import Field

from plimsoll.model.api import SCHEDULER, PlacementByPool
from plimsoll.model.kai import NAMESPACE
from plimsoll.model.meta import Declared


class ShareBinderSpec(Declared):
    """The binder of pods that share GPUs, and its reservations."""

    image: str = ""
    """Plimsoll's image, of the binder and of the reservations. Absent: no binder is deployed."""
    replicas: int = Field(default=2, ge=1, le=5)
    """Pods of the binder: one is active, the others are standbys. Absent: 2."""
    namespace: str = Field(default=NAMESPACE, min_length=1, max_length=63)
    """Namespace of the reservations."""
    service_account: str = Field(default=NAMESPACE, min_length=1, max_length=253)
    """Service account of the reservations."""
    scheduler_name: str = Field(default=SCHEDULER, min_length=1, max_length=253)
    """Scheduler name of the pods that are bound, as in the binder's settings."""
    placement: PlacementByPool = Field(default_factory=dict, max_length=256)
    """`binpack` or `spread`, by NodePool, as in the binder's settings. Absent: `binpack`."""
    device_variables: bool = True
    """Whether the cluster adds NVIDIA_VISIBLE_DEVICES to their containers; needs Kubernetes 1.36; absent: true."""
