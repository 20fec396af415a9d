"""Files of kustomize and of charts beside manifests are no objects, and are skipped by every command alike."""

from pathlib import Path

import pytest

from tests.command import plimsoll

FILES = {
    "kustomization.yaml": "resources: [queue.yaml]\n",
    "overlay.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
    "values-prod.yaml": "replicas: 2\n",
    "Chart.yaml": "apiVersion: v2\nname: models\nversion: 1.0.0\n",
    "queue.yaml": """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: q}
spec:
  resources: {gpu: {quota: 1, limit: 1}, cpu: {quota: -1, limit: -1}, memory: {quota: -1, limit: -1}}
""",
}


@pytest.mark.parametrize(
    "command",
    [("plan",), ("demand",), ("queues",), ("queues", "check"), ("policy", "check"), ("savings",)],
    ids=" ".join,
)
def test_they_are_skipped(tmp_path: Path, command: tuple[str, ...]) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    arguments = [str(tmp_path)] if command[0] == "policy" else ["-f", str(tmp_path)]
    done = plimsoll(*command, *arguments)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2), done.stderr
    assert "kustomization file" in done.stdout + done.stderr
