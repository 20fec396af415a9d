"""A hostile tenant beside a chaos run: the role `edit` in one namespace, which may have no GPUs."""

from pathlib import Path
from typing import Any

from plimsoll.kube import RequestError
from plimsoll.model.api import CAPACITY_GATE
from tests.e2e.chaos.changes import API, CLAIM, workspace
from tests.e2e.cluster.kube import Kube, Manifest, acting_as
from tests.e2e.demand.environment import ENVIRONMENT

NAMESPACE = "hostile"
ACCESS: list[dict[str, Any]] = [{"namespaces": [NAMESPACE], "gpus": 0}, {"namespaces": ["*"]}]
_RBAC = "rbac.authorization.k8s.io"
_EACH = 20
"""Objects of each sort in an attack."""
_FORGED = {"plimsoll.dev/workspace": "unchanged", "plimsoll.dev/workspace-namespace": "inference"}
_CONTAINER = {"name": "main", "image": "registry.k8s.io/pause:3.10"}


class Tenant:
    """`faults` says what it got that it must not have."""

    def __init__(self, cluster: Kube, kubeconfig: Path, folder: Path) -> None:
        account = {"name": "mallory", "namespace": NAMESPACE}
        role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "edit"}
        binding = {"apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding", "metadata": {**account, "name": "edit"}}
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        cluster.apply(binding | {"roleRef": role, "subjects": [{"kind": "ServiceAccount", **account}]})
        cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": ACCESS}})
        self.faults: list[str] = []
        self._cluster = cluster
        self.kube = acting_as(kubeconfig, cluster.token(NAMESPACE, "mallory"), folder)

    def attack(self) -> None:
        """Objects with others' labels, Workspaces, and pods that share GPUs, each of a class of its own."""
        for number in range(_EACH):
            if not self._refused(_deployment(f"forged-{number}")):
                self.faults.append("forged labels were accepted")
            self._refused(wanting(f"wants-{number}"))
            self._refused(_share(f"share-{number}"))

    def retreat(self) -> None:
        """Removes everything of the attack, and looks for what it has got."""
        bought = self._cluster.list(*CLAIM, selector=f"plimsoll.dev/workspace-namespace={NAMESPACE}")
        self.faults += [f"bought NodeClaim {each['metadata']['name']}" for each in bought]
        for version, kind in (("apps/v1", "Deployment"), (API, "Workspace"), ("v1", "Pod")):
            for each in self._cluster.list(version, kind, NAMESPACE):
                self._cluster.delete(version, kind, each["metadata"]["name"], NAMESPACE)

    def leave(self) -> None:
        self.retreat()
        self.kube.close()
        self._cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": None}})
        self._cluster.delete("v1", "Namespace", NAMESPACE)

    def _refused(self, manifest: Manifest) -> bool:
        try:
            self.kube.apply(manifest)
        except RequestError as error:
            return error.code == 403
        return False


def wanting(name: str) -> Manifest:
    made = workspace(name, 2)
    del made["spec"]["queue"]
    return made | {"metadata": {"name": name, "namespace": NAMESPACE}}


def _deployment(name: str) -> Manifest:
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_CONTAINER]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": _FORGED},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod},
    }


def _share(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"gpu-fraction": "0.5"}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "schedulingGates": [{"name": CAPACITY_GATE}],
            "tolerations": [{"key": name, "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [_CONTAINER],
        },
    }
