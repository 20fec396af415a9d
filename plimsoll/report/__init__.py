"""Reports the results of the controller: statuses, conditions, finalizers, events, metrics."""

from plimsoll.report.capacity_history import CapacityHistory, thinned
from plimsoll.report.claim_owners import ClaimOwnerWriter, request_owners, unlabelled_claims
from plimsoll.report.conditions import ConditionReason, differs, refused_status, status_of
from plimsoll.report.deltas import DeltaHistory, delta_record
from plimsoll.report.demands import KIND, DemandWriter
from plimsoll.report.events import (
    CROWD,
    Event,
    EventReason,
    PodEvents,
    capacity_events,
    combined,
    demand_events,
    interruption_event,
    provisioning_event,
    verdict_event,
    withheld_event,
)
from plimsoll.report.finalized import Finalizing, finalizing
from plimsoll.report.finalizers import TRIES, FinalizerWriter
from plimsoll.report.grafana import dashboard, expressions
from plimsoll.report.latest_writer import LatestWriter
from plimsoll.report.metrics import Metrics
from plimsoll.report.node_profiles import ProfileWriter
from plimsoll.report.not_requested import with_failed_requests
from plimsoll.report.pod_remedies import PAUSE_SECONDS, PodRemedies
from plimsoll.report.recorder import OF_NAMESPACE, Recorder
from plimsoll.report.reporter import Reporter
from plimsoll.report.workspace_report import WorkspaceReport, report_on

__all__ = [
    "CROWD",
    "KIND",
    "OF_NAMESPACE",
    "PAUSE_SECONDS",
    "TRIES",
    "CapacityHistory",
    "ClaimOwnerWriter",
    "ConditionReason",
    "DeltaHistory",
    "DemandWriter",
    "Event",
    "EventReason",
    "FinalizerWriter",
    "Finalizing",
    "LatestWriter",
    "Metrics",
    "PodEvents",
    "PodRemedies",
    "ProfileWriter",
    "Recorder",
    "Reporter",
    "WorkspaceReport",
    "capacity_events",
    "combined",
    "dashboard",
    "delta_record",
    "demand_events",
    "differs",
    "expressions",
    "finalizing",
    "interruption_event",
    "provisioning_event",
    "refused_status",
    "report_on",
    "request_owners",
    "status_of",
    "thinned",
    "unlabelled_claims",
    "verdict_event",
    "with_failed_requests",
    "withheld_event",
]
