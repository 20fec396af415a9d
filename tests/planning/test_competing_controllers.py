"""Other controllers that provision for the same pods cause a warning, in plans and in what is observed."""

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
def test_a_running_competing_controller_is_one_warning(name: str, words: str) -> None:
    [warning] = warnings(a_pod(name, node="n"), a_pod(f"{name}2", node="n"))
    assert warning.startswith(words)


def test_a_finished_competing_controller_is_no_warning() -> None:
    assert warnings(a_pod("node-scale-adjuster-1", phase="Failed"), a_pod("my-node-scale-adjuster-1")) == ()


def test_pods_of_competing_controllers_are_observed_although_they_request_no_gpu() -> None:
    raw = {"metadata": {"name": "node-scale-adjuster-1", "namespace": "kai-scheduler"}, "spec": {"containers": []}}
    assert PODS.read(raw) is not None
    assert PODS.read({**raw, "metadata": {"name": "web-1", "namespace": "kai-scheduler"}}) is None
