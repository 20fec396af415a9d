"""What planning derives from one Snapshot; each part is computed once."""

from plimsoll.plan.view.autoscaling import autoscaled
from plimsoll.plan.view.cluster_view import ClusterView

__all__ = ["ClusterView", "autoscaled"]
