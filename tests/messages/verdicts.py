"""Snapshots whose verdicts show each reason with its messages and warnings."""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.model import InvalidObject, Snapshot, Verdict
from plimsoll.model.api import Workspace, WorkspaceRef
from plimsoll.plan import validate
from tests.builders import (
    NC24,
    V100,
    V100_MIB,
    a_node,
    a_node_pool,
    a_pod,
    a_snapshot,
    a_template,
    a_workspace,
    an_environment,
)

OLD = "2025-01-01T00:00:00Z"
TUNING: Final = {"preset": {"name": "phi-4"}, "method": "qlora", "input": {"image": "a"}, "output": {"image": "b"}}
SLICES: Final = {
    "nvidia.com/mig.strategy": "mixed",
    "nvidia.com/mig.config": "all-2g.24gb",
    "nvidia.com/mig.config.state": "success",
    "nvidia.com/mig-2g.24gb.count": "2",
    "nvidia.com/mig-2g.24gb.product": "NVIDIA-A100-SXM4-80GB-MIG-2g.24gb",
}


def _byo(*objects: Any, **environment: Any) -> Snapshot:
    return a_snapshot(*objects, environment=an_environment(**environment))


def _nap(*objects: Any, **environment: Any) -> Snapshot:
    return a_snapshot(*objects, environment=an_environment(nap=True, **environment))


def _read(**spec: Any) -> Workspace:
    given = {"resource": {"labelSelector": {"matchLabels": {"pool": "a"}}}, **spec}
    return Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": given})


def _adapted(**adapter: Any) -> Workspace:
    source = {"name": "law", "image": "registry.example/law:1"}
    adapters = [{"source": {**source, **adapter.pop("source", {})}, **adapter}]
    return _read(inference={"preset": {"name": "phi-4-mini-instruct"}, "adapters": adapters})


def _only(**allowed: Any) -> dict[str, Any]:
    return {"access": [{"namespaces": ["default"], **allowed}]}


def _on_slices(profile: str, gib: float | None = None, **fields: Any) -> Workspace:
    return a_workspace(partition={"mode": "mig", "profile": profile}, gpu_memory_gib=gib, **fields)


_TEMPLATE_WITH_RESERVED_LABELS: Final = a_template() | {"metadata": {"labels": {"plimsoll.dev/workspace": "other"}}}
_LLAMA: Final = "llama-3.3-70b-instruct"
_TWO: Final = [a_node("n-0"), a_node("n-1")]

