"""A metrics registry that adds labels to all series."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Metric


class LabelledRegistry(CollectorRegistry):
    """A registry; `labels`, such as environment and cluster, are added to every series and may change."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: dict[str, str] = {}

    def collect(self) -> Iterable[Metric]:
        for metric in super().collect():
            metric.samples = [sample._replace(labels={**self.labels, **sample.labels}) for sample in metric.samples]
            yield metric
