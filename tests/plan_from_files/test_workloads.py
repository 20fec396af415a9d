"""Workloads in files stand for their pods, as if no scheduler had found a node for them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.model import Snapshot
from plimsoll.observe.files import snapshot_from_files

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HALF_METADATA = {"annotations": {"gpu-fraction": "0.5"}, "labels": {"kai.scheduler/queue": "of-template"}}
HALF = {
    "metadata": HALF_METADATA,
    "spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]},
}
JOB = {"parallelism": 2, "completions": 5, "template": HALF}


def workload(version: str, kind: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w", **metadata}, "spec": spec}


def read(folder: Path, *objects: dict[str, Any]) -> Snapshot:
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return snapshot_from_files([str(file)])


RAY = {
    "headGroupSpec": {"template": HALF},
    "workerGroupSpecs": [{"replicas": 2, "numOfHosts": 2, "template": HALF}, {"replicas": 0, "template": HALF}],
}
JOB_SET = {"replicatedJobs": [{"name": "a", "replicas": 3, "template": {"spec": JOB}}]}
LWS = {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "leaderTemplate": HALF, "workerTemplate": HALF}}
PODS = {
    "Deployment": (workload("apps/v1", "Deployment", {"replicas": 3, "template": HALF}), 3),
    "Deployment without replicas": (workload("apps/v1", "Deployment", {"template": HALF}), 1),
    "StatefulSet": (workload("apps/v1", "StatefulSet", {"replicas": 0, "template": HALF}), 0),
    "Job": (workload("batch/v1", "Job", JOB), 2),
    "CronJob": (workload("batch/v1", "CronJob", {"jobTemplate": {"spec": JOB}}), 2),
    "JobSet": (workload("jobset.x-k8s.io/v1alpha2", "JobSet", JOB_SET), 6),
    "LeaderWorkerSet": (workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", LWS), 6),
    "RayCluster": (workload("ray.io/v1", "RayCluster", RAY), 5),
    "RayJob": (workload("ray.io/v1", "RayJob", {"rayClusterSpec": RAY}), 5),
}


@pytest.mark.parametrize("kind", PODS)
def test_a_workload_stands_for_the_pods_that_run_at_once(kind: str, tmp_path: Path) -> None:
    manifest, number = PODS[kind]
    pods = read(tmp_path, manifest).pods
    assert len(pods) == number
    assert all(pod.unschedulable and pod.namespace == "default" for pod in pods)
    assert {pod.labels["kai.scheduler/queue"] for pod in pods} <= {"of-template"}


def test_the_queue_of_the_workloads_label_counts_first_as_for_kai(tmp_path: Path) -> None:
    labels = {"kai.scheduler/queue": "of-workload"}
    (pod,) = read(tmp_path, workload("apps/v1", "Deployment", {"template": HALF}, labels=labels)).pods
    assert pod.labels["kai.scheduler/queue"] == "of-workload"


def test_workloads_of_two_kinds_may_have_one_name_and_those_of_one_kind_not(tmp_path: Path) -> None:
    deployment, job = PODS["Deployment"][0], PODS["Job"][0]
    assert {pod.name for pod in read(tmp_path, deployment, job).pods} == {"w-0", "w-1", "w-2", "job-w-0", "job-w-1"}
    with pytest.raises(PlimsollError, match=r"document 2, line \d+: Deployment default/w is already in .*document 1"):
        read(tmp_path, deployment, deployment)


def test_names_are_made_up_as_the_apiserver_does(tmp_path: Path) -> None:
    job = {**PODS["Job"][0], "metadata": {"generateName": "train-"}}
    pod = {"apiVersion": "v1", "kind": "Pod", **HALF, "metadata": {**HALF_METADATA, "generateName": "p-"}}
    names = {each.name for each in read(tmp_path, job, job, pod, pod).pods}
    assert names == {"train-1-0", "train-1-1", "train-2-0", "train-2-1", "p-1", "p-2"}


@pytest.mark.parametrize(
    ("replicas", "bounds", "number"),
    [
        ({}, {"minReplicas": 2, "maxReplicas": 4}, 2),
        ({"replicas": 3}, {"minReplicas": 2, "maxReplicas": 4}, 3),
        ({"replicas": 9}, {"maxReplicas": 4}, 4),
        ({"replicas": 0}, {"minReplicas": 2, "maxReplicas": 4}, 0),
    ],
)
def test_an_autoscaler_bounds_the_replicas_of_its_target(
    replicas: dict[str, int], bounds: dict[str, int], number: int, tmp_path: Path
) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}
    autoscaler = workload("autoscaling/v2", "HorizontalPodAutoscaler", {"scaleTargetRef": target, **bounds})
    other = workload("apps/v1", "StatefulSet", {"template": HALF})
    pods = read(tmp_path, autoscaler, workload("apps/v1", "Deployment", {**replicas, "template": HALF}), other).pods
    assert len(pods) == number + 1


@pytest.mark.parametrize("replicas", ["2", -1, 1.5, True])
def test_a_number_that_the_apiserver_refuses_is_none_here(replicas: Any, tmp_path: Path) -> None:
    with pytest.raises(PlimsollError, match=r"Deployment default/w: spec\.replicas: must be a whole number"):
        read(tmp_path, workload("apps/v1", "Deployment", {"replicas": replicas, "template": HALF}))


@pytest.mark.parametrize(
    ("metadata", "field"),
    [("text", "metadata"), ({"name": "w", "namespace": ["a"]}, "metadata.namespace"), ({"name": {}}, "metadata.name"),
     ({"name": 7}, "metadata.name")],
)  # fmt: skip
def test_metadata_that_is_none_is_named(metadata: Any, field: str, tmp_path: Path) -> None:
    with pytest.raises(PlimsollError, match=rf"document 1, line 1: (Deployment .*)?{field}: "):
        read(tmp_path, {**PODS["Deployment"][0], "metadata": metadata})


def test_a_train_job_has_the_nodes_and_resources_that_its_runtime_and_itself_say() -> None:
    trainer = EXAMPLES / "trainer"
    files = [trainer / name for name in ("training-runtime.yaml", "train-jobs.yaml", "cluster-training-runtime.yaml")]
    found = snapshot_from_files(list(map(str, files)))
    devices = {pod.name: pod.devices("nvidia.com/gpu") for pod in found.pods}
    assert devices == {"segment-0": 8, "segment-1": 8, "captions-0": 4}


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (workload("apps/v1", "Deployment", {"template": HALF}, uid="u"), "with a UID"),
        (workload("batch/v1", "Job", {**JOB, "suspend": True}), "suspended"),
        (workload("trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "gone"}}), "TrainingRuntime"),
        (workload("example.com/v1", "Unknown", {"template": HALF}), "not used in planning"),
    ],
)
def test_what_stands_for_no_pods_is_said(manifest: dict[str, Any], why: str, tmp_path: Path) -> None:
    found = read(tmp_path, manifest)
    assert (found.pods, found.skipped) == ((), 1)
    assert why in found.warnings[0]


def test_a_workload_of_the_controller_is_not_expanded(tmp_path: Path) -> None:
    labels = {"plimsoll.dev/workspace": "ws"}
    found = read(tmp_path, workload("apps/v1", "Deployment", {"replicas": 1, "template": HALF}, labels=labels))
    assert (found.pods, len(found.workloads)) == ((), 1)


def test_too_many_pods_of_one_object_are_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(PlimsollError, match="Deployment default/w: it stands for 1000000000 pods"):
        read(tmp_path, workload("apps/v1", "Deployment", {"replicas": 10**9, "template": HALF}))


@pytest.mark.parametrize("command", ["demand", "plan"])
@pytest.mark.parametrize("option", [(), ("-f",)])
def test_files_with_nothing_that_is_read_are_no_success(command: str, option: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))
    assert CliRunner().invoke(app, [command, *option, str(file)], catch_exceptions=False).exit_code == 2


@pytest.mark.parametrize("command", [["demand"], ["plan"], ["queues", "check"], ["policy", "check"]])
def test_files_are_named_with_and_without_f_and_dash_is_standard_input(command: list[str]) -> None:
    file = EXAMPLES / "demand" / "cluster.yaml"
    runs = [[str(file)], ["-f", str(file)], ["-"], ["-f", "-"]]
    done = [CliRunner().invoke(app, [*command, *run], input=file.read_text(), catch_exceptions=False) for run in runs]
    assert len({(each.exit_code, each.stdout.replace(str(file), "standard input")) for each in done}) == 1


def test_demand_says_that_the_environment_has_no_provisioner() -> None:
    run = CliRunner().invoke(app, ["demand", str(EXAMPLES / "demand")], catch_exceptions=False)
    assert "spec.demand.provisioner of the Environment is none" in run.stdout
