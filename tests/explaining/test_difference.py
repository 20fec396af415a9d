"""`diff`: what new manifests mean, before and after."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.cli.tables.diff import MARKER, as_markdown
from plimsoll.cost import UNPRICED
from plimsoll.explaining import Difference, Figures, compare, with_manifests
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.observe.files import snapshot_from_files
from tests.builders import a_gpu_node, a_node_pool, a_queue, a_snapshot, a_waiting_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POOL = a_node_pool("l4", ("g6.xlarge",), group="karpenter.k8s.aws")
QUEUES = (a_queue("root", parent=""), a_queue("a", quota=1))


def waiting(number: int, **more: Any) -> list[Pod]:
    return [a_waiting_pod(f"p{each}", gpu_fraction="0.9", queue="a", **more) for each in range(number)]


def test_nodes_gpus_cost_and_queues_over_quota() -> None:
    old = a_snapshot(POOL, *QUEUES, a_gpu_node("there", "NVIDIA-L4", instance_type="g6.xlarge"), *waiting(1))
    found = compare(old, a_snapshot(*old.node_pools, *old.queues, *old.nodes, *waiting(3)), NOW)
    before, after = found.before, found.after
    assert (before.nodes, after.nodes, before.gpus, after.gpus) == (1, 3, 1, 3)
    assert after.hourly == pytest.approx(3 * before.hourly)
    assert before.over_quota == {}
    assert after.over_quota == pytest.approx({"a": 1.7})


def test_a_node_without_a_price_is_counted() -> None:
    found = compare(a_snapshot(), a_snapshot(a_gpu_node("n", instance_type="own")), NOW)
    assert (found.after.hourly, found.after.unpriced) == (0.0, 1)


def deployed(folder: Path, replicas: int) -> Any:
    template = {"metadata": {"annotations": {"gpu-fraction": "0.9"}}, "spec": {"containers": [{"name": "main"}]}}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat", "namespace": "team"}}
    (folder / "d.yaml").write_text(yaml.safe_dump({**manifest, "spec": {"replicas": replicas, "template": template}}))
    return snapshot_from_files([str(folder)])


def test_applied_to_a_cluster_a_workload_replaces_its_pods_and_no_others(tmp_path: Path) -> None:
    names = ("chat-5d9f8c7b6-abcde", "chat-api-5d9f8c7b6-abcde", "chat-0")
    cluster = a_snapshot(*(a_waiting_pod(name).model_copy(update={"owner_kind": "ReplicaSet"}) for name in names))
    found = with_manifests(cluster, deployed(tmp_path, 2))
    assert sorted(pod.name for pod in found.pods) == ["chat-0", "chat-1", "chat-api-5d9f8c7b6-abcde"]


def test_names_of_others_are_no_markup() -> None:
    figures = Figures(waiting=1, reasons=("[x](http://a) @all | `b`",))
    text = as_markdown(Difference(Figures(), figures, UNPRICED), [])
    assert r"\[x\](http://a) \@all \| \`b\`" in text


def test_the_command_prints_a_table_markdown_and_a_document(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    for folder, replicas in ((new, 3), (old, 1)):
        folder.mkdir()
        deployed(folder, replicas)
        pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "l4"}}
        (folder / "p.yaml").write_text(yaml.safe_dump({**pool, "spec": {"template": {"spec": POOL.template_spec}}}))
        text = (folder / "d.yaml").read_text().replace("containers:", "schedulerName: kai-scheduler\n      containers:")
        (folder / "d.yaml").write_text(text)
    outputs = {}
    for output in ("text", "markdown", "json"):
        done = CliRunner().invoke(app, ["diff", str(new), "--against", str(old), "-o", output], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        outputs[output] = done.stdout
    found = json.loads(outputs["json"])
    assert (found["before"]["gpus"], found["after"]["gpus"]) == (1, 3)
    assert "| GPUs | 1 | 3 | +2 |" in outputs["markdown"]
    assert outputs["markdown"].startswith(f"{MARKER}\n\n"), "CI finds its comment by it"
    assert "GPUs" in outputs["text"]


def test_a_pod_without_capacity_is_named() -> None:
    """As whoever compares objects knows it, not by its UID."""
    found = compare(a_snapshot(), a_snapshot(a_waiting_pod("own", gpu_fraction="much")), NOW)
    assert [why.partition(": ")[0] for why in found.after.reasons] == ["Pod team/own"]


def test_whole_gpus_count_where_pods_wait_and_where_they_run() -> None:
    """Those of pods that a workload replaces do not count twice, nor what Plimsoll or KAI reserve."""
    reserved = a_waiting_pod("reserved", gpus=1, namespace="kai-resource-reservation", node="n")
    running = a_waiting_pod("chat-5d9f8c7b6-abcde", gpus=8, node="n").model_copy(update={"owner_kind": "ReplicaSet"})
    old = a_snapshot(a_gpu_node("n", gpus=9), reserved, running, a_waiting_pod("w", gpus=4))
    again = a_waiting_pod("chat-0", gpus=8).model_copy(update={"owner_kind": "ReplicaSet"})
    more = a_waiting_pod("more", gpus=2, scheduler="default-scheduler")
    assert [each.whole_gpus for each in figures(old, with_manifests(old, a_snapshot(again)))] == [12, 12]
    assert [each.whole_gpus for each in figures(old, with_manifests(old, a_snapshot(again, more)))] == [12, 14]


def figures(old: Snapshot, new: Snapshot) -> tuple[Figures, Figures]:
    found = compare(old, new, NOW)
    return found.before, found.after


def test_the_command_tells_whole_gpus_and_who_provides_their_nodes(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    asking = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "big", "namespace": "team"}}
    for folder, replicas in ((old, 0), (new, 2)):
        folder.mkdir()
        spec = {"replicas": replicas, "template": {"spec": asking}}
        (folder / "d.yaml").write_text(yaml.safe_dump({**manifest, "spec": spec}))
    outputs = {}
    for output in ("text", "markdown", "json"):
        done = CliRunner().invoke(app, ["diff", str(new), "--against", str(old), "-o", output], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        outputs[output] = " ".join(done.stdout.split())
    found = json.loads(outputs["json"])
    assert (found["before"]["wholeGpus"], found["after"]["wholeGpus"]) == (0, 16)
    assert all("whole GPUs: +16, nodes by the autoscaler" in each for each in outputs.values())
    assert "| whole GPUs of pods | 0 | 16 | +16 |" in outputs["markdown"]


def test_whole_gpus_that_the_queue_keeps_out_have_no_capacity() -> None:
    queues = (a_queue("root", parent=""), a_queue("full", quota=0, limit=0))
    before, after = figures(a_snapshot(*queues), a_snapshot(*queues, a_waiting_pod("w", gpus=1, queue="full")))
    assert (before.waiting, after.waiting) == (0, 1)
    assert after.reasons[0].startswith("team/w: ")


def test_pods_of_one_reason_are_named_three_and_then_counted() -> None:
    pods = [a_waiting_pod(f"p{number}", gpu_fraction="0.5", selector={"zone": "none"}) for number in range(5)]
    found = compare(a_snapshot(POOL), a_snapshot(POOL, *pods), NOW)
    (why,) = found.after.reasons
    assert why.startswith("team/p0, team/p1, team/p2 and 2 more: ")
    assert found.after.waiting == 5
