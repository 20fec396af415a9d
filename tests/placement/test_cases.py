"""Reports of others on placement (../shared/cases/kai): what is planned for each."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.command import plimsoll
from tests.shared import shared


def plan_of(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(
        plimsoll("demand", "-f", str(shared(f"cases/kai/{name}")), "-o", "json").stdout
    )
    return found


@pytest.mark.parametrize(
    ("name", "pools"),
    [
        ("anti-affinity.json", ["gpu", "gpu", "gpu"]),
        ("topology-spread.json", ["gpu", "gpu", "gpu"]),
        ("a07b-node-pool-new-nodes.yaml", ["l4", "l4-worker"]),
        ("d11-topology-required-zone.yaml", ["l4"]),
    ],
)
def test_new_nodes(name: str, pools: list[str]) -> None:
    assert sorted(node["nodePool"] for node in plan_of(name)["requests"]) == pools


def test_pods_only_on_nodes_of_their_shard() -> None:
    text = json.dumps(plan_of("a07-kai1112-node-pool-label.yaml"))
    assert "n-worker" in text
    assert "kai.scheduler/node-pool" in text


def test_a_manifest_without_a_status_is_of_a_pod_that_waits() -> None:
    assert len(plan_of("d08-pod-without-status.yaml")["requests"]) == 1


def test_pods_of_other_schedulers_are_named() -> None:
    plan = plan_of("e08-default-scheduler-fraction.yaml")
    assert not plan["requests"]
    text = " ".join(plan["warnings"])
    assert "scheduler runai-scheduler" in text
    assert "scheduler volcano" in text
    (refused,) = [each for demand in plan["demands"] for each in demand["reasons"]]
    assert "default-scheduler" in refused


@pytest.mark.parametrize(
    ("name", "delete", "code", "said"),
    [
        ("h05-kustomization.yaml", [], 0, "1 kustomization file"),
        ("h03-volcano-queue.yaml", [], 2, "1 Queue (scheduling.volcano.sh/v1beta1)"),
        ("deleted-with-pod.yaml", ["--delete", "p"], 2, "queue-deleted-with-podgroups"),
    ],
)
def test_queues_check_says_what_it_skips_and_who_uses_a_queue(
    name: str, delete: list[str], code: int, said: str
) -> None:
    done = plimsoll("queues", "check", "-f", str(shared(f"cases/kai/{name}")), *delete)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
