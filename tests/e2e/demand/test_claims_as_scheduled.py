"""The real scheduler as oracle: for random slices and claims, as many pods have a place in the plan as it binds."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from plimsoll.plan.demand import DemandPlanner
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.claims.objects import (
    DRIVER,
    Manifest,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_slice,
    a_template,
    asked,
    snapshot_of,
)
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e

CASES: Final = int(os.environ.get("CLAIM_CASES", "60"))
SEED: Final = int(os.environ.get("SEED", "1"))
ATTRIBUTES: Final = f"device.attributes['{DRIVER}']"
MEMORY: Final = f"device.capacity['{DRIVER}'].memory"
PRODUCTS: Final = {
    "NVIDIA L4": ("Ada Lovelace", "8.9.0", "23034Mi"),
    "Tesla T4": ("Turing", "7.5.0", "15360Mi"),
    "NVIDIA A100-SXM4-80GB": ("Ampere", "8.0.0", "80Gi"),
}
SELECTORS: Final = (
    f"{ATTRIBUTES}.productName == 'NVIDIA L4'",
    f"{ATTRIBUTES}.productName.lowerAscii().matches('^.*(l4|t4)$')",
    f"{ATTRIBUTES}.architecture in ['Ampere', 'Turing']",
    f"{MEMORY}.compareTo(quantity('20Gi')) >= 0",
    f"{MEMORY}.isLessThan(quantity('40Gi'))",
    f"{ATTRIBUTES}.cudaComputeCapability.isGreaterThan(semver('8.0.0'))",
    f"{ATTRIBUTES}.cudaComputeCapability.major() == 8",
    f"cel.bind(gpu, {ATTRIBUTES}, gpu.type == 'gpu' && gpu.productName.startsWith('NVIDIA'))",
    f"has({ATTRIBUTES}.tier) && {ATTRIBUTES}.tier == 'gold'",
    f"{ATTRIBUTES}.tier == 'gold'",
    "device.attributes['dra.net'].rdma",
    "!('rdma' in device.attributes['dra.net'])",
)


CONSTRAINTS: Final = ("matchAttribute", "distinctAttribute")


class Case(NamedTuple):
    name: str
    manifests: tuple[Manifest, ...]
    """Nodes, slices and a template."""
    pods: tuple[Manifest, ...]


def a_case(number: int, choose: random.Random) -> Case:
    """One to three nodes, whose devices are alike on each, and one to four pods that claim the same."""
    name, manifests = f"case-{number:03}", list[Manifest]()
    for index in range(choose.randint(1, 3)):
        node = f"{name}-{index}"
        product = choose.choice(list(PRODUCTS))
        architecture, capability, memory = PRODUCTS[product]
        attributes = {"productName": product, "architecture": architecture, "type": "gpu"}
        if choose.random() < 0.6:
            attributes["tier"] = choose.choice(["gold", "silver"])
        versions = {"cudaComputeCapability": capability}
        own: list[Manifest] = [{"uuid": f"GPU-{at}"} if choose.random() < 0.9 else {} for at in range(4)]
        devices = [
            a_device(f"gpu-{each}", attributes | own[each], memory, versions) for each in range(choose.randint(1, 4))
        ]
        made = a_node(node)
        made["metadata"]["labels"]["case"] = name
        parts = choose.choice([1, 1, 2])
        slices = [a_slice(node, devices[part::parts], number=part, of=parts) for part in range(parts)]
        manifests += [made, *slices]
    constraints = [{choose.choice(CONSTRAINTS): f"{DRIVER}/{choose.choice(['architecture', 'uuid'])}"}]
    constraints *= choose.random() < 0.4
    requests = [_request(choose) for _ in range(choose.choice([1, 1, 1, 2]))]
    template = a_template(name, *requests, namespace="default", constraints=constraints)
    pods = tuple(
        a_pod(f"{name}-{each}", name, namespace="default", nodeSelector={"case": name})
        for each in range(choose.randint(1, 4))
    )
    return Case(name, (*manifests, template), pods)


def _request(choose: random.Random) -> Manifest:
    if choose.random() < 0.2:
        count = choose.randint(1, 2)
        several = [{"name": f"a{each}", **asked(count, choose.choice(SELECTORS))} for each in range(2)]
        return {"firstAvailable": several}
    if choose.random() < 0.15:
        return {"deviceClassName": DRIVER, "allocationMode": "All"}
    more: Manifest = (
        {"capacity": {"requests": {"memory": choose.choice(["10Gi", "30Gi"])}}} if choose.random() < 0.2 else {}
    )
    return asked(choose.randint(1, 3), *choose.sample(SELECTORS, choose.choice([0, 1, 1, 2])), **more)


def planned(case: Case, folder: Path) -> int | None:
    """How many of the pods have a place in the plan; None where what they claim is not planned."""
    snapshot = snapshot_of(folder, a_class(), *case.manifests, *case.pods)
    demands = DemandPlanner().plan(snapshot).demands
    if any("ClaimNotPlanned" in str(why) for demand in demands for why in demand.refused.values()):
        return None
    return sum(len(uids) for demand in demands for uids in demand.on_nodes.values())


@pytest.fixture
def cluster(kube: Callable[..., Kube], claims_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(claims_sandbox)
    yield cluster
    for pod in cluster.list("v1", "Pod", "default"):
        cluster.delete("v1", "Pod", pod["metadata"]["name"])
    for each in cluster.list("resource.k8s.io/v1", "ResourceSlice"):
        cluster.delete("resource.k8s.io/v1", "ResourceSlice", each["metadata"]["name"])
    for node in cluster.list("v1", "Node", selector="case"):
        cluster.delete("v1", "Node", node["metadata"]["name"])


def create(cluster: Kube, manifest: Manifest) -> None:
    if manifest["kind"] == "Node":
        manifest["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
        manifest["status"].pop("conditions")
    cluster.create({key: value for key, value in manifest.items() if key != "status" or manifest["kind"] == "Node"})


def ready(cluster: Kube) -> set[str]:
    return {
        node["metadata"]["name"]
        for node in cluster.list("v1", "Node", selector="case")
        if any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ()))
        and not node["spec"].get("taints")
    }


def tried(pod: dict[str, Any]) -> bool:
    """Whether the scheduler has bound the pod, or has found no place for it."""
    conditions = pod["status"].get("conditions", ())
    return bool(pod["spec"].get("nodeName")) or any(
        each["type"] == "PodScheduled" and each.get("reason") in ("Unschedulable", "SchedulerError")
        for each in conditions
    )


def test_as_many_pods_have_a_place_as_the_scheduler_binds(cluster: Kube, tmp_path: Path) -> None:
    choose = random.Random(SEED)
    cases = [a_case(number, choose) for number in range(CASES)]
    expected = {case.name: planned(case, tmp_path) for case in cases}
    cluster.apply(a_class())
    for case in cases:
        for manifest in case.manifests:
            create(cluster, manifest)
    nodes = {each["metadata"]["name"] for case in cases for each in case.manifests if each["kind"] == "Node"}
    await_condition(lambda: ready(cluster) == nodes, 60, "the nodes are Ready")
    for case in cases:
        for pod in case.pods:
            create(cluster, pod)
    await_condition(lambda: all(map(tried, cluster.list("v1", "Pod", "default"))), 120, "the scheduler has tried all")
    bound = dict.fromkeys(expected, 0)
    for pod in cluster.list("v1", "Pod", "default"):
        bound[pod["spec"]["nodeSelector"]["case"]] += bool(pod["spec"].get("nodeName"))
    compared = {name: number for name, number in expected.items() if number is not None}
    others = {name: (compared[name], bound[name]) for name in compared if compared[name] != bound[name]}
    assert not others, f"(planned, bound) with seed {SEED}: {others}"
    assert len(compared) > CASES // 2
    assert sum(map(bool, compared.values())) > CASES // 6
