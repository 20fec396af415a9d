"""What planning derives from one Snapshot; each part is computed once."""

from plimsoll.plan.view.cluster_view import ClusterView
from plimsoll.plan.view.holding import Holding

__all__ = ["ClusterView", "Holding"]