SNAPSHOTS: Final[Mapping[str, Snapshot]] = {
    "BYO: a node that fits": _byo(a_workspace(gpu_memory_gib=16), a_node("n")),
    "BYO: fewer nodes than estimated": _byo(a_workspace(preset=_LLAMA), *_TWO),
    "BYO: less memory than estimated": _byo(a_workspace(preset="phi-4"), a_node("n", memory=28 * 1024)),
    "BYO: fewer nodes per replica than estimated": _byo(a_workspace(preset=_LLAMA, per_replica=2), *_TWO),
    "BYO: deprecated fields": _byo(
        _read(
            resource={"labelSelector": {"matchLabels": {"pool": "a"}}, "count": 3, "preferredNodes": ["gpu-7"]},
            inference={"preset": {"name": "phi-4-mini-instruct"}},
        ),
        a_node("n"),
    ),
    "BYO: GPU memory label in bytes": _byo(a_workspace(), a_node("n", memory=80 * 2**30)),
    "BYO: an unusable node beside a usable one": _byo(
        a_workspace(), a_node("up"), a_node("booting", ready=False, product=None, count=None)
    ),
    "BYO: nodes in use beside a free one": _byo(
        a_workspace(replicas=2), a_node("n"), a_node("m"), a_pod("job", node="n", devices=1)
    ),
    "BYO: nodes partitioned by MIG beside a whole one": _byo(
        a_workspace(), a_node("cut", product=None, count=None, memory=None, more_labels=SLICES), a_node("whole")
    ),
    "BYO: one MIG profile without a partition": _byo(
        a_workspace(gpu_memory_gib=9),
        a_node(
            "n",
            product="NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
            count=7,
            memory=9856,
            more_labels={"nvidia.com/mig.strategy": "single"},
        ),
    ),
    "NAP: an instance type that fits": _nap(a_workspace(instance_type=NC24, preset="phi-4")),
    "NAP: the labels of nodes differ from the catalog": _nap(
        a_workspace(instance_type=NC24), a_node("n", instance_type=NC24, memory=40960)
    ),
    "NAP: fewer nodes per replica than estimated": _nap(a_workspace(instance_type=NC24, preset=_LLAMA, per_replica=2)),
    "a Workspace that cannot be read": _byo().model_copy(
        update={
            "invalid_workspaces": (
                InvalidObject(ref=WorkspaceRef(namespace="default", name="ws"), message="spec.resorce: unknown field"),
            )
        }
    ),
    "NAP: a partition": _nap(
        _read(
            resource={"instanceType": NC24, "partition": {"mode": "mig", "profile": "1g.10gb"}},
            inference={"preset": {"name": "phi-4"}},
        )
    ),
    "NAP: tuning on two nodes": _nap(_read(resource={"instanceType": NC24, "count": 2}, tuning=TUNING)),
    "NAP: a selector that no new node meets": _nap(
        a_workspace(instance_type=NC24, selector={"kubernetes.io/os": "windows"})
    ),
    "NAP: reserved labels in a template": _nap(
        a_workspace(instance_type=NC24, template=_TEMPLATE_WITH_RESERVED_LABELS)
    ),
    "BYO: nodes per replica of a model that fits one": _byo(a_workspace(preset="phi-4", per_replica=2), a_node("n")),
    "BYO: a device count that is not a number": _byo(
        a_workspace(template=a_template(resources={"limits": {"nvidia.com/gpu": "some"}})), a_node("n")
    ),
    "BYO: nodes per replica beside a partition": _byo(
        _on_slices("2g.24gb", 16, per_replica=2), a_node("n", more_labels=SLICES)
    ),
    "BYO: an instance type": _byo(a_workspace(instance_type=NC24), a_node("n")),
    "BYO: a template with more GPUs than the nodes": _byo(
        a_workspace(template=a_template(resources={"limits": {"nvidia.com/gpu": "8"}})), a_node("n", allocatable=1)
    ),
    "NAP: a template with more GPUs than the instance type": _nap(
        a_workspace(instance_type=NC24, template=a_template(resources={"limits": {"nvidia.com/gpu": "8"}}))
    ),
    "NAP: no instance type": _nap(a_workspace()),
    "NAP: no instance type, one fits": _nap(
        a_workspace(preset="qwen2.5-coder-32b-instruct", replicas=2),
        a_node_pool("gpus", [NC24, "Standard_NC48ads_A100_v4"]),
        catalog={"prices": {NC24: 3.5, "Standard_NC48ads_A100_v4": 6}},
    ),
    "NAP: no instance type, none fits": _nap(
        a_workspace(preset="phi-4"), a_node_pool("small", ["Standard_NV36ads_A10_v5"])
    ),
    "NAP: no instance type, none fits the limits": _nap(a_workspace(preset="phi-4", replicas=3), limits={"nodes": 2}),
    "NAP: an unknown instance type": _nap(a_workspace(instance_type="Standard_NC24ads_A100_v3")),
    "NAP: an instance type without a node class": _nap(
        a_workspace(instance_type="metal-8", preset="phi-4"), a_node("n", instance_type="metal-8")
    ),
    "NAP: an instance type whose GPUs are unknown": _nap(
        a_workspace(instance_type="metal-8", preset="phi-4"), a_node_pool("metal", ["metal-8"])
    ),
    "BYO: no group of nodes serves": _byo(a_workspace(selector={}, preset="phi-4"), a_node("n", memory=16384)),
    "BYO: a reserved label in the selector": _byo(a_workspace(selector={"karpenter.sh/nodepool": "x"}), a_node("n")),
    "NAP: the selector names a node": _nap(a_workspace(instance_type=NC24, selector={"kubernetes.io/hostname": "one"})),
    "an unknown preset": _byo(a_workspace(preset="phi-4-mini-instuct"), a_node("n")),
    "tuning": _byo(_read(tuning=TUNING), a_node("n")),
    "a model of Hugging Face, without a hub": _byo(a_workspace(preset="acme/law-8b"), a_node("n")),
    "a model of Hugging Face that the hub does not have": _byo(
        a_workspace(preset="acme/law-8b"), a_node("n")
    ).model_copy(
        update={"hub_refusals": {"acme/law-8b": "acme/law-8b at https://huggingface.co: it has no config.json"}}
    ),
    "an adapter from URLs": _byo(_adapted(source={"image": None, "urls": ["https://example.org/law"]}), a_node("n")),
    "an adapter with a strength": _byo(_adapted(strength="0.5"), a_node("n")),
    "no node matches": _byo(a_workspace(), a_node("n", pool="b")),
    "only a node under deletion matches": _byo(a_workspace(), a_node("leaving", deleting=True)),
    "no node is Ready": _byo(a_workspace(), a_node("n", ready=False)),
    "every node is cordoned or tainted": _byo(
        a_workspace(), a_node("cordoned", cordoned=True), a_node("tainted", taints=["own"])
    ),
    "too few devices are allocatable": _byo(a_workspace(), a_node("worn", count=8, allocatable=7)),
    "every node is partitioned by MIG": _byo(
        a_workspace(), a_node("n", product=None, count=None, memory=None, more_labels=SLICES)
    ),
    "another MIG profile": _byo(
        _on_slices("3g.40gb"), a_node("n", product=None, count=None, memory=None, more_labels=SLICES)
    ),
    "a MIG configuration is pending": _byo(
        _on_slices("2g.24gb"), a_node("n", more_labels=SLICES | {"nvidia.com/mig.config.state": "pending"})
    ),
    "a part of GPUs that are shared": _byo(
        a_workspace(partition={"mode": "accelerator", "count": 1}),
        a_node(
            "n",
            count=2,
            more_labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"},
        ),
    ),
    "another pod uses the node": _byo(a_workspace(), a_node("n", count=4), a_pod("job", node="n", devices=2)),
    "another Workspace has the node": _byo(a_workspace(), a_workspace("sibling", created=OLD), a_node("n")),
    "a GPU label is missing": _byo(a_workspace(), a_node("n", product=None)),
    "a GPU label is not a number": _byo(a_workspace(), a_node("n", count="two")),
    "a MIG label is missing": _byo(_on_slices("1g.10gb+me"), a_node("n")),
    "nodes differ": _byo(a_workspace(), a_node("one"), a_node("other", product=V100, memory=V100_MIB)),
    "BYO: one GPU is too small": _byo(a_workspace(gpu_memory_gib=16), a_node("n", memory=8192)),
    "BYO: too few nodes for a replica": _byo(a_workspace(gpu_memory_gib=32, per_replica=2), a_node("n", memory=16384)),
    "BYO: a model that must fit one node": _byo(a_workspace(preset="phi-4"), a_node("n", memory=24576)),
    "BYO: a model that spans nodes": _byo(a_workspace(preset=_LLAMA), a_node("n")),
    "BYO: a MIG slice is too small": _byo(
        _on_slices("2g.24gb", 30), a_node("n", product=None, count=None, memory=None, more_labels=SLICES)
    ),
    "NAP: a model that must fit one node": _nap(a_workspace(instance_type="Standard_NV36ads_A10_v5", preset="phi-4")),
    "NAP: fewer nodes than the weights need": _nap(a_workspace(instance_type=NC24, preset=_LLAMA, per_replica=1)),
    "the namespace has no access": _byo(a_workspace(namespace="other"), a_node("n"), **_only()),
    "another queue": _byo(a_workspace(queue="team"), a_node("n"), **_only(queues=["shared"])),
    "no queue is allowed": _byo(a_workspace(queue="team"), a_node("n"), **_only(queues=[])),
    "another instance type": _nap(a_workspace(instance_type=NC24), **_only(instanceTypes=["p5.48xlarge"])),
    "BYO: another NodePool": _byo(
        a_workspace(), a_node("n", more_labels={"karpenter.sh/nodepool": "mine"}), **_only(nodePools=["other"])
    ),
    "NAP: another NodePool": _nap(
        a_workspace(instance_type=NC24), a_node_pool("mine", [NC24]), **_only(nodePools=["other"])
    ),
    "the Environment's limit of nodes": _nap(a_workspace(instance_type=NC24, replicas=3), limits={"nodes": 2}),
    "the Environment's limit of GPUs": _nap(a_workspace(instance_type=NC24, replicas=3), limits={"gpus": 2}),
    "the Workspace's limit of nodes": _nap(
        _read(
            resource={"instanceType": NC24, "nodeCountLimit": 2},
            inference={"preset": {"name": "phi-4-mini-instruct"}, "replicas": 3},
        )
    ),
    "the GPUs of a namespace": _byo(a_workspace(), a_node("n", count=4), **_only(gpus=2)),
}
"""Snapshots by scenario; the messages are those of the Workspace `ws`."""


def messages() -> dict[str, dict[str, Any]]:
    """By reason and scenario: the message, with the warnings where there are any."""
    found: dict[str, dict[str, Any]] = {}
    for scenario, snapshot in SNAPSHOTS.items():
        verdict = _of_ws(snapshot)
        text: Any = verdict.message
        if verdict.warnings:
            text = {"message": verdict.message, "warnings": list(verdict.warnings)}
        found.setdefault(verdict.reason.value, {})[scenario] = text
    return found


def _of_ws(snapshot: Snapshot) -> Verdict:
    (verdict,) = [each for each in validate(snapshot) if each.workspace.name == "ws"]
    return verdict
