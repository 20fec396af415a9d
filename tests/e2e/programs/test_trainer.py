"""From a TrainJob to its Pods with the real Trainer and the real JobSet controller, in queues of KAI."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from demo.working_copy import CHECKOUT
from plimsoll.cluster.queues import QueueTree, queue_uses, use_problem
from plimsoll.kube import RequestError
from plimsoll.model.kai import Queue
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.parts import part
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube
from tests.e2e.programs.stacks import POLICIES, Project
from tests.pages import copy_of_checkout, page

pytestmark = pytest.mark.e2e

TRAINER = "trainer.kubeflow.org/v1alpha1"
JOBSET = "jobset.x-k8s.io/v1alpha2"
NAMESPACE = "vision"
QUEUE = "kai.scheduler/queue"
STACK = "sandbox-training"
PARENTS = {"research": "", "vision": "research", "language": "research"}
"""Of each queue of the stack."""


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """The sandbox that the guide starts, with its name and settings."""
    made = Sandbox.named("default")
    made.up(karpenter=False, trainer=True, stop_with_caller=True)
    try:
        with closing(Kube(made.kubeconfig)) as cluster:
            # Made before anybody looked at queues.
            cluster.apply(a_runtime("by-hand", "gone"))
        yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def project(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The objects that the guide's commands create; its sandbox runs."""
    made = Project(sandbox, copy_of_checkout(tmp_path_factory.mktemp("training") / "plimsoll"))
    page("docs/guides/trainer.md").run(made.folder, timeout=300)
    return made


@pytest.fixture(scope="module")
def cluster(sandbox: Sandbox, project: Project) -> Iterator[Kube]:
    with closing(Kube(sandbox.kubeconfig)) as kube:
        # A policy counts a moment after it was made.
        probe = a_train_job("probe", queue="nobody")
        await_condition(lambda: "names Queue nobody" in kube.refusal(probe), message="TrainJobs are judged")
        yield kube


def a_runtime(name: str, queue: str, **more: Any) -> dict[str, Any]:
    """A runtime as it is written without Plimsoll."""
    pods = {"metadata": {"labels": {QUEUE: queue}}, "spec": {"containers": [{"name": "main", "image": "torch:1"}]}}
    jobs = [{"name": "node", "template": {"spec": {"template": pods}}}]
    return {
        "apiVersion": TRAINER,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"replicatedJobs": jobs}}, **more},
    }


def a_train_job(
    name: str, runtime: str = "ClusterTrainingRuntime/torch-research", queue: str | None = None, **spec: Any
) -> dict[str, Any]:
    kind, _, runtime_name = runtime.partition("/")
    metadata = {"name": name, "namespace": NAMESPACE} | ({"labels": {QUEUE: queue}} if queue is not None else {})
    reference = {"kind": kind, "name": runtime_name}
    return {"apiVersion": TRAINER, "kind": "TrainJob", "metadata": metadata, "spec": {"runtimeRef": reference, **spec}}


def allowed(cluster: Kube, manifest: dict[str, Any]) -> bool:
    return not cluster.refusal(manifest)


def pods_of(cluster: Kube, name: str) -> list[dict[str, Any]]:
    return cluster.list("v1", "Pod", NAMESPACE, f"jobset.sigs.k8s.io/jobset-name={name}")


def owner(manifest: dict[str, Any]) -> tuple[str, str]:
    (found,) = manifest["metadata"]["ownerReferences"]
    return found["kind"], found["name"]


def test_every_pod_of_a_train_job_is_in_the_queue_of_its_runtime(cluster: Kube) -> None:
    pods = await_condition(
        lambda: len(found := pods_of(cluster, "segment")) == 3 and found, message="two nodes and a dashboard"
    )
    assert {pod["metadata"]["labels"][QUEUE] for pod in pods} == {"vision"}
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"kai-scheduler"}
    # The way by which KAI finds the gang and makes its PodGroup.
    for pod in pods:
        kind, job_name = owner(pod)
        job = cluster.get("batch/v1", kind, job_name, NAMESPACE)
        assert job is not None
        assert owner(job) == ("JobSet", "segment")
    job_set = cluster.get(JOBSET, "JobSet", "segment", NAMESPACE)
    assert job_set is not None
    assert owner(job_set) == ("TrainJob", "segment")


