"""Monitoring: scraping, alerts and a dashboard of the controller's metrics, for the Prometheus operator and Grafana."""

from importlib import resources
from typing import Any, Final

import pulumi

from plimsoll.components.access import NAMESPACE
from plimsoll.components.args import MonitoringArgs
from plimsoll.components.declaring import Component, ObjectType, checked, known, metadata, name_of, namespace_of
from plimsoll.components.specs import MonitoringSpec
from plimsoll.kubernetes_sdk import k8s

MONITORING_NAME: Final = "plimsoll"
_OF: Final = ("cluster", "environment")
"""Labels of every metric and every alert."""
_SILENT_SECONDS: Final = 180
"""A watch that is heard ends or delivers something within 150 s, see `plimsoll run --watch-silence`."""


class Monitoring(Component):
    """A PrometheusRule and a PodMonitor (monitoring.coreos.com/v1), and a ConfigMap with a Grafana dashboard:
    `prometheus_rule`, `pod_monitor`, `dashboard`; the last two are None where an argument leaves them out.

    Raises InvalidArgumentError if an argument is invalid.
    """

    rule_name: pulumi.Output[str]
    """Name of the PrometheusRule."""
    namespace: pulumi.Output[str]
    """Namespace of the PrometheusRule."""

    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Monitoring", name, args, opts)
        self.prometheus_rule = self._object(
            ObjectType("monitoring.coreos.com/v1", "PrometheusRule"),
            MonitoringSpec,
            lambda spec: {"groups": [{"name": MONITORING_NAME, "rules": alert_rules(spec)}]},
            name=MONITORING_NAME,
            namespace=self.given("namespace", NAMESPACE),
            labels=self.given("labels", {}),
            others=("labels",),
        )
        known("Monitoring", name, args, "pod_monitor", "dashboard")
        self.pod_monitor = self._pod_monitor(name) if self.given("pod_monitor", True) else None
        self.dashboard = self._dashboard() if self.given("dashboard", True) else None
        self.rule_name = name_of(self.prometheus_rule)
        self.namespace = namespace_of(self.prometheus_rule, args.get("namespace"))
        self.register_outputs({"ruleName": self.rule_name, "namespace": self.namespace})

    def _pod_monitor(self, name: str) -> Any:
        spec = checked(MonitoringSpec, "PodMonitor", name, self._args, pod_monitor_spec)
        return k8s.apiextensions.CustomResource(
            self.named("pods"),
            api_version="monitoring.coreos.com/v1",
            kind="PodMonitor",
            metadata=metadata(
                MONITORING_NAME, self.given("namespace", NAMESPACE), self.given("labels", {}), skip_await=True
            ),
            spec=spec,
            opts=self.child(),
        )

    def _dashboard(self) -> Any:
        labels = self.given("dashboard_labels", MonitoringSpec().dashboard_labels)
        return k8s.core.v1.ConfigMap(
            self.named("dashboard"),
            metadata=metadata(f"{MONITORING_NAME}-dashboard", self.given("namespace", NAMESPACE), labels),
            data={"plimsoll.json": dashboard_json()},
            opts=self.child(),
        )


def pod_monitor_spec(spec: MonitoringSpec) -> dict[str, Any]:
    """Scrapes the port `metrics` of the controller's pods, the standby's too."""
    return {
        "namespaceSelector": {"matchNames": [NAMESPACE]},
        "selector": {"matchLabels": spec.pod_labels},
        "podMetricsEndpoints": [{"port": "metrics"}],
    }


def dashboard_json() -> str:
    """The Grafana dashboard: `plimsoll.report.dashboard` of the controller's metrics."""
    return resources.files("plimsoll.components").joinpath("dashboard.json").read_text("utf-8")


