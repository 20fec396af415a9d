"""Rounds keep no Snapshot but the last in memory: one of a large cluster takes a megabyte."""

import gc
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model import Snapshot
from plimsoll.model.api import Environment
from plimsoll.plan import Known, plan, validate
from plimsoll.plan.demand import DemandPlanner
from plimsoll.plan.view import ClusterView
from plimsoll.policy import withhold
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod, a_workspace, an_environment

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _without_search_for_cycles() -> Iterator[None]:
    """The controller searches rarely, so what is part of a cycle stays for many rounds."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def shares(count: int) -> list[Any]:
    return [a_waiting_pod(f"pod-{number}", gpu_fraction="0.6") for number in range(count)]


@pytest.mark.parametrize(
    ("environment", "objects"),
    [
        (
            an_environment(demand={"provisioner": "trigger-pod"}),
            [a_node_pool("pool", ("g6.xlarge",), limits={"nvidia.com/gpu": 4})],
        ),
        (
            an_environment(demand={"provisioner": "capacity-buffer"}),
            [a_node_pool("pool", ("g6.xlarge",)), a_gpu_node()],
        ),
        (an_environment(nap=True), [a_workspace()]),
        (an_environment(), [a_workspace(), a_gpu_node(gpus=8)]),
    ],
    ids=["trigger pods", "capacity buffers", "NodeClaims", "existing nodes"],
)
def test_a_round_leaves_no_snapshot_behind(environment: Environment, objects: list[Any]) -> None:
    planner, known, seen = DemandPlanner(), Known(), list[weakref.ref[Snapshot]]()
    for number in range(1, 6):
        known.begin()
        view = ClusterView(a_snapshot(*objects, *shares(number), environment=environment), known)
        seen.append(weakref.ref(view.observed))
        assert withhold(plan(view, validate(view), NOW, planner), view.observed, NOW).verdicts is not None
        del view
    assert sum(each() is not None for each in seen) <= 1