def test_only_label_and_scheduler_are_added_for_kai(cluster: Kube) -> None:
    cluster.apply(a_train_job("plain", trainer={"numNodes": 2}))
    await_condition(lambda: len(pods_of(cluster, "plain")) == 2, message="two nodes")
    assert {pod["metadata"]["labels"][QUEUE] for pod in pods_of(cluster, "plain")} == {"language"}
    assert {pod["spec"]["schedulerName"] for pod in pods_of(cluster, "plain")} == {"kai-scheduler"}
    assert cluster.list("scheduling.run.ai/v2alpha2", "PodGroup") == []
    for pod in pods_of(cluster, "plain"):
        keys = {*pod["metadata"]["labels"], *pod["metadata"].get("annotations", {})}
        assert {key for key in keys if "kai" in key or "pod-group" in key} == {QUEUE}


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("nobody", "TrainJob refused names Queue nobody, which is not declared"),
        ("research", "TrainJob refused names Queue research, which has child queues and schedules nothing itself"),
    ],
)
def test_a_train_job_of_an_undeclared_queue_is_refused_at_admission(cluster: Kube, queue: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        cluster.apply(a_train_job("refused", queue=queue))
    assert words in caught.value.message
    assert "(known: language, vision)" in caught.value.message
    assert cluster.get(TRAINER, "TrainJob", "refused", NAMESPACE) is None


def test_a_train_job_of_a_runtime_with_a_deleted_queue_gets_no_pods(cluster: Kube) -> None:
    cluster.apply(a_train_job("older", "ClusterTrainingRuntime/by-hand"))

    def reported() -> list[str]:
        events = cluster.list("v1", "Event", NAMESPACE)
        return [each["message"] for each in events if each["involvedObject"]["name"] == "older"]

    refused = "JobSet older names Queue gone, which is not declared"
    await_condition(lambda: any(refused in each for each in reported()), message="Trainer was refused")
    assert pods_of(cluster, "older") == []
    # It is not what refuses a change of the runtime that leaves the queue as it is.
    assert cluster.refusal(a_runtime("by-hand", "gone", mlPolicy={"numNodes": 2})) == ""
    assert "names Queue other" in cluster.refusal(a_runtime("by-hand", "other"))


def test_a_runtime_of_an_undeclared_queue_is_refused_in_a_preview(project: Project) -> None:
    file = project.folder / "stacks" / f"Pulumi.{STACK}.yaml"
    declared = file.read_text()
    try:
        file.write_text(declared.replace("queue: vision", "queue: nobody"))
        output = project.preview(STACK, "--policy-pack", str(POLICIES), fails=True)
    finally:
        file.write_text(declared)
    reported = [line for line in output.splitlines() if "which is not declared" in line]
    assert any("torch-vision" in line for line in reported), output
    assert "Traceback" not in output


named = st.sampled_from([None, "vision", "language", "research", "nobody"])


def labelled(queue: str | None) -> dict[str, Any]:
    return {} if queue is None else {"metadata": {"labels": {QUEUE: queue}}}


@st.composite
def train_jobs(draw: Callable[[st.SearchStrategy[str | None]], str | None]) -> dict[str, Any]:
    changes = [{"targetJobs": [{"name": "node"}], **labelled(draw(named))}]
    return a_train_job("generated", queue=draw(named), podTemplateOverrides=changes)


@st.composite
def job_sets(draw: Callable[[st.SearchStrategy[str | None]], str | None]) -> list[dict[str, Any]]:
    """Replicated Jobs."""
    pods = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "torch:1"}]}}
    return [
        {"name": name, "template": {**labelled(draw(named)), "spec": {"template": {**labelled(draw(named)), **pods}}}}
        for name in ("a", "b")
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(train_job=train_jobs(), jobs=job_sets(), queue=named)
def test_cel_and_python_agree_on_objects_that_name_a_queue(
    cluster: Kube, train_job: dict[str, Any], jobs: list[dict[str, Any]], queue: str | None
) -> None:
    runtime = a_runtime("generated", "vision")
    runtime["spec"]["template"] = {**labelled(queue), "spec": {"replicatedJobs": jobs}}
    owned = [{"apiVersion": TRAINER, "kind": "TrainJob", "name": "generated", "uid": "0"}]
    metadata = {"name": "generated", "namespace": NAMESPACE, "ownerReferences": owned}
    job_set = {"apiVersion": JOBSET, "kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": jobs}}
    tree = QueueTree([Queue(name=name, spec={"parentQueue": parent}) for name, parent in PARENTS.items()])
    for manifest in (train_job, runtime, job_set):
        wrong = {use.queue for use in queue_uses(manifest) if use_problem(use.queue, tree, ())}
        reported = cluster.refusal(manifest)
        assert bool(reported) == bool(wrong), reported
        assert not reported or any(f"names Queue {each}" in reported for each in wrong)