def alert_rules(spec: MonitoringSpec) -> list[dict[str, Any]]:
    failed = _counted('plimsoll_nodeclaims_finished_total{result="failed"}', "30m")
    tried = _counted('plimsoll_nodeclaims_finished_total{result=~"ready|failed"}', "30m")
    slow = f"histogram_quantile(0.95, {_counted('plimsoll_scaling_duration_seconds_bucket', '30m', 'le')})"
    deletions = _counted('plimsoll_operations_total{operation="delete",result="failed"}', "15m")
    latest = f"max by ({', '.join(_OF)}) (plimsoll_last_plan_timestamp_seconds > 0)"
    rounds = _counted("plimsoll_rounds_failed_total", "15m", "error")
    return [
        _rule(
            "PlimsollNoController",
            "absent(plimsoll_lease_held) or max by (cluster) (plimsoll_lease_held) == 0",
            "5m",
            "No controller holds the Lease of the cluster: nothing is planned.",
            "kubectl -n plimsoll-system get pods,lease; their /readyz says what they wait for, such as an Environment.",
        ),
        _rule(
            "PlimsollNoPlan",
            f"time() - {latest} > {spec.plan_seconds}",
            "1m",
            "The controller has made no plan for {{ $value | humanizeDuration }}.",
            "It is stuck, or its rounds fail: look at its log, and at plimsoll_rounds_failed_total.",
        ),
        _rule(
            "PlimsollRoundsFail",
            f"{rounds} >= 3",
            "1m",
            "{{ $value | humanize }} rounds of the controller failed within a quarter of an hour.",
            "docs/reference/apply.md lists the errors. If a state cannot be written, nothing is applied.",
        ),
        _rule(
            "PlimsollWatchSilent",
            f"max by ({', '.join((*_OF, 'kind'))}) (plimsoll_watch_age_seconds) > {_SILENT_SECONDS}",
            "1m",
            "A watch of {{ $labels.kind }} has delivered nothing for {{ $value | humanizeDuration }}.",
            "What the controller knows of the kind may be old: look for a proxy or a firewall before the apiserver.",
        ),
        _rule(
            "PlimsollDemandFailed",
            f'sum by ({", ".join(_OF)}) (plimsoll_demands{{phase="Failed"}}) > 0',
            "1m",
            "{{ $value | humanize }} GPUDemands have failed: their pods get no capacity.",
            "`kubectl get gpudemand NAME -o yaml` shows why in status.reasons and status.lastFailure.",
        ),
        _rule(
            "PlimsollTriggerPending",
            f"plimsoll_triggers_oldest_pending_seconds > {spec.trigger_pending_seconds}",
            "1m",
            "A trigger pod has been waiting for a node for {{ $value | humanizeDuration }}.",
            "Look at the NodeClaims and at Karpenter's log: limits, instance types, or the cloud's capacity.",
        ),
        _rule(
            "PlimsollNodeClaimsFail",
            f"{failed} / {tried} > {spec.node_claim_failure_rate}",
            "5m",
            "{{ $value | humanizePercentage }} of the NodeClaims of the last half hour failed.",
            "kubectl get events --field-selector involvedObject.kind=NodeClaim says why.",
        ),
        _rule(
            "PlimsollScalingSlow",
            f"{slow} > {spec.scaling_seconds}",
            "10m",
            "GPUs take {{ $value | humanizeDuration }} from the request until they are allocatable (95th percentile).",
            "Compare plimsoll_nodeclaim_provision_duration_seconds by NodePool; drivers may be slow to appear.",
        ),
        _rule(
            "PlimsollCleanupFails",
            f"{deletions} > {spec.cleanup_failures}",
            "0m",
            "{{ $value | humanize }} deletions of capacity failed in a quarter of an hour: unneeded nodes cost money.",
            "The controller's log names the objects: look for `object not applied`.",
        ),
    ]


def _counted(counter: str, time: str, *by: str) -> str:
    """PromQL expression: the increase of a counter, rounded, because Prometheus extrapolates it to the whole range: 3
    can become 3.1."""
    return f"sum by ({', '.join((*_OF, *by))}) (round(increase({counter}[{time}])))"


def _rule(name: str, expression: str, wait: str, summary: str, description: str) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expression,
        "for": wait,
        "labels": {"severity": "warning"},
        "annotations": {"summary": summary, "description": description},
    }
