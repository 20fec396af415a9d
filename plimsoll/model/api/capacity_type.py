"""How the nodes of a Workspace are paid for."""

from typing import Final, Literal

CapacityType = Literal["spot", "on-demand", "any"]
SPOT: Final = ("spot", "any")
"""Values with which a node may be a spot instance."""
