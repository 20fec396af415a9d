"""`plimsoll queues`: the tree with usage and requests, and the queue that gets the next GPU."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.labels import QUEUE
from tests.builders import gpu_labels
from tests.command import plimsoll
from tests.queues.manifests import amounts, queue

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": gpu_labels(count=4)}}


def a_pod(name: str, queue_name: str, gpus: int, node: str | None = None) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": gpus}}
    spec: dict[str, Any] = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "resources": resources}]}
    metadata = {"name": name, "namespace": "research", "labels": {QUEUE: queue_name}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec | ({"nodeName": node} if node else {}),
    }


def with_name(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "name": name}}


GIVEN = yaml.safe_dump_all(
    [
        NODE,
        queue("research", gpu=amounts(4)),
        queue("training", "research", amounts(2, 8)),
        queue("notebooks", "research", amounts(2)),
        queue("lost", "gone"),
        a_pod("a", "training", 4, "n1"),
        a_pod("b", "notebooks", 2),
    ]
)


def test_the_tree_as_json() -> None:
    done = plimsoll("queues", "-f", "-", "--output", "json", given=GIVEN)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(each["name"], each["parent"], each["depth"], each["leaf"]) for each in found["queues"]] == [
        ("research", "", 0, False),
        ("notebooks", "research", 1, True),
        ("training", "research", 1, True),
        ("lost", "gone", 0, True),
    ]
    gpu = {each["name"]: each["gpu"] for each in found["queues"]}
    assert gpu["training"] == {
        "overQuotaWeight": 1,
        "quota": 2,
        "limit": 8,
        "fairShare": 2,
        "allocated": 4,
        "allocatedNonPreemptible": 0,
        "requested": 4,
        "pending": 0,
    }
    assert gpu["research"]["limit"] == -1
    assert (gpu["research"]["requested"], gpu["research"]["pending"]) == (6, 2)
    assert found["total"]["gpu"] == 4
    assert found["next"] == {
        "queue": "notebooks",
        "pod": {"namespace": "research", "name": "b"},
        "gpus": 2,
        "free": False,
        "reclaimed": [{"queue": "training", "pod": {"namespace": "research", "name": "a"}, "gpus": 4}],
    }


def test_node_pools_of_kai_are_named() -> None:
    def of_pool(manifest: dict[str, Any], pool: str) -> dict[str, Any]:
        metadata = manifest["metadata"]
        labels = metadata.get("labels", {}) | ({"kai.scheduler/node-pool": pool} if pool else {})
        return {**manifest, "metadata": {**metadata, "labels": labels}}

    objects = [
        *(of_pool(queue(f"of-{pool or 'none'}"), pool) for pool in ("north", "")),
        of_pool(with_name(NODE, "n2"), "north"),
        NODE,
    ]
    given = yaml.safe_dump_all(objects)
    found = json.loads(plimsoll("queues", "-f", "-", "--output", "json", given=given).stdout)
    assert {each["name"]: each["nodePool"] for each in found["queues"]} == {"of-north": "north", "of-none": ""}
    assert {pool: each["gpu"] for pool, each in found["totalByNodePool"].items()} == {"north": 4, "": 4}
    assert found["total"]["gpu"] == 8
    assert "north" in plimsoll("queues", "-f", "-", given=given).stdout
    assert "node pool" not in plimsoll("queues", "-f", "-", given=GIVEN).stdout


def test_past_usage_changes_the_fair_shares(tmp_path: Path) -> None:
    usage = tmp_path / "usage.yaml"
    usage.write_text("training: {gpu: 0.75}\nnotebooks: {gpu: 0.25}\n")
    wanted = [a_pod("a", "training", 4), a_pod("b", "notebooks", 4)]
    equal = [queue("training", gpu=amounts(0)), queue("notebooks", gpu=amounts(0))]
    given = yaml.safe_dump_all([NODE, *equal, *wanted])

    def shares(*options: str) -> dict[str, float]:
        done = plimsoll("queues", "-f", "-", *options, "--output", "json", given=given)
        assert done.returncode == 0, done.stderr
        return {each["name"]: each["gpu"]["fairShare"] for each in json.loads(done.stdout)["queues"]}

    assert shares() == {"training": 2, "notebooks": 2}
    assert shares("--k-value", "1", "--usage", str(usage)) == {"training": 1, "notebooks": 3}


def test_the_tree_for_people() -> None:
    done = plimsoll("queues", "-f", "-", given=GIVEN)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["training", "2", "8", "2", "4", "4", "0"] in lines
    assert "warning: Queue lost is not in the tree: " in done.stdout
    assert "next: 2 GPUs for Queue notebooks (Pod research/b)" in done.stdout
    assert "reclaimed from research/a of Queue training" in done.stdout


def test_what_cannot_be_reclaimed_is_not_explained_by_shares_that_are_kept() -> None:
    """Training is above its fair share, but the pod is training's own."""
    given = yaml.safe_dump_all([NODE, queue("training", gpu=amounts(2, weight=0)), *(a_pod("a", "training", 4, "n1"),)])
    waiting = yaml.safe_dump(a_pod("b", "training", 1))
    last = plimsoll("queues", "-f", "-", given=f"{given}---\n{waiting}").stdout.splitlines()[-1]
    assert "nothing can be reclaimed" in last
    assert "above its fair share" not in last


def test_without_queues_the_output_says_so() -> None:
    done = plimsoll("queues", "-f", "-", given=yaml.safe_dump(NODE))
    assert (done.returncode, done.stdout) == (0, "there are no Queues\n")


def test_a_plan_says_which_queue_is_next() -> None:
    done = plimsoll("plan", "-f", "-", "--output", "json", given=GIVEN)
    assert json.loads(done.stdout)["nextGpu"]["queue"] == "notebooks"
    assert "next: 2 GPUs for Queue notebooks" in plimsoll("plan", "-f", "-", given=GIVEN).stdout


@pytest.mark.parametrize(
    ("spec", "field", "counts_as"),
    [
        ({"resources": {"gpu": amounts(2) | {"quota": "abc"}}}, "gpu quota 'abc'", "0"),
        ({"resources": {"cpu": amounts(2) | {"limit": "10"}}}, "cpu limit '10'", "0"),
        ({"resources": {"gpu": amounts(-2)}}, "gpu quota is -2", "0"),
        ({"resources": {"memory": 5}}, "spec.resources.memory", "0"),
        ({"priority": "high"}, "the priority 'high'", "100"),
    ],
)
def test_what_cannot_be_read_of_a_queue_is_told(spec: dict[str, Any], field: str, counts_as: str) -> None:
    given = yaml.safe_dump_all([NODE, queue("sound"), queue("bad", **spec)])
    done = plimsoll("queues", "-f", "-", "--output", "json", given=given)
    assert done.returncode == 0, done.stderr
    [warning] = json.loads(done.stdout)["warnings"]
    assert warning.startswith(f"Queue bad: {field}")
    assert warning.endswith(f"counts as {counts_as}")
    assert f"warning: Queue bad: {field}" in plimsoll("queues", "-f", "-", given=given).stdout.replace("\n", " ")
