"""What files hold besides what is planned is named by every command alike: files of kustomize and of charts, and pods
that others schedule or admit."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.command import plimsoll

FILES = {
    "kustomization.yaml": "resources: [queue.yaml]\n",
    "overlay.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
    "values-prod.yaml": "replicas: 2\n",
    "Chart.yaml": "apiVersion: v2\nname: models\nversion: 1.0.0\n",
    "Pulumi.yaml": "name: capacity\nruntime: python\n",
    "Pulumi.prod.yaml": "config: {layer: environment}\n",
    "PulumiPolicy.yaml": "runtime: python\n",
    "queue.yaml": """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: q}
spec:
  resources: {gpu: {quota: 1, limit: 1}, cpu: {quota: -1, limit: -1}, memory: {quota: -1, limit: -1}}
""",
    "node.yaml": "{apiVersion: v1, kind: Node, metadata: {name: node-1}}\n",
}
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: hami}
spec: {schedulerName: hami-scheduler, containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: volcano}
spec: {schedulerName: volcano, containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: kueue, annotations: {gpu-fraction: "0.5"}}
spec:
  schedulerName: kai-scheduler
  schedulingGates: [{name: kueue.x-k8s.io/admission}]
  containers: [{name: a}]
"""
PLANNING = [
    ("plan",),
    ("demand",),
    ("diff", "--against", "old"),
    ("gpus",),
    ("savings",),
    ("queues",),
    ("audit",),
    ("top", "--once"),
    ("why", "node", "node-1"),
]
"""Commands that read files as a cluster."""


def said(folder: Path, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """The command about the folder."""
    (folder.parent / "old").mkdir(exist_ok=True)
    (folder.parent / "old" / "node.yaml").write_text(FILES["node.yaml"])
    named = [str(folder.parent / each) if each == "old" else each for each in command]
    done = plimsoll(*named, *([str(folder)] if command[0] == "policy" else ["-f", str(folder)]))
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2), done.stderr
    return done


def written(folder: Path, **more: str) -> Path:
    folder.mkdir()
    for name, text in (FILES | more).items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("command", [*PLANNING, ("queues", "check"), ("policy", "check")], ids=" ".join)
def test_files_of_tools_are_skipped(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = said(written(tmp_path / "new"), command)
    assert re.search(r"2 (of kind )?kustomization file", done.stdout + done.stderr)
    assert re.search(r"3 (of kind )?file of Pulumi", done.stdout + done.stderr)


@pytest.mark.parametrize("command", PLANNING, ids=" ".join)
def test_values_of_charts_are_skipped(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = said(written(tmp_path / "new"), command)
    for kind in ("Chart.yaml", "values of a chart"):
        assert f"1 of kind {kind} skipped" in done.stdout + done.stderr


@pytest.mark.parametrize("command", PLANNING, ids=" ".join)
def test_pods_of_others_are_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = said(written(tmp_path / "new", **{"pods.yaml": PODS}), command)
    text = " ".join((done.stdout + done.stderr).split())
    for by in ("scheduler hami-scheduler", "scheduler volcano", "scheduling gate kueue.x-k8s.io/admission"):
        assert text.count(by) == 1, by
