"""Controllers that provide for the same pods are told of, in plans and in what the cluster is read to."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model import Snapshot
from plimsoll.observe.cluster import PODS
from plimsoll.plan import plan
from tests.builders import a_pod, a_snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def warnings(*objects: Any) -> tuple[str, ...]:
    snapshot: Snapshot = a_snapshot(*objects)
    return plan(snapshot, (), NOW).warnings


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("node-scale-adjuster-6d9f7-x2x", "KAI's node-scale-adjuster runs (others/node-scale-adjuster-6d9f7-x2x)"),
        ("kaito-workspace-6d9f7-x2x", "KAITO's controller runs (others/kaito-workspace-6d9f7-x2x)"),
    ],
)
def test_a_controller_that_runs_is_warned_of_once(name: str, words: str) -> None:
    [warning] = warnings(a_pod(name, node="n"), a_pod(f"{name}2", node="n"))
    assert warning.startswith(words)


def test_one_that_has_ended_is_not() -> None:
    assert warnings(a_pod("node-scale-adjuster-1", phase="Failed"), a_pod("my-node-scale-adjuster-1")) == ()


def test_its_pods_are_observed_though_they_ask_for_no_gpu() -> None:
    raw = {"metadata": {"name": "node-scale-adjuster-1", "namespace": "kai-scheduler"}, "spec": {"containers": []}}
    assert PODS.read(raw) is not None
    assert PODS.read({**raw, "metadata": {"name": "web-1", "namespace": "kai-scheduler"}}) is None
