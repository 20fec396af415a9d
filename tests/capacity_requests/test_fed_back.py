"""If the manifests that a plan creates are added to its input, the next plan requests nothing. They have no shard
label, UID or time."""

import json
from typing import Any

import pytest
import yaml

from plimsoll.model.cluster import Pod
from tests.capacity_requests.cluster import Cluster, at, demand_environment, node, pool, share_pod
from tests.command import plimsoll

PROVISIONERS = ("trigger-pod", "capacity-buffer", "provisioning-request")


def some_pods() -> list[Pod]:
    """Pods of three demands, one of which requires a zone and one is of another scheduler."""
    zone = {"topology.kubernetes.io/zone": "a"}
    other = [share_pod(f"other-{number}", schedulerName="tensor-fusion-scheduler") for number in range(3)]
    halves = [share_pod(f"share-{number:03}") for number in range(33)]
    return [*halves, *other, share_pod("zonal", "0.7", nodeSelector=zone)]


@pytest.mark.parametrize("provisioner", PROVISIONERS)
def test_manifests_as_they_are_created(provisioner: str) -> None:
    cluster = Cluster(pool(), *some_pods(), environment=demand_environment(provisioner))
    plan = cluster.plan(at(0))
    assert plan.creations
    cluster.requests = {(each.key.kind, each.key.name): each.manifest for each in plan.creations}
    again = cluster.plan(at(1))
    assert (again.creations, again.updates, again.deletions) == ((), (), ())
    later = cluster.plan(at(10_000))
    assert (later.creations, later.deletions) == ((), ()), "without a time there is no deadline"


@pytest.mark.parametrize("provisioner", PROVISIONERS)
def test_only_an_additional_pod_causes_a_request(provisioner: str) -> None:
    cluster = Cluster(pool(), *some_pods(), environment=demand_environment(provisioner))
    plan = cluster.plan(at(0))
    cluster.requests = {(each.key.kind, each.key.name): each.manifest for each in plan.creations}
    cluster.objects += [share_pod(f"more-{number}", "0.9") for number in range(16)]
    created = [each.manifest for each in cluster.plan(at(1)).creations if each.key.kind != "PodTemplate"]
    nodes = sum(_nodes(each) for each in created)
    assert nodes == 2


def _nodes(manifest: dict[str, Any]) -> int:
    spec = manifest["spec"]
    return int(spec.get("replicas") or sum(each["count"] for each in spec.get("podSets", ())) or 1)


def test_from_files() -> None:
    """`plimsoll plan -f` and `plimsoll demand -f` on what `plimsoll plan -f` creates."""
    documents = [*map(_manifest, some_pods()), _pool(), _environment()]
    first = _run("plan", documents)
    assert {each["kind"] for each in first["create"]} == {"Pod"}
    again = _run("plan", [*documents, *first["create"]])
    assert (again["create"], again["delete"]) == ([], [])
    summary = _run("demand", [*documents, *first["create"]])["summary"]
    assert (summary["nodes"], summary["refused"]) == (0, 0)
    assert summary["waitingForRequested"] == 37
    assert _run("demand", documents)["summary"]["nodes"] == len(first["create"])


def test_requests_without_their_environment_are_named() -> None:
    """They do not count, because the settings of the Environment decide how capacity is requested."""
    documents = [*map(_manifest, some_pods()), _pool()]
    first = _run("plan", [*documents, _environment()])
    found = _run("demand", [*documents, *first["create"]])
    assert found["summary"]["nodes"] == len(first["create"])
    (warning,) = [each for each in found["warnings"] if "do not count" in each]
    assert "Environment default is not in the files" in warning
    assert not [each for each in _run("demand", documents)["warnings"] if "do not count" in each]


def _run(command: str, documents: list[dict[str, Any]]) -> dict[str, Any]:
    done = plimsoll(command, "-f", "-", "--output", "json", given=yaml.dump_all(documents, Dumper=yaml.CSafeDumper))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _manifest(pod: Pod) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": dict(pod.annotations),
        },
        "spec": {
            "schedulerName": pod.scheduler_name,
            "nodeSelector": dict(pod.placement.node_selector),
            "containers": [{"name": "main"}],
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


def _pool() -> dict[str, Any]:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p4d.24xlarge"]}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {"template": {"spec": {"requirements": [requirement]}}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def _environment() -> dict[str, Any]:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "default"},
        "spec": {"demand": {"provisioner": "trigger-pod"}},
    }


def test_nodes_that_registered_before_the_next_plan_replace_the_requests() -> None:
    cluster = Cluster(pool(), *some_pods()[:-1])
    plan = cluster.plan(at(0))
    cluster.requests = {(each.key.kind, each.key.name): each.manifest for each in plan.creations}
    cluster.objects += [node(f"n{number}", at(30)) for number in range(3)]
    again = cluster.plan(at(31))
    assert not again.creations
