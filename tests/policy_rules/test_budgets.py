"""Budgets for GPUs and prices, of the environment, queues and NodePools, over all objects together."""

import re
from typing import Any

import pytest

from tests.claims.objects import DRIVER, a_claim, a_class, a_template, asked
from tests.policy_rules.manifests import (
    GPU,
    Manifest,
    a_deployment,
    a_node_pool,
    a_pod,
    a_reservation,
    a_trigger,
    an_environment,
    an_inference_set,
    findings,
    with_path,
)

TYPE = "p4d.24xlarge"
"""8 GPUs."""


def over(*manifests: Manifest, rule: str = "gpu-budget", **options: Any) -> list[str]:
    found = findings(*manifests, rules={rule: {"options": options}})
    return [each.message for each in found if each.rule == rule]


def requested(manifest: Manifest) -> float:
    """GPUs that an object requests in the queue team."""
    (message,) = over(manifest, queues={"team": 0})
    return float(figures(message)[1][0])


def figures(message: str) -> tuple[str, list[str]]:
    """The object of a message and its numbers: amount, budget, excess."""
    subject, _, rest = message.partition(": ")
    return subject, re.findall(r"[0-9]+(?:\.[0-9]+)?", rest)


def serving(replicas: int, gpus: int = 1, queue: str = "team") -> Manifest:
    pod = a_pod(gpus=gpus, labels={"kai.scheduler/queue": queue})
    return with_path(a_deployment(pod), spec__replicas=replicas)


@pytest.mark.parametrize(("budget", "wrong"), [(12, False), (11, True)])
def test_the_workloads_of_a_queue(budget: int, wrong: bool) -> None:
    other = with_path(serving(100, queue="other"), metadata__name="other")
    text = over(serving(4, gpus=3), other, queues={"team": budget})
    assert [figures(each) for each in text] == ([("Queue team", ["12", "11", "1"])] if wrong else [])


def claiming(name: str, replicas: int = 1, **claim: str) -> Manifest:
    """A Deployment of the namespace `team` whose pods have a claim."""
    pod = with_path(a_pod(labels={"kai.scheduler/queue": "team"}), spec__resourceClaims=[{"name": "gpu", **claim}])
    made = with_path(a_deployment(pod), spec__replicas=replicas, metadata__name=name)
    return with_path(made, metadata__namespace="team")


ADMIN, EVERY = asked(2, adminAccess=True), {"deviceClassName": DRIVER, "allocationMode": "All"}
MIG, NETWORK = asked(3, of="mig.nvidia.com"), asked(4, of="dra.net")
EITHER = {"firstAvailable": [{"name": "a", **asked(2)}, {"name": "b", **asked(5)}]}


@pytest.mark.parametrize(
    ("requests", "counted"),
    [([asked(2)], 2), ([asked(1), asked(2)], 3), ([EVERY], 1), ([EITHER], 5), ([ADMIN], 0), ([MIG], 3), ([NETWORK], 0)],
)
def test_each_pod_counts_the_gpus_that_its_claims_ask_for(requests: list[Manifest], counted: int) -> None:
    """By the name of the class, or by the driver that its selectors name."""
    classes = (a_class(), a_class("mig.nvidia.com"), a_class("dra.net", "device.driver == 'dra.net'"))
    objects = (*classes, a_template("t", *requests), claiming("one", 4, resourceClaimTemplateName="t"))
    assert over(*objects, queues={"team": 4 * counted}) == []
    assert len(over(*objects, queues={"team": max(0, 4 * counted - 0.5)})) == bool(counted)
    assert over(*objects, a_template("t", asked(9), namespace="other"), queues={"team": 4 * counted}) == []


def test_a_claim_of_several_pods_and_workloads_counts_once() -> None:
    users = [claiming(name, 3, resourceClaimName="shared") for name in ("one", "two")]
    objects = (a_claim("shared", asked(2)), *users)
    assert over(*objects, queues={"team": 2}) == []
    assert len(over(*objects, queues={"team": 1})) == 1


