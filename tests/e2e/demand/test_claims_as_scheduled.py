"""The real scheduler as oracle: for random slices and claims, as many pods have a place in the plan as it binds, and
expressions select the devices that it says."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from plimsoll.kube import RequestError
from plimsoll.plan.demand import DemandPlanner
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.claims.expressions import EXPRESSIONS, Answer
from tests.claims.objects import (
    DRIVER,
    MIG,
    Manifest,
    a_class,
    a_device,
    a_mig_class,
    a_node,
    a_pod,
    a_slice,
    a_template,
    asked,
    divided,
    snapshot_of,
)
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e

CASES: Final = int(os.environ.get("CLAIM_CASES", "300"))
SEED: Final = int(os.environ.get("SEED", "1"))
COUNTED: Final = float(os.environ.get("CLAIM_COUNTERS", "0.2"))
"""How many of the cases are of GPUs in slices of MIG."""
ATTRIBUTES: Final = f"device.attributes['{DRIVER}']"
MEMORY: Final = f"device.capacity['{DRIVER}'].memory"
PARENT: Final = f"{DRIVER}/parentUUID"
NUMA: Final = "resource.kubernetes.io/numaNode"
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
    """One to three nodes, whose devices are alike on each, and one to six pods that claim the same."""
    name, manifests = f"case-{number:03}", list[Manifest]()
    if choose.random() < COUNTED:
        return _of_counters(name, choose)
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
        if choose.random() < 0.4:
            for device in devices:
                device["attributes"][NUMA] = {"int": choose.choice([0, 0, 1])}
        if choose.random() < 0.4:
            shared = _shared(choose, memory)
            devices = [device | shared for device in devices]
        made = a_node(node)
        made["metadata"]["labels"]["case"] = name
        parts = choose.choice([1, 1, 2])
        slices = [a_slice(node, devices[part::parts], number=part, of=parts) for part in range(parts)]
        manifests += [made, *slices]
    constraints = [{choose.choice(CONSTRAINTS): choose.choice([f"{DRIVER}/architecture", f"{DRIVER}/uuid", NUMA])}]
    constraints *= choose.random() < 0.4
    requests = [_request(choose) for _ in range(choose.choice([1, 1, 1, 2]))]
    template = a_template(name, *requests, namespace="default", constraints=constraints)
    return Case(name, (*manifests, template), _pods(name, choose.randint(1, 6)))


def _of_counters(name: str, choose: random.Random) -> Case:
    """One or two nodes, whose GPUs are whole or in slices of MIG, and up to nine pods that claim the same of them."""
    manifests, different = list[Manifest](), choose.random() < 0.4
    for index in range(choose.randint(1, 2)):
        made = a_node(f"{name}-{index}")
        made["metadata"]["labels"]["case"] = name
        gpu = choose.choice(["h100", "h100", "h100", "h200"] if different else ["h100", "h200"])
        manifests += [made, *divided(f"{name}-{index}", choose.randint(1, 2), gpu)]
    requests = [_of_profile(choose) for _ in range(choose.choice([1, 1, 1, 1, 2]))]
    if choose.random() < 0.5:
        requests = requests[:1] * len(requests)
    of_one = [{"matchAttribute": choose.choice([PARENT, PARENT, f"{DRIVER}/productName"])}]
    of_one *= choose.random() < 0.4
    if different:
        profiles = choose.choices(["1g.10gb", "1g.10gb", "1g.10gb+me", "1g.20gb", "2g.", "3g.", "4g."], k=3)
        requests = [_of_profile(choose, each, 1) for each in profiles[: choose.randint(2, 3)]]
        of_one = [{"matchAttribute": PARENT}]
    template = a_template(name, *requests, namespace="default", constraints=of_one)
    return Case(name, (*manifests, template), _pods(name, choose.randint(1, 9)))


def _of_profile(choose: random.Random, profile: str | None = None, count: int = 0) -> Manifest:
    """Some slices of a profile, or whole GPUs."""
    count = count or choose.choice([1, 1, 1, 2, 2, 3])
    every = ["", "1g.", "1g.10gb", "1g.18gb", "1g.10gb+me", "1g.20gb", "2g.", "3g.", "4g.", "7g."]
    profile = choose.choice(every) if profile is None else profile
    chosen = f"{ATTRIBUTES}.profile" + (f".startsWith('{profile}')" if profile.endswith(".") else f" == '{profile}'")
    return asked(count, chosen, of=MIG) if profile else asked(min(count, 2))


def _pods(name: str, number: int) -> tuple[Manifest, ...]:
    return tuple(
        a_pod(f"{name}-{each}", name, namespace="default", nodeSelector={"case": name}) for each in range(number)
    )


def _shared(choose: random.Random, memory: str) -> Manifest:
    """What makes a device one of which several claims have parts: of its memory by some policy, or of a number."""
    policy: Manifest | None = choose.choice(
        [
            None,
            {"default": memory},
            {"default": "4Gi"},
            {"default": "4Gi", "validValues": ["2Gi", "4Gi", "7Gi", "12Gi"]},
            {"default": "1Gi", "validRange": {"min": "1Gi", "max": "13Gi", "step": "3Gi"}},
            {"default": "2Gi", "validRange": {"min": "2Gi"}},
            {"default": "0", "validRange": {"min": "0", "step": "1Mi"}},
        ]
    )
    capacity: Manifest = {"memory": {"value": memory, **({"requestPolicy": policy} if policy else {})}}
    if choose.random() < 0.3:
        shares = {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}}
        capacity["shares"] = {"value": "4", "requestPolicy": shares}
    if choose.random() < 0.4:
        cores = choose.choice([{"min": "10", "step": "10"}, {"min": "5", "max": "80", "step": "5"}, {"min": "1"}])
        capacity["cores"] = {"value": "100", "requestPolicy": {"default": cores["min"], "validRange": cores}}
    return {"allowMultipleAllocations": True, "capacity": capacity}


def _request(choose: random.Random) -> Manifest:
    if choose.random() < 0.2:
        count = choose.randint(1, 2)
        several = [{"name": f"a{each}", **asked(count, choose.choice(SELECTORS))} for each in range(2)]
        return {"firstAvailable": several}
    if choose.random() < 0.15:
        return {"deviceClassName": DRIVER, "allocationMode": "All"}
    amounts = choose.choice(
        [
            {"memory": "10Gi"},
            {"memory": "30Gi"},
            {"memory": "3000Mi"},
            {"memory": "5Gi"},
            {"memory": "5G", "shares": "2"},
            {"memory": "2Gi", "cores": "33"},
            {"memory": "6Gi", "cores": "21"},
            {"cores": "81"},
        ]
    )
    more: Manifest = {"capacity": {"requests": amounts}} if choose.random() < 0.4 else {}
    return asked(choose.choice([1, 1, 2, 3]), *choose.sample(SELECTORS, choose.choice([0, 1, 1, 2])), **more)


def planned(case: Case, folder: Path) -> int | None:
    """How many of the pods have a place in the plan; None where what they claim is not planned."""
    snapshot = snapshot_of(folder, a_class(), a_mig_class(), *case.manifests, *case.pods)
    demands = DemandPlanner().plan(snapshot).demands
    if any("ClaimNotPlanned" in str(why) for demand in demands for why in demand.refused.values()):
        return None
    return sum(len(uids) for demand in demands for uids in demand.on_nodes.values())


def partly_planned(case: Case, folder: Path) -> bool:
    """Whether what the pods claim is not planned on one of the nodes: others of them may be bound there."""
    nodes = [each["metadata"]["name"] for each in case.manifests if each["kind"] == "Node"]
    alone = ([each for each in case.manifests if _node_of(each) in ("", node)] for node in nodes)
    return any(planned(case._replace(manifests=tuple(manifests)), folder) is None for manifests in alone)


def _node_of(manifest: Manifest) -> str:
    """The node that the object is, or is of; empty for others."""
    name: str = manifest["metadata"]["name"] if manifest["kind"] == "Node" else manifest["spec"].get("nodeName", "")
    return name


def planned_after(case: Case, cluster: Kube, folder: Path) -> int | None:
    """How many of the pods that the scheduler left have a place in the plan, beside the claims of those that it bound.
    No pod has run: none has used up what its claim has."""
    pods = [each for each in cluster.list("v1", "Pod", "default") if each["spec"]["nodeSelector"]["case"] == case.name]
    names = {each["metadata"]["name"] for each in pods}
    claims = [
        each
        for each in cluster.list("resource.k8s.io/v1", "ResourceClaim", "default")
        if each["metadata"]["ownerReferences"][0]["name"] in names
    ]
    objects = [each | {"apiVersion": "v1", "kind": "Pod"} for each in pods]
    objects += [each | {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"} for each in claims]
    return planned(Case(case.name, (*case.manifests, *objects), ()), folder)


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


def bound_in(cluster: Kube) -> Counter[str]:
    """The number of bound pods of each case."""
    pods = cluster.list("v1", "Pod", "default")
    return Counter(pod["spec"]["nodeSelector"]["case"] for pod in pods if pod["spec"].get("nodeName"))


def test_as_many_pods_have_a_place_as_the_scheduler_binds(cluster: Kube, tmp_path: Path) -> None:
    choose = random.Random(SEED)
    cases = [a_case(number, choose) for number in range(CASES)]
    expected = {case.name: planned(case, tmp_path) for case in cases}
    cluster.apply(a_class())
    cluster.apply(a_mig_class())
    for case in cases:
        for manifest in case.manifests:
            create(cluster, manifest)
    nodes = {each["metadata"]["name"] for case in cases for each in case.manifests if each["kind"] == "Node"}
    await_condition(lambda: ready(cluster) == nodes, 120, "the nodes are Ready")
    for case in cases:
        for pod in case.pods:
            create(cluster, pod)
    await_condition(lambda: all(map(tried, cluster.list("v1", "Pod", "default"))), 240, "the scheduler has tried all")
    compared = {name: number for name, number in expected.items() if number is not None}
    # The scheduler tries again what failed for a moment, such as by a conflict of two writers.
    with suppress(AssertionError):
        await_condition(lambda: Counter(compared) <= bound_in(cluster), 120, "all that have a place are bound")
    bound = bound_in(cluster)
    partly = {case.name for case in cases if partly_planned(case, tmp_path)}
    others = {
        name: (number, bound[name])
        for name, number in compared.items()
        if (number > bound[name] if name in partly else number != bound[name])
    }
    assert not others, f"(planned, bound) with seed {SEED}: {others}"
    exact = [case for case in cases if compared.get(case.name) and case.name not in partly]
    left = [case for case in exact if bound[case.name] < len(case.pods)][: CASES // 6]
    assert left
    assert {case.name: planned_after(case, cluster, tmp_path) for case in left} == {case.name: 0 for case in left}
    assert len(compared) > CASES // 2
    assert sum(map(bool, compared.values())) > CASES // 6


def answer_of(pod: dict[str, Any]) -> Answer:
    """What the scheduler said of the selector of a pod that it has tried."""
    if pod["spec"].get("nodeName"):
        return "selects"
    (reason,) = (each["reason"] for each in pod["status"]["conditions"] if each["type"] == "PodScheduled")
    return "ends" if reason == "SchedulerError" else "not"


def test_expressions_have_the_answers_of_the_scheduler(cluster: Kube) -> None:
    """Each is of a claim of its own, for one of the devices of a node, which are alike."""
    namespace = "expressions"
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    cluster.apply(a_class())
    node = a_node(namespace, cpu="128", memory="256Gi")
    node["metadata"]["labels"]["case"] = namespace
    create(cluster, node)
    create(cluster, a_slice(namespace, [a_device(f"gpu-{at}") for at in range(len(EXPRESSIONS))]))
    await_condition(lambda: namespace in ready(cluster), 120, "the node is Ready")
    refused = dict[str, str]()
    for at, (expression, _) in enumerate(EXPRESSIONS):
        name = f"expression-{at:03}"
        try:
            create(cluster, a_template(name, asked(1, expression), namespace=namespace))
        except RequestError as error:
            refused[expression] = str(error)
        else:
            create(cluster, a_pod(name, name, namespace=namespace, nodeSelector={"case": namespace}))
    await_condition(lambda: all(map(tried, cluster.list("v1", "Pod", namespace))), 120, "the scheduler has tried all")

    def answers() -> dict[str, Answer]:
        pods = cluster.list("v1", "Pod", namespace)
        return {EXPRESSIONS[int(pod["metadata"]["name"][-3:])][0]: answer_of(pod) for pod in pods}

    # A pod may have been tried before the scheduler had seen the devices.
    with suppress(AssertionError):
        await_condition(lambda: answers() == dict(EXPRESSIONS), 120)
    said = answers()
    cluster.delete("v1", "Namespace", namespace)
    assert not refused
    assert said == dict(EXPRESSIONS)
