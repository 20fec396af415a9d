"""A registry whose series all carry the same further labels."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Metric


class LabelledRegistry(CollectorRegistry):
    """`labels` are those of every series, such as the environment and the cluster; they may change."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: dict[str, str] = {}

    def collect(self) -> Iterable[Metric]:
        for metric in super().collect():
            metric.samples = [sample._replace(labels={**self.labels, **sample.labels}) for sample in metric.samples]
            yield metric
