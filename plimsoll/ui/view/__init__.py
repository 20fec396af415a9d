"""What the pages show, as values: functions of a Snapshot and its Plan."""

from plimsoll.ui.view.attention import Attention, Kind, attention_rows
from plimsoll.ui.view.capacity import HEIGHT, WIDTH, Line, capacity_lines
from plimsoll.ui.view.demands import DemandRow, demand_rows
from plimsoll.ui.view.filter import Choices, Filter, choices
from plimsoll.ui.view.history import DeltaRow, delta_rows
from plimsoll.ui.view.new_nodes import NewNodeRow, new_node_rows
from plimsoll.ui.view.node_groups import ClusterPage, NodeGroup, RequestedRow, cluster_page
from plimsoll.ui.view.nodes import NodeRow, NodeRows
from plimsoll.ui.view.planned import PlanPage, PlanRow, plan_page
from plimsoll.ui.view.queues import QueueRow, queue_rows
from plimsoll.ui.view.segments import Segment, Use
from plimsoll.ui.view.workspaces import WorkspaceRow, workspace_rows

__all__ = [
    "HEIGHT",
    "WIDTH",
    "Attention",
    "Choices",
    "ClusterPage",
    "DeltaRow",
    "DemandRow",
    "Filter",
    "Kind",
    "Line",
    "NewNodeRow",
    "NodeGroup",
    "NodeRow",
    "NodeRows",
    "PlanPage",
    "PlanRow",
    "QueueRow",
    "RequestedRow",
    "Segment",
    "Use",
    "WorkspaceRow",
    "attention_rows",
    "capacity_lines",
    "choices",
    "cluster_page",
    "delta_rows",
    "demand_rows",
    "new_node_rows",
    "plan_page",
    "queue_rows",
    "workspace_rows",
]
