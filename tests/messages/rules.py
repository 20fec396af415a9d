"""Manifests that break each policy rule."""

from collections.abc import Iterator
from typing import Any, Final

from plimsoll.cluster.queues import check_queues
from plimsoll.model.meta import Finding
from plimsoll.policy import RULES
from tests.claims.objects import a_claim, a_class, asked
from tests.policy_rules.manifests import (
    GPU,
    Manifest,
    a_deployment,
    a_kaito_workspace,
    a_node_pool,
    a_pod,
    a_queue,
    a_reservation,
    a_trigger,
    an_environment,
    an_inference_set,
    findings,
    with_path,
)
from tests.policy_rules.test_claims import a_driver, a_node_class, a_pool_of_claims, a_profile
from tests.policy_rules.trainings import a_job, a_runtime
from tests.queues.manifests import amounts, pod, pod_group, queue

BYO: Final = an_environment(nodeAutoProvisioning="disabled")
NAP: Final = an_environment(nodeAutoProvisioning="enabled")
STATIC: Final = an_environment(nodeAutoProvisioning="enabled", provisioner="static-nodepool")
TYPE: Final = "Standard_NC24ads_A100_v4"
CLAIM: Final[Manifest] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "claim"},
    "spec": {},
}
CHART: Final[Manifest] = {
    "apiVersion": "v2",
    "kind": "Chart.yaml",
    "metadata": {"name": "c"},
    "dependencies": [{"name": "gpu-operator", "version": "^25.3", "repository": "https://charts.example"}],
}
TEAM: Final[Manifest] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
SHARE: Final = {"gpu-fraction": "0.5"}
DIGESTS: Final = {"image-digest": {"options": {"required": True}}}
EXEMPTION: Final = {
    "rule": "image-tag-pinned",
    "kind": "Pod",
    "until": "2026-06-30",
    "reason": "until the registry moves",
}


def _workspace(**spec: Any) -> Manifest:
    metadata = {"name": "phi", "namespace": "default"}
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Workspace", "metadata": metadata, "spec": spec}


def _serving(replicas: int, gpus: int) -> Manifest:
    return with_path(a_deployment(a_pod(gpus=gpus)), spec__replicas=replicas)


def _budget(rule: str, **options: Any) -> dict[str, Any]:
    return {rule: {"options": options}}


def _allowed(**entry: Any) -> Manifest:
    return an_environment(nodeAutoProvisioning="enabled", access=[{"namespaces": ["default"], **entry}])


LABELLED_NODE: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-NVL"}},
}
_INFERENCE: Final = {"preset": {"name": "phi-4"}}
_OF_KUBERNETES: Final = {"labelSelector": {"matchLabels": {"node-role.kubernetes.io/a": "b"}}}
_SERVED: Final = _workspace(resource={"instanceType": TYPE}, inference=_INFERENCE, queue="team")

_OF_WORKERS: Final = with_path(queue("w"), metadata__labels={"kai.scheduler/node-pool": "workers"})