def test_shares_count_as_fractions() -> None:
    share = {"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}
    pods = with_path(a_deployment(a_pod(share)), spec__replicas=4)
    assert over(pods, queues={"team": 2}) == []
    assert len(over(pods, queues={"team": 1.9})) == 1


@pytest.mark.parametrize(("fraction", "counted"), [("-50", 0), ("50", 1)])
def test_a_share_that_is_refused_counts_as_none_or_one_gpu(fraction: str, counted: int) -> None:
    labels = {"kai.scheduler/queue": "team"}
    whole, share = a_pod(gpus=2, labels=labels), a_pod({"gpu-fraction": fraction}, labels=labels)
    pods = whole, with_path(share, metadata__name="share")
    assert over(*pods, queues={"team": 2 + counted}) == []
    assert len(over(*pods, queues={"team": 1 + counted})) == 1


@pytest.mark.parametrize(("restart", "gpus"), [("Always", 10), (None, 8)], ids=["sidecar", "before the others"])
def test_init_containers_count_as_for_the_scheduler(restart: str | None, gpus: int) -> None:
    pod = a_pod(gpus=2, labels={"kai.scheduler/queue": "team"})
    first = {"name": "first", "resources": {"limits": {GPU: 8}}, **({"restartPolicy": restart} if restart else {})}
    pod["spec"]["initContainers"] = [first]
    assert over(pod, queues={"team": gpus}) == []
    assert len(over(pod, queues={"team": gpus - 1})) == 1


def test_a_template_below_any_key_counts() -> None:
    template = a_deployment(a_pod(gpus=1))["spec"]["template"]
    groups = {"worker-1": {"replicas": 2, "template": template}, "a.b/c": {"template": template}}
    custom = {"apiVersion": "example.com/v1", "kind": "Own", "metadata": {"name": "own"}, "spec": {"groups": groups}}
    assert over(custom, queues={"team": 3}) == []
    assert len(over(custom, queues={"team": 2})) == 1


@pytest.mark.parametrize("resource", ["amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"])
def test_whole_gpus_of_other_vendors_count(resource: str) -> None:
    container = {"name": "main", "image": "server", "resources": {"limits": {resource: "4"}}}
    pod = with_path(a_pod(labels={"kai.scheduler/queue": "team"}), spec__containers=[container])
    assert requested(with_path(a_deployment(pod), spec__replicas=3)) == 12


def test_the_limit_of_a_node_pool_counts_whatever_its_vendor() -> None:
    pool = with_path(a_node_pool(), spec__limits={"amd.com/gpu": "16"})
    assert [figures(each)[1] for each in over(pool, pools={pool["metadata"]["name"]: 8})] == [["16", "8", "8"]]


def test_limits_of_a_node_pool_of_several_vendors_add_up() -> None:
    pool = with_path(a_node_pool(), spec__limits={"amd.com/gpu": "8", GPU: "16"})
    assert [figures(each)[1] for each in over(pool, pools={pool["metadata"]["name"]: 8})] == [["24", "8", "16"]]


@pytest.mark.parametrize("resource", ["amd.com/gpu", "gpu.intel.com/xe", GPU])
def test_a_node_claim_of_a_type_that_the_catalog_lacks_counts_what_it_requests(resource: str) -> None:
    is_type = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["max-1550"]}
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "one", "labels": {"karpenter.sh/nodepool": "theirs"}},
        "spec": {"requirements": [is_type], "resources": {"requests": {resource: "8"}}},
    }
    assert over(claim, pools={"theirs": 8}) == []
    assert len(over(claim, pools={"theirs": 7})) == 1


def test_every_copy_of_a_job_set_counts() -> None:
    template = a_deployment(a_pod(gpus=1))["spec"]["template"]
    job = {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": template}}}
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "j"},
        "spec": {"replicatedJobs": [job]},
    }
    assert over(job_set, queues={"team": 6}) == []
    assert len(over(job_set, queues={"team": 5})) == 1


@pytest.mark.parametrize(
    ("job", "gpus"),
    [
        ({"parallelism": 10}, 10),
        ({"parallelism": 10, "completions": 1}, 1),
        ({"parallelism": 2, "completions": 10}, 2),
        ({"completions": 10}, 1),
    ],
    ids=str,
)
def test_a_job_counts_the_pods_that_run_at_once(job: Manifest, gpus: int) -> None:
    template = a_deployment(a_pod(gpus=1))["spec"]["template"]
    spec = {**job, "template": template}
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    assert requested(manifest) == gpus


@pytest.mark.parametrize(("leader", "gpus"), [(8, 48), (0, 32), (None, 48)], ids=str)
def test_a_group_counts_its_leader_and_its_workers(leader: int | None, gpus: int) -> None:
    def pods(devices: int) -> Manifest:
        template: Manifest = a_deployment(a_pod(gpus=devices))["spec"]["template"]
        return template

    group = {"size": 3, "workerTemplate": pods(8), **({} if leader is None else {"leaderTemplate": pods(leader)})}
    manifest = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "l"},
        "spec": {"replicas": 2, "leaderWorkerTemplate": group},
    }
    assert requested(manifest) == gpus


