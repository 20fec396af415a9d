"""The examples are valid by the CRDs of their controllers and agree with their pages."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cluster.queues import check_queues
from plimsoll.sandbox.parts import part
from tests.components.test_upstream_schemas import assert_valid
from tests.stacks.test_environment import declare

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RACK = "cloud.provider.com/topology-rack"

_DEFINITIONS = {
    "TrainJob": ("trainer", "trainer.kubeflow.org_trainjobs.yaml"),
    "TrainingRuntime": ("trainer", "trainer.kubeflow.org_trainingruntimes.yaml"),
    "ClusterTrainingRuntime": ("trainer", "trainer.kubeflow.org_clustertrainingruntimes.yaml"),
    "LeaderWorkerSet": ("lws", "leaderworkerset.x-k8s.io_leaderworkersets.yaml"),
    "Queue": ("kai", "scheduling.run.ai_queues.yaml"),
    "Topology": ("kai", "kai.scheduler_topologies.yaml"),
}


def documents(folder: str) -> dict[tuple[str, str], dict[str, Any]]:
    """(kind, name) of each object to its manifest."""
    files = sorted((EXAMPLES / folder).glob("*.yaml"))
    found = [each for file in files for each in yaml.load_all(file.read_text(), yaml.CSafeLoader)]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


TRAINER, CACHE = documents("trainer"), documents("data-cache")


@pytest.mark.parametrize(("kind", "name"), [key for key in (*TRAINER, *CACHE) if key[0] in _DEFINITIONS])
def test_each_object_is_valid_by_its_crd(kind: str, name: str) -> None:
    of, file = _DEFINITIONS[kind]
    assert_valid(part(of).cached / "crds" / file, {**TRAINER, **CACHE}[kind, name])


def test_named_queues_exist() -> None:
    assert check_queues([*TRAINER.values(), *CACHE.values()]) == ()


@pytest.mark.parametrize("kind", ["TrainingRuntime", "ClusterTrainingRuntime"])
def test_the_runtimes_equal_those_of_the_stack(kind: str) -> None:
    written = {name: (each["metadata"]["labels"], each["spec"]) for (of, name), each in TRAINER.items() if of == kind}
    made = {
        name: (each["metadata"]["labels"], each["spec"])
        for (of, name), each in declare("sandbox-training").items()
        if of == kind
    }
    assert written == made


def test_the_queues_are_those_of_the_stack() -> None:
    made = declare("sandbox-training")
    for key, queue in TRAINER.items():
        if key[0] == "Queue":
            assert made[key]["spec"] == queue["spec"]


def test_the_training_has_an_affinity_to_its_cache() -> None:
    levels = [level["nodeLabel"] for level in CACHE["Topology", "cluster"]["spec"]["levels"]]
    cache = CACHE["LeaderWorkerSet", "images-cache"]
    for gang in (cache, CACHE["TrainJob", "segment-images"]):
        annotations = gang["metadata"]["annotations"]
        assert annotations["kai.scheduler/topology"] == "cluster"
        assert annotations["kai.scheduler/topology-required-placement"] == RACK
        assert RACK in levels
    (job,) = CACHE["TrainingRuntime", "torch-beside-images"]["spec"]["template"]["spec"]["replicatedJobs"]
    pods = job["template"]["spec"]["template"]
    (term,) = pods["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "topologyKey": RACK,
        "labelSelector": {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": cache["metadata"]["name"]}},
    }
    templates = cache["spec"]["leaderWorkerTemplate"]
    for template in (pods, templates["leaderTemplate"], templates["workerTemplate"]):
        assert template["metadata"]["labels"]["kai.scheduler/queue"] == "vision"
        assert template["spec"]["schedulerName"] == "kai-scheduler"
