"""Three clusters with one backend: each uses only its own state, `status --fleet` lists them, and `drift` reports
each."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.apply import ApplySettings, LeaseSettings, OtherClusterError
from plimsoll.sandbox import Sandbox
from tests.e2e.admission.objects import prepare_admission
from tests.e2e.applying.capacity import a_deployment, a_writer, creating, settings_for
from tests.e2e.cluster.aws import KEYS, bucket_url, serving_bucket
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
BUCKET = "states"
LEASE = LeaseSettings()


@pytest.fixture(scope="module")
def backend() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        with serving_bucket(BUCKET) as endpoint:
            yield bucket_url(endpoint, f"{BUCKET}/plimsoll")


@pytest.fixture(scope="module")
def clusters(sandbox_home: Path) -> Iterator[list[Sandbox]]:
    """Three clusters with our CRDs and an Environment each; the last one has the Environment name of the first."""
    with ExitStack() as stack:
        found = []
        for number in range(3):
            sandbox = stack.enter_context(contextmanager(up_sandbox)(f"fleet{number}", karpenter=False))
            with closing(Kube(sandbox.kubeconfig)) as cluster:
                prepare_admission(cluster)
                cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "plimsoll-system"}})
                metadata = {"name": name_of(number)}
                cluster.apply({"apiVersion": API, "kind": "Environment", "metadata": metadata, "spec": {}})
            found.append(sandbox)
        yield found


def name_of(number: int) -> str:
    return f"prod-{number % 2}"


def settings_of(clusters: list[Sandbox], number: int, backend: str, folder: Path) -> ApplySettings:
    changes = {"backend": backend, "environment": name_of(number), "lease": LEASE, "shards": 1, "pre_started_shards": 0}
    return settings_for(clusters[number], folder / f"cluster-{number}", **changes)


@pytest.fixture(scope="module")
def written(clusters: list[Sandbox], backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Capacity of the first two clusters in their states."""
    folder = tmp_path_factory.mktemp("fleet")
    for number in range(2):
        with a_writer(settings_of(clusters, number, backend, folder)) as writer:
            writer.apply(creating(a_deployment("serve"), a_deployment("other")))
    return folder


def plimsoll(clusters: list[Sandbox], number: int, *arguments: str, backend: str) -> "subprocess.CompletedProcess[str]":
    environ = {**os.environ, **clusters[number].environ(), "PULUMI_BACKEND_URL": backend}
    command = [sys.executable, "-m", "plimsoll", *arguments]
    return subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def test_a_state_is_used_by_its_own_cluster_only(clusters: list[Sandbox], written: Path, backend: str) -> None:
    with pytest.raises(OtherClusterError) as refused, a_writer(settings_of(clusters, 2, backend, written)):
        pass
    uids = []
    for number in (0, 2):
        with closing(Kube(clusters[number].kubeconfig)) as cluster:
            uids.append((cluster.get("v1", "Namespace", "kube-system") or {})["metadata"]["uid"])
    assert all(uid in str(refused.value) for uid in uids), "both are named"
    with a_writer(settings_of(clusters, 0, backend, written)) as writer:
        assert sorted(each.key.name for each in writer.resources()) == ["other", "serve"]
    with closing(Kube(clusters[0].kubeconfig)) as cluster:
        assert cluster.get("apps/v1", "Deployment", "serve") is not None


def test_a_fleet_is_one_table(clusters: list[Sandbox], written: Path, backend: str, tmp_path: Path) -> None:
    listed: list[dict[str, Any]] = [
        {"name": f"cluster-{number}", "kubeconfig": str(each.kubeconfig)} for number, each in enumerate(clusters)
    ]
    listed.append({"name": "away", "kubeconfig": "away.yaml"})
    away = yaml.safe_load(clusters[0].kubeconfig.read_text())
    away["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    (tmp_path / "away.yaml").write_text(yaml.safe_dump(away))
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump({"clusters": listed}))
    done = plimsoll(clusters, 0, "status", "--fleet", str(tmp_path / "fleet.yaml"), "-o", "json", backend=backend)
    assert done.returncode == 0, done.stderr
    rows = {row["cluster"]: row for row in json.loads(done.stdout)}
    assert [row["environment"] for row in rows.values() if not row["error"]] == ["prod-0", "prod-1", "prod-0"]
    assert rows["cluster-1"]["version"]
    assert rows["cluster-1"]["lastDelta"]
    assert rows["cluster-2"]["lastDelta"] == ""
    assert "127.0.0.1:9" in rows["away"]["error"]
    text = plimsoll(clusters, 0, "status", "--fleet", str(tmp_path / "fleet.yaml"), backend=backend)
    assert text.returncode == 0
    assert "cluster-1" in text.stdout
    assert rows["away"]["error"] in text.stdout, "below the table, whole"


def test_drift_is_reported_and_nothing_is_written(clusters: list[Sandbox], written: Path, backend: str) -> None:
    def drift() -> tuple[int, dict[str, dict[str, Any]]]:
        done = plimsoll(clusters, 1, "drift", "-o", "json", backend=backend)
        assert done.returncode in (0, 2), done.stderr
        found = [each for each in json.loads(done.stdout) if each["stack"]]
        return done.returncode, {each["object"].rpartition("/")[2]: each for each in found}

    _, before = drift()
    assert before == {}
    with closing(Kube(clusters[1].kubeconfig)) as cluster:
        image = [{"name": "serve", "image": "registry.example/other:2"}]
        cluster.patch("apps/v1", "Deployment", "serve", {"spec": {"template": {"spec": {"containers": image}}}})
        made = cluster.get("apps/v1", "Deployment", "other") or {}
        cluster.delete("apps/v1", "Deployment", "other")
        stranger = {**made, "metadata": {"name": "stranger", "namespace": "default"} | {
            "labels": made["metadata"]["labels"]
        }}  # fmt: skip
        cluster.apply({key: stranger[key] for key in ("apiVersion", "kind", "metadata", "spec")})
        code, found = drift()
        assert code == 2
        assert {name: each["drift"] for name, each in found.items()} == {
            "serve": "Changed",
            "other": "Gone",
            "stranger": "Unknown",
        }
        assert found["serve"]["fields"] == ["spec.template.spec.containers[0].image"]
        assert cluster.get("apps/v1", "Deployment", "stranger") is not None


def test_drift_of_another_clusters_state_is_refused(clusters: list[Sandbox], written: Path, backend: str) -> None:
    done = plimsoll(clusters, 2, "drift", backend=backend)
    assert done.returncode == 1
    assert "belongs to the cluster" in done.stderr
