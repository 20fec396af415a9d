"""The Grafana dashboard, generated from the definitions of the metrics, with a panel for each."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Metric

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Capacity": ("plimsoll_gpus", "plimsoll_nodeclaim", "plimsoll_triggers", "plimsoll_scaling"),
    "Cost": ("plimsoll_cost", "plimsoll_idle", "plimsoll_planned_cost", "plimsoll_unpriced"),
    "Demand": ("plimsoll_demand", "plimsoll_capacity_gates"),
    "Controller": ("plimsoll_",),
}
"""Prefixes of metrics by row of panels; the first row with a matching prefix counts."""
SELECTOR: Final = 'cluster=~"$cluster",environment=~"$environment"'
_OWN: Final = frozenset({"cluster", "environment", "le"})
_WIDTH: Final = 8
_HEIGHT: Final = 7
_COLUMNS: Final = 3
_DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def dashboard(registry: CollectorRegistry) -> dict[str, Any]:
    """The dashboard's JSON model; variables choose the data source, the cluster and the Environment."""
    panels: list[dict[str, Any]] = []
    y = 0
    for section, metrics in _sections(registry.collect()):
        panels.append({"type": "row", "title": section, "gridPos": _place(0, y, 24, 1), "panels": []})
        y += 1
        for number, metric in enumerate(metrics):
            row, column = divmod(number, _COLUMNS)
            place = _place(column * _WIDTH, y + row * _HEIGHT, _WIDTH, _HEIGHT)
            panels.append(_panel(metric, place))
        y += -(-len(metrics) // _COLUMNS) * _HEIGHT
    return {
        "uid": "plimsoll",
        "title": "Plimsoll",
        "tags": ["plimsoll"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, 1)],
    }


def expressions(model: Mapping[str, Any]) -> list[str]:
    """The PromQL expressions of a dashboard, for a cluster and an Environment of any name."""
    return [
        target["expr"].replace("$cluster", ".*").replace("$environment", ".*").replace("$__rate_interval", "5m")
        for panel in model["panels"]
        for target in panel.get("targets", ())
    ]


def _sections(metrics: Iterable[Metric]) -> list[tuple[str, list[Metric]]]:
    metrics_of: dict[str, list[Metric]] = {section: [] for section in SECTIONS}
    for metric in metrics:
        section = next(name for name, prefixes in SECTIONS.items() if metric.name.startswith(prefixes))
        metrics_of[section].append(metric)
    return [(section, metrics) for section, metrics in metrics_of.items() if metrics]


def _panel(metric: Metric, place: dict[str, int]) -> dict[str, Any]:
    targets = _targets(metric)
    return {
        "type": "timeseries",
        "title": metric.documentation.partition(";")[0],
        "description": f"{metric.documentation}. Metric {metric.name}.",
        "datasource": _DATA_SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": _unit(metric), "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": _DATA_SOURCE, "expr": expression, "legendFormat": legend}
            for number, (expression, legend) in enumerate(targets)
        ],
    }


def _targets(metric: Metric) -> list[tuple[str, str]]:
    """(expression, legend): quantiles of a histogram, the rate of a counter, the value of a gauge.

    Standby processes expose gauges too, with the values of the start: the largest is that of the one at work, and of a
    rate, which starts at 1, the smallest.
    """
    labels = sorted({name for sample in metric.samples for name in sample.labels} - _OWN)
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    by = f" by ({', '.join(labels)})" if labels else ""
    if metric.type == "histogram":
        by_le = f" by ({', '.join(['le', *labels])})"
        rate = f"sum{by_le} (rate({metric.name}_bucket{{{SELECTOR}}}[$__rate_interval]))"
        return [(f"histogram_quantile({part}, {rate})", f"{name} {legend}".strip()) for part, name in _QUANTILES]
    if metric.type == "counter":
        return [(f"sum{by} (rate({metric.name}_total{{{SELECTOR}}}[$__rate_interval]))", legend or "per second")]
    if metric.name.endswith("_timestamp_seconds"):
        return [(f"time() - max({metric.name}{{{SELECTOR}}})", "seconds ago")]
    at_work = "min" if metric.name.endswith("_rate") else "max"
    return [(f"{at_work}{by} ({metric.name}{{{SELECTOR}}})", legend or metric.name.removeprefix("plimsoll_"))]


_QUANTILES: Final = ((0.5, "median"), (0.95, "95 %"))


def _unit(metric: Metric) -> str:
    if metric.name.endswith("_seconds"):
        return "s"
    if metric.type == "counter":
        return "ops"
    return "percentunit" if metric.name.endswith("_rate") else "short"


def _variables() -> list[dict[str, Any]]:
    def of(label: str) -> dict[str, Any]:
        query = f"label_values(plimsoll_last_plan_timestamp_seconds, {label})"
        return {
            "name": label,
            "type": "query",
            "datasource": _DATA_SOURCE,
            "query": query,
            "definition": query,
            "includeAll": True,
            "allValue": ".*",
            "multi": True,
            "refresh": 2,
            "current": {"text": "All", "value": "$__all"},
        }

    return [{"name": "datasource", "type": "datasource", "query": "prometheus"}, of("cluster"), of("environment")]


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}