@pytest.mark.parametrize(("hosts", "gpus"), [(None, 17), (4, 65)], ids=str)
def test_each_host_of_a_replica_of_a_ray_cluster_counts(hosts: int | None, gpus: int) -> None:
    def pods(devices: int) -> Manifest:
        template: Manifest = a_deployment(a_pod(gpus=devices))["spec"]["template"]
        return template

    workers = {"groupName": "w", "replicas": 2, "template": pods(8), **({} if hosts is None else {"numOfHosts": hosts})}
    manifest = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "r"},
        "spec": {"headGroupSpec": {"template": pods(1)}, "workerGroupSpecs": [workers]},
    }
    assert requested(manifest) == gpus


def test_a_workspace_on_existing_nodes_counts_each_node_of_each_replica_in_its_queue() -> None:
    template = a_deployment(a_pod(gpus=8, labels={}))["spec"]["template"]
    inference = {"replicas": 2, "perReplicaNodeCount": 4, "template": template}
    workspace = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "w", "namespace": "research"},
        "spec": {"queue": "team", "inference": inference},
    }
    assert requested(workspace) == 64


def test_the_environments_own_limit_is_its_budget() -> None:
    environment = an_environment(nodeAutoProvisioning="enabled", limits={"gpus": 10})
    demand = with_path(an_inference_set(TYPE), spec__replicas=2)
    assert [figures(each) for each in over(environment, demand)] == [("Environment e", ["16", "10", "6"])]
    assert over(environment, demand, environment=16) == []


def test_nodes_and_their_pods_are_not_added() -> None:
    static = with_path(a_node_pool(TYPE), spec__replicas=2, spec__limits={"nodes": 2}, spec__disruption=None)
    assert over(static, serving(16), environment=16) == []
    assert len(over(static, serving(16), environment=15)) == 1


def test_pods_that_stand_for_capacity_do_not_count() -> None:
    assert over(a_trigger(), a_reservation(), environment=0) == []


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(16, []), (24, [("NodePool gpu", ["24", "16", "8"])]), (None, [("NodePool gpu", ["16", "16"])])],
)
def test_the_nodes_of_a_pool_stay_within_its_budget(limit: int | None, expected: list[tuple[str, list[str]]]) -> None:
    pool = with_path(a_node_pool(TYPE), spec__limits={GPU: limit} if limit else None)
    assert [figures(each) for each in over(pool, pools={"gpu": 16})] == expected


FAMILY = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["p5"]}
COUNT = {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "In", "values": ["4", "8"]}


@pytest.mark.parametrize("requirement", [FAMILY, COUNT], ids=["family", "count"])
def test_a_pool_without_instance_types_and_without_a_limit_is_unlimited(requirement: Manifest) -> None:
    pool = with_path(a_node_pool(TYPE), spec__limits=None, spec__template__spec__requirements=[requirement])
    (text,) = over(pool, pools={"gpu": 16})
    assert "unlimited" in text
    cpu = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m7i"]}
    plain = with_path(pool, spec__template__spec={"requirements": [cpu]})
    assert over(plain, pools={"gpu": 16}) == []


def test_a_static_pool_counts_the_largest_number_of_gpus_that_it_lists() -> None:
    pool = a_static_pool(2, COUNT)
    assert over(pool, pools={"gpu": 16}, environment=16) == []
    assert len(over(pool, pools={"gpu": 15}, environment=15)) == 2


def test_the_nodes_of_a_pool_are_not_added_to_it() -> None:
    claim = a_node_claim("gpu")
    limited = with_path(a_node_pool(TYPE), spec__limits={GPU: 16})
    assert over(limited, claim, pools={"gpu": 16}) == []
    assert len(over(limited, claim, environment=7)) == 1
    assert over(a_static_pool(2), claim, pools={"gpu": 16}, environment=16) == []
    assert len(over(a_static_pool(2), a_node_claim("other"), pools={"gpu": 16}, environment=16)) == 1
    assert over(claim, a_node_claim("gpu", "second"), pools={"gpu": 16}) == []
    assert len(over(claim, a_node_claim("gpu", "second"), pools={"gpu": 15})) == 1


def a_static_pool(replicas: int, *requirements: Manifest) -> Manifest:
    pool = with_path(a_node_pool(TYPE), spec__replicas=replicas, spec__limits=None, spec__disruption=None)
    return with_path(pool, spec__template__spec__requirements=list(requirements)) if requirements else pool


def a_node_claim(pool: str, name: str = "first") -> Manifest:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": pool}},
        "spec": {"requirements": a_node_pool(TYPE)["spec"]["template"]["spec"]["requirements"]},
    }


