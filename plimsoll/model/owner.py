"""Owner: the Workspace, GPUDemand or Environment that an object of a capacity stack belongs to."""

from typing import Literal

from plimsoll.model.api import WorkspaceRef
from plimsoll.model.meta import Observed


class DemandRef(Observed):
    """Names a GPUDemand, or the Environment whose headroom an object belongs to."""

    name: str
    kind: Literal["GPUDemand", "Environment"] = "GPUDemand"
    uid: str = ""
    """Empty if not known: labels do not have it."""

    @property
    def namespace(self) -> str:
        """Both are cluster-scoped."""
        return ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class PodRef(Observed):
    """Names a pod that waits for capacity."""

    namespace: str
    name: str
    uid: str
    kind: Literal["Pod"] = "Pod"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


Owner = WorkspaceRef | DemandRef
