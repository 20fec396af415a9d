"""What pages, `top` and `gpus` show of nodes whose GPUs pods get by claims."""

from pathlib import Path

import yaml

from plimsoll.cost import Prices
from plimsoll.ui.view import NodeRows
from tests.claims.objects import Manifest, a_claim, a_class, a_node, a_pod, a_slice, asked, gpus, snapshot_of
from tests.claims.test_demand import FOUR
from tests.command import plimsoll


def objects() -> tuple[Manifest, ...]:
    """A node with four GPUs, of which a pod of a queue has two, and two pods without one share a third."""
    queued = a_pod("queued", claim="two", node="n1", schedulerName="kai-scheduler")
    queued["metadata"]["labels"] = {"kai.scheduler/queue": "research"}
    sharing = [a_pod(name, claim="shared", node="n1") for name in ("a", "b")]
    two = a_claim("two", asked(2), devices=[("n1", "gpu-0"), ("n1", "gpu-1")], pods=["queued"])
    shared = a_claim("shared", asked(1), devices=[("n1", "gpu-2")], pods=["a", "b"])
    return (a_class(), a_node("n1", instance_type=FOUR), a_slice("n1", gpus(4)), queued, *sharing, two, shared)


def test_claimed_gpus_are_of_the_queue_of_their_pods(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, *objects())
    (row,) = NodeRows().update(snapshot, Prices({}))
    found = {(use.value, queue): milli for (use, queue), milli in row.amounts.items()}
    assert found == {("queue", "research"): 2000, ("other", ""): 1000, ("free", ""): 1000}
    assert [segment.pods for bar in row.bars for segment in bar] == ["team/a, team/b", *["team/queued"] * 2, ""]
    assert row.used == 3
    assert (set(row.namespaces), set(row.queues)) == ({"team"}, {"research"})


def test_gpus_and_top_count_them(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects()))
    shown = plimsoll("gpus", "-f", str(file))
    assert shown.returncode == 0, shown.stderr
    for text in ("gpu.nvidia.com", "claim team/two", "claim team/shared", "free"):
        assert text in shown.stdout
    assert "1 node, 4 GPUs, 3 in use" in plimsoll("top", "--once", "-f", str(file)).stdout


def test_why_says_what_a_running_pod_has_by_its_claims(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects()))
    shown = plimsoll("why", "pod", "team/queued", "-f", str(file)).stdout
    assert "2 GPUs by claim, whole or parts: two" in shown