def test_prices() -> None:
    demand = with_path(an_inference_set(TYPE), spec__replicas=2)
    prices = {TYPE: 32.5}
    assert over(demand, rule="price-budget", environment=65, prices=prices) == []
    (text,) = over(demand, rule="price-budget", environment=64, prices=prices)
    assert figures(text)[1] == ["65.00", "64"]
    pool = a_node_pool(TYPE, gpu_limit=16)
    assert over(pool, rule="price-budget", pools={"gpu": 65}, prices=prices) == []
    assert len(over(pool, rule="price-budget", pools={"gpu": 64}, prices=prices)) == 1


def test_a_node_pool_with_a_type_without_a_price_has_no_price() -> None:
    pool = a_node_pool(TYPE, "p4de.24xlarge", gpu_limit=16)
    (priced,) = over(pool, rule="price-budget", pools={"gpu": 64}, prices={TYPE: 32.5, "p4de.24xlarge": 1})
    (unpriced,) = over(pool, rule="price-budget", pools={"gpu": 64}, prices={TYPE: 32.5})
    assert "65.00" in figures(priced)[1]
    assert figures(unpriced)[1] == ["64"]


def test_prices_come_from_the_environment_too() -> None:
    environment = an_environment(nodeAutoProvisioning="enabled", catalog={"prices": {TYPE: 32.5}})
    demand = with_path(an_inference_set(TYPE), spec__replicas=2)
    assert len(over(environment, demand, rule="price-budget", environment=64)) == 1


def test_an_unknown_price_is_a_finding() -> None:
    (text,) = over(an_inference_set(TYPE), rule="price-budget", environment=64)
    assert "without a known price" in text


def test_a_type_that_the_catalog_lacks_has_the_price_that_is_given() -> None:
    own = "own.large"
    demand = with_path(an_inference_set(own), spec__replicas=2)
    assert over(demand, rule="price-budget", environment=8, prices={own.upper(): 4}) == []
    (text,) = over(demand, rule="price-budget", environment=7, prices={own: 4})
    assert figures(text)[1] == ["8.00", "7"]
    (text,) = over(demand, rule="price-budget", environment=64)
    assert "without a known price" in text


OWN = "own.4xlarge"
"""4 GPUs, and not in the catalog."""


@pytest.mark.parametrize("kind", ["InferenceSet", "NodePool"])
def test_gpus_of_a_type_that_the_catalog_lacks_are_a_finding_until_the_option_has_them(kind: str) -> None:
    of_type = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [OWN]}
    demand = with_path(an_inference_set(OWN), spec__replicas=2)
    manifest = demand if kind == "InferenceSet" else a_static_pool(2, of_type)
    (text,) = over(manifest, environment=64)
    assert f"not known ({OWN})" in text
    assert over(manifest, environment=8, instanceTypes={OWN.upper(): 4}) == []
    (text,) = over(manifest, environment=7, instanceTypes={OWN: 4})
    assert figures(text)[1] == ["8", "7", "1"]


def test_the_controller_keeps_the_limit_of_an_environment_with_types_that_the_catalog_lacks() -> None:
    environment = an_environment(nodeAutoProvisioning="enabled", limits={"gpus": 10})
    assert over(environment, an_inference_set(OWN)) == []


def test_a_node_pool_tells_the_gpus_of_the_types_that_it_lists() -> None:
    labels = {"nvidia.com/gpu.count": "4"}
    pool = with_path(a_node_pool(OWN, gpu_limit=8), spec__template__metadata__labels=labels)
    demand = with_path(an_inference_set(OWN), spec__replicas=3)
    (text,) = over(pool, demand, environment=8)
    assert figures(text)[1] == ["12", "8", "4"]
    assert over(pool, demand, environment=12) == []


def test_a_node_claim_of_a_type_that_the_catalog_lacks_has_the_gpus_that_it_requests() -> None:
    claim = with_path(a_node_claim("gpu"), spec__resources={"requests": {GPU: "4"}})
    claim["spec"]["requirements"][0]["values"] = [OWN]
    assert over(claim, environment=4) == []
    assert len(over(claim, environment=3)) == 1


def test_the_template_of_a_workspace_has_the_gpus_that_its_type_does_not_tell() -> None:
    template = a_deployment(a_pod(gpus=4))["spec"]["template"]
    workspace = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "w", "namespace": "research"},
        "spec": {"resource": {"instanceType": OWN}, "inference": {"replicas": 2, "template": template}},
    }
    assert over(workspace, environment=8) == []
    assert len(over(workspace, environment=7)) == 1


def test_static_nodes_without_gpus_count_as_none() -> None:
    of_type = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m7i.large"]}
    pool = with_path(a_static_pool(2, of_type), spec__template__spec__taints=None)
    assert over(pool, environment=0) == []
