"""The foundation's roles are least privilege: no request of the controller is refused, and it uses every permission.

The requests are read from the audit log of the kube-apiserver.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import orjson
import pytest
import yaml

from plimsoll.components import CONTROLLER, CONTROLLER_FOR_DEMAND, CONTROLLER_IN_ITS_NAMESPACE, NAMESPACE
from plimsoll.labels import NODEPOOL, OWNER_NAMESPACE
from plimsoll.sandbox import IDENTITIES, Sandbox
from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.dra_driver import DRIVER, Devices, dra_driver
from tests.e2e.cluster.environments import await_seen, change_environment
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import (
    EIGHT_GPUS,
    ENVIRONMENT,
    TRIGGERS,
    add_pool,
    add_shares,
    declare_demand,
    gated,
    nodes_of,
    remove_shares,
)
from tests.model_hub.hub import a_hub

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
TYPE = "Standard_NC24ads_A100_v4"
CLAIMED = "m5.4xlarge"
CONTAINER = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
ASKS = ("trigger-pod", "capacity-buffer", "provisioning-request")


def _definition(group: str, version: str, kind: str) -> dict[str, Any]:
    """A cluster-scoped kind with any fields."""
    plural = "topologies" if kind == "Topology" else f"{kind.lower()}{'e' * kind.endswith('s')}s"
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": version, "served": True, "storage": True, "schema": anything}],
        },
    }


OPERATORS = (
    _definition("karpenter.k8s.aws", "v1", "EC2NodeClass"),
    _definition("karpenter.azure.com", "v1beta1", "AKSNodeClass"),
    _definition("kai.scheduler", "v1alpha1", "Topology"),
    _definition("kai.scheduler", "v1", "SchedulingShard"),
)
"""As on AWS and Azure, whose node classes say what nodes have, and as KAI's operator installs them."""
ON_CONFLICT = {
    "environments.plimsoll.dev get": "a status that somebody else has changed is read before it is written",
}
"""Permissions that are used only in a conflict of two writers, which a test cannot cause reliably."""


class Right(NamedTuple):
    namespace: str
    """Empty: in the whole cluster."""
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource}{f'.{self.group}' if self.group else ''} {self.verb}{where}"


