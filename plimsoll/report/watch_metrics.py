"""Metrics of the age of each watch, computed when they are scraped."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector


class WatchMetrics(Collector):
    """The age of each watch: of the standby's, too."""

    def __init__(self) -> None:
        self._ages: Callable[[], Mapping[str, float]] = dict

    def of(self, ages: Callable[[], Mapping[str, float]]) -> None:
        """`ages` returns the seconds of each watched kind."""
        self._ages = ages

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(
            "plimsoll_watch_age_seconds",
            "Since the kind was listed, or its watch delivered an event or a bookmark, or ended",
            labels=["kind"],
        )
        for kind, seconds in self._ages().items():
            family.add_metric([kind], seconds)
        return [family]