def test_a_data_cache_is_in_the_queue_of_its_training(cluster: Kube) -> None:
    for file in ("topology", "cache", "training"):
        for manifest in yaml.safe_load_all((CHECKOUT / "examples" / "data-cache" / f"{file}.yaml").read_text()):
            if manifest["kind"] == "TrainJob":
                # Trainer's webhook looks for the runtime in a cache that a watch fills.
                await_condition(partial(allowed, cluster, manifest), message="Trainer knows the runtime")
            cluster.apply(manifest)

    def cache() -> list[dict[str, Any]]:
        return cluster.list("v1", "Pod", NAMESPACE, "leaderworkerset.sigs.k8s.io/name=images-cache")

    await_condition(lambda: len(cache()) == 4, message="a head and three workers")
    await_condition(lambda: len(pods_of(cluster, "segment-images")) == 2, message="two nodes")
    training = pods_of(cluster, "segment-images")
    assert {pod["metadata"]["labels"][QUEUE] for pod in cache() + training} == {"vision"}
    assert {pod["spec"]["schedulerName"] for pod in cache() + training} == {"kai-scheduler"}
    (term,) = training[0]["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    for pod in cache():
        assert term["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_a_trainer_with_the_field_for_kai_gets_it(cluster: Kube, project: Project) -> None:
    for name in ("trainingruntimes", "clustertrainingruntimes"):
        definition = yaml.safe_load((part("trainer").cached / "crds" / f"trainer.kubeflow.org_{name}.yaml").read_text())
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        policy = schema["properties"]["spec"]["properties"]["podGroupPolicy"]
        policy["properties"]["kaiScheduler"] = {"type": "object", "properties": {"queue": {"type": "string"}}}
        cluster.apply(definition)
    declared = yaml.safe_load((project.folder / "stacks" / f"Pulumi.{STACK}.yaml").read_text())["config"]
    for runtimes in ("clusterTrainingRuntimes", "trainingRuntimes"):
        for runtime in declared[f"plimsoll:{runtimes}"].values():
            del runtime["kaiSchedulerField"]
    project.declare(STACK, **{key.removeprefix("plimsoll:"): value for key, value in declared.items()})
    project.up(STACK, "--skip-preview")
    for kind, name, queue in (
        ("ClusterTrainingRuntime", "torch-research", "language"),
        ("TrainingRuntime", "torch-vision", "vision"),
    ):
        found = cluster.get(TRAINER, kind, name, NAMESPACE)
        assert found is not None
        assert found["spec"]["podGroupPolicy"] == {"kaiScheduler": {"queue": queue}}
        for job in found["spec"]["template"]["spec"]["replicatedJobs"]:
            assert job["template"]["spec"]["template"]["metadata"]["labels"][QUEUE] == queue
