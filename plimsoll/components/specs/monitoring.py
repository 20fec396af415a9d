"""MonitoringSpec: alerts and a dashboard of the controller's metrics."""

from pydantic import Field

from plimsoll.model.meta import Declared


class MonitoringSpec(Declared):
    """Namespace and thresholds of the alerts, and which other objects are declared. By default, alerts on slow nodes
    fire before the deadline of trigger pods."""

    namespace: str = Field(default="plimsoll-system", min_length=1, max_length=63)
    """Namespace of the PrometheusRule; absent: plimsoll-system."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Those by which the Prometheus selects its rules, such as `release: prometheus`."""
    pod_monitor: bool = True
    """Whether a PodMonitor is declared, too; absent: true."""
    pod_labels: dict[str, str] = Field(default_factory=lambda: {"app.kubernetes.io/name": "plimsoll"}, min_length=1)
    """Labels of the controller's pods, whose port `metrics` is scraped; absent: `app.kubernetes.io/name: plimsoll`."""
    dashboard: bool = True
    """Whether a ConfigMap with the Grafana dashboard is declared, too; absent: true."""
    dashboard_labels: dict[str, str] = Field(default_factory=lambda: {"grafana_dashboard": "1"}, min_length=1)
    """Those by which Grafana's sidecar finds dashboards; absent: `grafana_dashboard: "1"`."""
    trigger_pending_seconds: int = Field(default=600, ge=1)
    """How long a trigger pod may wait for its node."""
    node_claim_failure_rate: float = Field(default=0.1, gt=0, lt=1)
    """Part of the NodeClaims of the last half hour that may fail."""
    scaling_seconds: int = Field(default=600, ge=1, lt=1800)
    """95th percentile of the time until the GPUs of a node are allocatable; times above half an hour count as half an
    hour."""
    plan_seconds: int = Field(default=600, ge=120)
    """How long the controller may make no plan; without changes it plans every half minute."""
    cleanup_failures: int = Field(default=0, ge=0)
    """Deletions that may fail in a quarter of an hour."""