def _findings() -> Iterator[Finding]:
    for manifests in (
        (_workspace(resorce={}, inference=_INFERENCE),),
        (_workspace(inference={**_INFERENCE, "template": {"spec": {"containers": []}}}),),
        (a_kaito_workspace(inference={}),),
        (a_kaito_workspace(tuning={"preset": {"name": "phi-4"}}),),
        (a_kaito_workspace(TYPE), BYO),
        (a_kaito_workspace(), NAP),
        (a_kaito_workspace(TYPE, resource__partition={"mode": "mig", "profile": "1g.10gb"}), NAP),
        (a_kaito_workspace(resource__labelSelector={}), BYO),
        (_workspace(resource={"instanceType": TYPE, **_OF_KUBERNETES}, inference=_INFERENCE), NAP),
        (a_kaito_workspace(resource__labelSelector={"matchLabels": {"kaito.sh/workspace": "a"}}),),
        (with_path(_SERVED, spec__inference={"template": {"metadata": {"labels": {"kaito.sh/a": "b"}}}}), NAP),
        (a_kaito_workspace(resource__preferredNodes=["a"], resource__count=3),),
        (a_kaito_workspace(resource__count=2, inference=None, tuning={"preset": {"name": "a"}}),),
        (CLAIM, STATIC),
        (a_job(), a_queue("team")),
        (a_runtime(policy={"kai": {"queueName": "team"}}), a_job({"scheduling.kai.io/queue": "team"})),
        (_SERVED, an_environment(nodeAutoProvisioning="enabled", access=[{"namespaces": ["other"]}])),
        (_SERVED, _allowed(queues=["shared"])),
        (_SERVED, _allowed(queues=[])),
        (_SERVED, _allowed(instanceTypes=["p5.48xlarge"])),
        (a_pod(gpus=1, labels={}),),
        (_workspace(resource={"labelSelector": {"matchLabels": {"a": "b"}}}, inference=_INFERENCE), a_queue("team")),
        (a_pod(SHARE, scheduler=None),),
        (a_pod(scheduler="volcano"),),
        *((a_pod({"gpu-fraction": value}),) for value in ("1.5", 0.5)),
        *((a_pod({"gpu-memory": value}),) for value in ("2Gi", 2000)),
        (a_pod({"gpu-fraction-num-devices": "2"}),),
        *((a_pod({**SHARE, "gpu-fraction-num-devices": value}),) for value in ("0", 2)),
        (a_pod({**SHARE, "gpu-memory": "2000"}),),
        (a_pod(SHARE, 1),),
        (with_path(a_pod(gpus=1), spec__nodeSelector={"nvidia.com/gpu.product": "H100"}), LABELLED_NODE),
        (a_trigger(spec__activeDeadlineSeconds=None),),
        (a_trigger(spec__nodeName="node-1"),),
        (a_trigger(spec__schedulerName="kai-scheduler"),),
        (a_trigger(metadata__name="a" * 64),),
        (a_trigger(metadata__namespace="kai-scale-adjust"),),
        (a_pod(namespace="kai-resource-reservation"),),
        (a_reservation(spec__nodeName=None),),
        (a_reservation(spec__containers__0__resources__limits={GPU: 2}),),
        (a_reservation(metadata__annotations={"karpenter.sh/do-not-disrupt": "true", **SHARE}),),
        (a_reservation(metadata__annotations={"karpenter.sh/do-not-disrupt": "10m"}),),
        (a_reservation(metadata__annotations={}),),
        (a_reservation(metadata__name="gpu-reservation-a"),),
        (a_reservation(metadata__namespace="default"),),
        (a_reservation(metadata__labels={"app": "kai-resource-reservation"}),),
        (a_node_pool(spec__template__metadata__annotations={"hash": "9f86d081884c7d659a2feaa0c55ad015"}),),
        (a_node_pool(spec__disruption__consolidateAfter="30s"),),
        (a_node_pool(spec__disruption__consolidateAfter=None),),
        (a_node_pool(gpu_limit=4),),
        (a_node_pool(spec__replicas=3, spec__limits={"nodes": 2}),),
        (a_node_pool(gpu_limit=12),),
        *(
            (an_environment(demand={"sharedDevices": [{"nodePool": name}]}), a_node_pool())
            for name in ("gpux", "other-nodes")
        ),
        (a_node_pool(spec__template__spec__taints=None),),
        (a_pod(image="nginx:latest"),),
        (a_claim("c", asked(1, "device.attributes['gpu.nvidia.com'].uuid == 'GPU-1'")),),
        (a_claim("c", asked(1, adminAccess=True)), TEAM),
        (a_class("mig.nvidia.com", "device.driver == 'gpu.nvidia.com'"), a_queue("team")),
        tuple(a_class(name, extended_resource=GPU) for name in ("a-gpu", "b-gpu")),
        (a_pool_of_claims(), a_profile("gpu.nvidia.com")),
        (a_node_class("memory"), a_driver("4")),
        (CHART,),
        (with_path(CHART, dependencies__0__version=None),),
        (an_environment(nodeAutoProvisioning="enabled", limits={"gpus": 10}), _serving(4, 4)),
    ):
        yield from findings(*manifests)
    yield from findings(a_pod(image="nginx:1.2.3"), rules=DIGESTS)
    yield from findings(_serving(4, 3), rules=_budget("gpu-budget", queues={"team": 11}))
    yield from findings(a_node_pool(gpu_limit=24), rules=_budget("gpu-budget", pools={"gpu": 16}))
    unlimited = a_node_pool(spec__limits=None)
    yield from findings(unlimited, rules=_budget("gpu-budget", pools={"gpu": 16}))
    yield from findings(an_inference_set("own.4xlarge"), rules=_budget("gpu-budget", environment=64))
    expensive = with_path(an_inference_set("p4d.24xlarge"), spec__replicas=2)
    prices = {"p4d.24xlarge": 32.5}
    yield from findings(expensive, rules=_budget("price-budget", environment=64, prices=prices))
    yield from findings(expensive, rules=_budget("price-budget", environment=64))
    yield from findings(a_pod(), exemptions=[EXEMPTION])
    yield from _of_queues()


def _of_queues() -> Iterator[Finding]:
    tree = (queue("research"), queue("training", "research"), queue("notebooks", "research"))
    for manifests in (
        (*tree, pod("w", "trainig")),
        (*tree, pod("w", "research")),
        (queue("a"), queue("a")),
        (queue("a", "b"), queue("b", "a")),
        (queue("a", "gone"), queue("b", "a")),
        (_OF_WORKERS, pod("p", "w")),
        (queue("a"), with_path(_OF_WORKERS, spec__parentQueue="a")),
        (_OF_WORKERS, a_node_pool()),
        (queue("p", gpu=amounts(4)), queue("a", "p", amounts(3)), queue("b", "p", amounts(2))),
        (queue("a", gpu=amounts(8, 4)),),
        (queue("a", gpu=amounts(-2, 4)),),
        (queue("a", resources=None),),
        (queue("a", resources={"gpu": amounts(2), "memory": amounts(-1)}),),
        (queue("a", priority="high"),),
        (queue("a", prio=1),),
        (queue("a", preemptMinRuntime="10"),),
        (queue("p", deleting=True), queue("c", "p")),
        (queue("p", deleting=True), pod_group("g", "p")),
    ):
        yield from check_queues(manifests)


def messages() -> dict[str, dict[str, Any]]:
    """By rule: what it requires, what to do where it is broken, and the messages of the findings."""
    found: dict[str, dict[str, None]] = {}
    for each in _findings():
        found.setdefault(each.rule, {})[f"{each.severity}: {each.message}"] = None
    return {
        rule.id: {"requires": rule.summary, "remedy": rule.remedy, "findings": list(found.get(rule.id, ()))}
        for rule in RULES.values()
    }
