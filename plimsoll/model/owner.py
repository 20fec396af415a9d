"""Owner: what an object of the capacity stacks was made for."""

from typing import Literal

from plimsoll.model.api import WorkspaceRef
from plimsoll.model.meta import Observed


class DemandRef(Observed):
    """Names a GPUDemand, or the Environment whose headroom an object stands for."""

    name: str
    kind: Literal["GPUDemand", "Environment"] = "GPUDemand"
    uid: str = ""
    """Where it is known: labels do not say it."""

    @property
    def namespace(self) -> str:
        """Both are cluster-scoped."""
        return ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


Owner = WorkspaceRef | DemandRef
