"""Monitoring: where the alerts on the loop's metrics stand, and their thresholds."""

from pydantic import Field

from plimsoll.model.meta import Declared


class MonitoringSpec(Declared):
    """Thresholds of the alerts. What nodes may take is what a trigger pod's deadline allows, with room to look."""

    namespace: str = Field(default="plimsoll-system", min_length=1, max_length=63)
    """Of the PrometheusRule."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Those by which the Prometheus selects its rules, such as `release: prometheus`."""
    pod_monitor: bool = True
    """Whether a PodMonitor is declared too."""
    pod_labels: dict[str, str] = Field(default_factory=lambda: {"app.kubernetes.io/name": "plimsoll"}, min_length=1)
    """Labels of the controller's pods, whose port `metrics` is scraped."""
    dashboard: bool = True
    """Whether a ConfigMap with the Grafana dashboard is declared too."""
    dashboard_labels: dict[str, str] = Field(default_factory=lambda: {"grafana_dashboard": "1"}, min_length=1)
    """Those by which Grafana's sidecar finds dashboards."""
    trigger_pending_seconds: int = Field(default=600, ge=1)
    """How long a trigger pod may ask without an answer."""
    node_claim_failure_rate: float = Field(default=0.1, gt=0, lt=1)
    """Part of the NodeClaims of the last half hour that may fail."""
    scaling_seconds: int = Field(default=600, ge=1, lt=1800)
    """How long nodes may take until their GPUs are there, for 95 of 100; what takes half an hour and what takes longer
    count the same."""
    plan_seconds: int = Field(default=600, ge=120)
    """How long a controller may make no plan; at rest it makes one each half minute."""
    cleanup_failures: int = Field(default=0, ge=0)
    """Deletions that may fail in a quarter of an hour."""
