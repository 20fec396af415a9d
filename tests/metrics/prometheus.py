"""A Prometheus that scrapes controllers, and its alerts as evaluated by promtool."""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from plimsoll.components import MONITORING_NAME, alert_rules
from plimsoll.components.specs import MonitoringSpec
from plimsoll.report import Metrics

STEP: Final = 30
"""Seconds between two scrapes, and between two evaluations."""
_VALUE: Final = re.compile(r"\{\{ \$value \| \w+ \}\}")
_LABEL: Final = re.compile(r"\{\{ \$labels\.(\w+) \}\}")


class Prometheus:
    """The scraped series and the expected alerts; `check` runs promtool once for all of them."""

    def __init__(self, promtool: Path, folder: Path) -> None:
        self._promtool = promtool
        self._folder = folder
        self._series: dict[str, list[str]] = {}
        self._scrapes = 0
        self._expected: list[tuple[int, str, list[dict[str, str]]]] = []

    @property
    def now(self) -> int:
        """Seconds from the first scrape to the last."""
        return (self._scrapes - 1) * STEP

    def scrape(self, *processes: Metrics, times: int = 1) -> None:
        """Records every series of each process, each in its own pod; a process that is missing has ended."""
        for _ in self.scrapes(*processes, times=times):
            pass

    def scrapes(self, *processes: Metrics, times: int) -> Iterator[None]:
        """Records the same so many times, for those who expect something after each."""
        found = dict(_samples(processes))
        for series in found.keys() - self._series.keys():
            self._series[series] = ["_"] * self._scrapes
        for _ in range(times):
            for series, values in self._series.items():
                values.append(found.get(series, "stale"))
            self._scrapes += 1
            yield

    def is_silent(self) -> None:
        """Expects no alert now."""
        self._expected.append((self.now, "", []))

    def tells(self, alert: str, value: str, **labels: str) -> None:
        """Expects exactly this alert now, with this value in its summary."""
        self.tells_each(alert, value, labels)

    def tells_each(self, alert: str, value: str, *several: dict[str, str]) -> None:
        """Expects exactly this alert now, once with each of these labels."""
        self._expected.append((self.now, alert, [{"value": value, **labels} for labels in several]))

    def answers(self, *expressions: str) -> None:
        """Expects that each expression has a numeric value now."""
        test = {
            "interval": f"{STEP}s",
            "input_series": self._input(),
            "promql_expr_test": [
                {
                    # What is not a number does not equal itself.
                    "expr": f"clamp_max(count(({each}) == ({each})), 1)",
                    "eval_time": f"{self.now}s",
                    "exp_samples": [{"labels": "{}", "value": 1}],
                }
                for each in expressions
            ],
        }
        self._test({"tests": [test]})

    def check(self, **thresholds: Any) -> None:
        """Fails if the alerts with these thresholds differ from the expected ones."""
        rules = alert_rules(MonitoringSpec(**thresholds))
        (self._folder / "rules.yaml").write_text(json.dumps({"groups": [{"name": MONITORING_NAME, "rules": rules}]}))
        test = {
            "interval": f"{STEP}s",
            "input_series": self._input(),
            "alert_rule_test": list(self._expectations(rules)),
        }
        self._test({"rule_files": ["rules.yaml"], "tests": [test]})

    def _input(self) -> list[dict[str, str]]:
        return [{"series": series, "values": " ".join(values)} for series, values in sorted(self._series.items())]

    def _test(self, tests: dict[str, Any]) -> None:
        file = self._folder / "test.yaml"  # JSON, which is YAML and written in a fraction of the time
        file.write_text(json.dumps({"evaluation_interval": f"{STEP}s", **tests}))
        done = subprocess.run(
            [self._promtool, "test", "rules", file], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _expectations(self, rules: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for rule in rules:
            for time, alert, reported in self._expected:
                expected = [_instance(rule, **each) for each in reported] if alert == rule["alert"] else []
                yield {"eval_time": f"{time}s", "alertname": rule["alert"], "exp_alerts": expected}


def _samples(processes: Iterable[Metrics]) -> Iterator[tuple[str, str]]:
    for number, process in enumerate(processes):
        for metric in process.registry.collect():
            for sample in metric.samples:
                labels = {**sample.labels, "pod": f"plimsoll-{number}"}
                text = ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
                yield f"{sample.name}{{{text}}}", f"{sample.value:g}"


def _instance(rule: dict[str, Any], *, value: str, **labels: str) -> dict[str, Any]:
    annotations = {name: _LABEL.sub(lambda found: labels[found[1]], text) for name, text in rule["annotations"].items()}
    annotations = {name: _VALUE.sub(value, text) for name, text in annotations.items()}
    return {"exp_labels": {**rule["labels"], **labels}, "exp_annotations": annotations}
