"""How the nodes of a Workspace are paid for."""

from typing import Final, Literal

CapacityType = Literal["spot", "on-demand", "reserved", "any"]
"""`any` is spot or on-demand; `reserved` is what was reserved, such as capacity reservations and blocks of AWS."""
SPOT: Final = ("spot", "any")
"""Values with which a node may be a spot instance."""