def granted() -> set[Right]:
    """Permissions from the roles of the foundation."""
    roles = {"": CONTROLLER, NAMESPACE: CONTROLLER_IN_ITS_NAMESPACE, TRIGGERS: CONTROLLER_FOR_DEMAND}
    return {
        Right(namespace, group, resource, verb)
        for namespace, rules in roles.items()
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def requests_of(sandbox: Sandbox) -> Iterator[dict[str, Any]]:
    """Requests of the controller's account in the audit log, with their results."""
    with sandbox.folder.audit_log.open("rb") as lines:
        for line in lines:
            try:
                event = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue  # where an apiserver was ended in the middle of it
            ours = event["user"]["username"] == IDENTITIES["controller"].user
            if ours and "objectRef" in event and event["stage"] in ("ResponseComplete", "ResponseStarted"):
                yield event


def used(event: dict[str, Any], rights: set[Right]) -> set[Right]:
    """The permissions that a request needs. One in the object's namespace takes precedence over one for the cluster."""
    about = event["objectRef"]
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    # A server-side apply that creates is a patch request, and needs both permissions.
    made = event["verb"] == "patch" and event["responseStatus"]["code"] == 201
    found = set()
    for verb in {event["verb"], *(["create"] if made else [])}:
        for namespace in (about.get("namespace", ""), ""):
            right = Right(namespace, about.get("apiGroup", ""), resource, verb)
            if right in rights:
                found.add(right)
                break
    return found


@pytest.fixture(scope="module")
def worked(audited_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The sandbox after the controller has done everything that it can do."""
    Installation(missing_programs(find_programs(["cluster-autoscaler"]))).run()
    with closing(Kube(audited_sandbox.kubeconfig)) as cluster:
        for path in sorted((part("cluster-autoscaler").cached / "crds").glob("*.yaml")):
            cluster.apply(yaml.safe_load(path.read_text()))
        for definition in OPERATORS:
            cluster.apply(definition)
        with controller(audited_sandbox, tmp_path_factory.mktemp("rights")):
            serve(cluster)
            serve_by_claims(cluster, audited_sandbox)
            for provisioner in ASKS:
                request_nodes(cluster, provisioner)
    return audited_sandbox


def serve(cluster: Kube) -> None:
    """Creates, changes and deletes Workspaces with every workload and provisioner."""
    cluster.apply(workspace("served", 3, preset={"name": "phi-4-mini-instruct"}))
    cluster.apply(workspace("named", 1, stableIdentity=True, template={"spec": {"containers": [CONTAINER]}}))
    cluster.apply(workspace("spanning", 1, perReplicaNodeCount=2, template={"spec": {"containers": [CONTAINER]}}))
    await_condition(lambda: ready(cluster, "Deployment", "served") == 3, 120, "the Deployment")
    await_condition(lambda: ready(cluster, "StatefulSet", "named") == 1, 120, "the StatefulSet")
    kind = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
    await_condition(lambda: cluster.get(*kind, "spanning", "inference"), 120, "the LeaderWorkerSet")
    with a_hub() as hub:
        hub.add("acme/law-8b")
        change_environment(cluster, ENVIRONMENT, modelHub={"endpoint": hub.url})
        cluster.apply(workspace("hub", 1, preset={"name": "acme/law-8b"}))
        await_condition(
            lambda: cluster.get("v1", "ConfigMap", "plimsoll-models", NAMESPACE), 120, "what the hub says is kept"
        )
    cluster.patch(API, "Workspace", "served", {"spec": {"inference": {"replicas": 2}}}, "inference")
    await_condition(lambda: ready(cluster, "Deployment", "served") == 2, 120, "one replica fewer")
    change_environment(cluster, ENVIRONMENT, provisioner="static-nodepool")
    cluster.apply(workspace("pooled", 1, template={"spec": {"containers": [CONTAINER]}}))
    await_condition(lambda: ready(cluster, "Deployment", "pooled") == 1, 120, "nodes of a NodePool")
    for name in ("named", "spanning", "pooled", "served", "hub"):
        cluster.delete(API, "Workspace", name, "inference")
    await_condition(lambda: not cluster.list(API, "Workspace", "inference"), 400, "all of them gone")
    change_environment(cluster, ENVIRONMENT, provisioner=None, modelHub=None)


def serve_by_claims(cluster: Kube, sandbox: Sandbox) -> None:
    """Creates and deletes a Workspace whose pods claim their GPUs."""
    is_gpu = f"device.driver == '{DRIVER}'"
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [{"cel": {"expression": is_gpu}}]},
        }
    )
    add_pool(cluster, "claimed", CLAIMED)
    devices = {"driver": DRIVER, "count": 1, "capacity": {"memory": "23034Mi"}}
    profile = {"nodePool": "claimed", "instanceType": CLAIMED, "claimDevices": devices}
    named = {"name": f"claimed.{CLAIMED}"}
    cluster.apply({"apiVersion": API, "kind": "NodeProfile", "metadata": named, "spec": profile})
    claiming = workspace("claiming", 1, template={"spec": {"containers": [CONTAINER]}})
    claiming["spec"]["resource"] = {"instanceType": CLAIMED, "devices": "claim"}
    with dra_driver(sandbox.kubeconfig, {CLAIMED: Devices(1, {"type": "gpu"}, "23034Mi")}):
        cluster.apply(claiming)
        await_condition(lambda: ready(cluster, "Deployment", "claiming") == 1, 120, "a pod with a claim")
        cluster.delete(API, "Workspace", "claiming", "inference")
        await_condition(lambda: not cluster.list(API, "Workspace", "inference"), 400, "it is gone")


def request_nodes(cluster: Kube, provisioner: str) -> None:
    """Requests nodes for pods that share GPUs with one provisioner, and withdraws the request."""
    add_pool(cluster, provisioner, EIGHT_GPUS, tier=provisioner)
    await_seen(cluster, declare_demand(cluster, provisioner, retentionSeconds=1))
    shares = [f"{provisioner}-{number}" for number in range(3)]
    add_shares(cluster, shares, tier=provisioner)
    if provisioner == "provisioning-request":  # Karpenter does not serve it
        kind = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest", TRIGGERS)
        await_condition(lambda: cluster.list(*kind), 120, "a request")
    else:
        await_condition(lambda: nodes_of(cluster, provisioner), 120, "a node")
        await_condition(lambda: owners_of(cluster, provisioner), 120, "its NodeClaim says whom it is for")
        await_condition(lambda: not gated(cluster), 120, "the pods are let go")
    remove_shares(cluster, shares)
    await_condition(lambda: not cluster.list("v1", "Pod", TRIGGERS), 120, "no trigger pod is left")
    await_condition(lambda: not cluster.list("v1", "PodTemplate", TRIGGERS), 120, "no request is left")
    await_condition(lambda: not cluster.list(API, "GPUDemand"), 120, "nor its report")


def owners_of(cluster: Kube, pool: str) -> set[str]:
    """The namespaces that the labels of the NodePool's NodeClaims name."""
    labels = [each["metadata"].get("labels") or {} for each in cluster.list("karpenter.sh/v1", "NodeClaim")]
    return {each.get(OWNER_NAMESPACE, "") for each in labels if each.get(NODEPOOL) == pool} - {""}


def workspace(name: str, replicas: int, **inference: Any) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": "inference"},
        "spec": {
            "queue": "inference",
            "resource": {"instanceType": TYPE},
            "inference": inference | {"replicas": replicas},
        },
    }


def ready(cluster: Kube, kind: str, name: str) -> int:
    found = cluster.get("apps/v1", kind, name, "inference") or {}
    status = found.get("status") or {}
    return int(status.get("readyReplicas") or 0) if status.get("replicas") == status.get("readyReplicas") else 0


def test_nothing_is_refused(worked: Sandbox) -> None:
    refused = {
        f"{event['verb']} {event['requestURI']}"
        for event in requests_of(worked)
        if event["responseStatus"]["code"] in (401, 403)
    }
    assert refused == set()


def test_every_permission_is_used(worked: Sandbox) -> None:
    rights = granted()
    found: set[Right] = set()
    for event in requests_of(worked):
        if event["responseStatus"]["code"] not in (401, 403):
            found |= used(event, rights)
    idle = {str(right) for right in rights - found}
    assert idle - ON_CONFLICT.keys() == set()
