"""Evidence: how a label or a figure of an instance type is known."""

from enum import StrEnum


class Evidence(StrEnum):
    OBSERVED = "observed"
    """Seen on a node, or published by one, for this model of GPU."""
    OBSERVED_GFD = "observed-gfd"
    """Seen as a label of GPU Feature Discovery."""
    OBSERVED_NVML = "observed-nvml"
    """Seen as a figure of NVIDIA's driver, from which GPU Feature Discovery writes its label."""
    DERIVED = "derived"
    """Follows by a known rule from what was seen."""
    NOMINAL = "nominal"
    """As a cloud or a vendor states it, which is not what a node's labels say."""
    GUESS = "guess"
    UNKNOWN = "unknown"

    @property
    def known(self) -> bool:
        """Whether a plan may rely on it."""
        return self not in (Evidence.GUESS, Evidence.UNKNOWN)

    @property
    def of_labels(self) -> bool:
        """Whether labels of nodes are known to have the value."""
        return self.known and self is not Evidence.NOMINAL
