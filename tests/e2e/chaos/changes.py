"""Random changes to Workspaces, share pods and nodes during a chaos run, and the expected state."""

import random
import threading
from typing import Any

from plimsoll.kube import ConnectionFailedError, RequestError
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.demand.environment import NAMESPACE as SHARES
from tests.e2e.demand.environment import add_shares

API = "plimsoll.dev/v1alpha1"
CLAIM = ("karpenter.sh/v1", "NodeClaim")
NAMESPACE = "inference"
TYPE = "Standard_NC24ads_A100_v4"
POOL = "shares"
NAMES = ("steady-0", "steady-1", "varied-0", "varied-1")
MOST_REPLICAS = 3
MOST_SHARES = 16
"""Shares of half a GPU: one node of 8 GPUs holds them all, so at most one node is requested."""


def workspace(name: str, replicas: int) -> Manifest:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "queue": "inference",
            "resource": {"instanceType": TYPE},
            "inference": {"template": {"spec": {"containers": [container]}}, "replicas": replicas},
        },
    }


class Changes:
    """Makes changes on its own thread between `start` and `stop`, directly at the apiserver, one after the other.

    `replicas` are the declared replicas of each Workspace; `most_replicas`, by UID, the highest number that was ever
    declared. The Workspace `steady` never changes.
    """

    def __init__(self, cluster: Kube, seed: int) -> None:
        self.replicas: dict[str, int] = {}
        self.most_replicas: dict[str, int] = {}
        self.made: list[str] = []
        self._cluster = cluster
        self._random = random.Random(seed)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="changes", daemon=True)
        self._shares = 0
        self.paused = threading.Lock()
        """While it is held, nothing is changed."""
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def remove_all(self) -> None:
        for each in self._cluster.list(API, "Workspace", NAMESPACE):
            self._cluster.delete(API, "Workspace", each["metadata"]["name"], NAMESPACE)
        for pod in self._share_pods():
            self._cluster.delete("v1", "Pod", pod, SHARES)

    def declare_again(self) -> None:
        """As a GitOps tool does after the cluster has forgotten something. The caller holds `paused`."""
        for each in self._cluster.list(API, "Workspace", NAMESPACE):
            name, metadata = each["metadata"]["name"], each["metadata"]
            if name in NAMES and name not in self.replicas:
                self._cluster.delete(API, "Workspace", name, NAMESPACE)
            elif "deletionTimestamp" in metadata:
                self.replicas.pop(name, None)
        for name, replicas in self.replicas.items():
            self._apply(name, replicas)

    def _run(self) -> None:
        of_workspaces = [self._declare, self._declare, self._rescale, self._remove]
        ways = [
            *of_workspaces,
            self._add_share,
            self._add_share,
            self._remove_share,
            self._delete_node,
            self._mark_node,
        ]
        while not self._stopped.wait(self._random.uniform(0.3, 2.0)):
            change = self._random.choice(ways)
            try:
                with self.paused:
                    message = change()
            except (ConnectionFailedError, RequestError):
                continue  # the apiserver is frozen, or the object has just gone
            except BaseException as error:
                self.failure = error
                raise
            if message:
                self.made.append(message)

    def _declare(self) -> str:
        name = self._random.choice(NAMES)
        if name in self.replicas:
            return ""
        there = self._cluster.get(API, "Workspace", name, NAMESPACE)
        if there is not None:
            return ""  # it is still going
        return self._apply(name, self._random.randint(1, MOST_REPLICAS - 1))

    def _rescale(self) -> str:
        varied = [name for name in self.replicas if name.startswith("varied")]
        return self._apply(self._random.choice(varied), self._random.randint(1, MOST_REPLICAS)) if varied else ""

    def _apply(self, name: str, replicas: int) -> str:
        # Before it is sent: an answer that is lost may have changed it all the same.
        self.replicas[name] = replicas
        uid = self._cluster.apply(workspace(name, replicas))["metadata"]["uid"]
        self.most_replicas[uid] = max(replicas, self.most_replicas.get(uid, 0))
        return f"{name}: {replicas} replicas"

    def _remove(self) -> str:
        if not self.replicas or self._random.random() < 0.5:
            return ""
        name = self._random.choice(sorted(self.replicas))
        self._cluster.delete(API, "Workspace", name, NAMESPACE)
        del self.replicas[name]
        return f"{name}: removed"

    def _add_share(self) -> str:
        if len(self._share_pods()) >= MOST_SHARES:
            return ""
        self._shares += 1
        name = f"share-{self._shares}"
        add_shares(self._cluster, [name], tier=POOL)
        return f"{name}: added"

    def _remove_share(self) -> str:
        found = self._share_pods()
        if not found:
            return ""
        name = self._random.choice(found)
        self._cluster.delete("v1", "Pod", name, SHARES)
        return f"{name}: removed"

    def _delete_node(self) -> str:
        """Deletes a node and its NodeClaim, as when a cloud removes the instance."""
        found = self._nodes()
        if not found or self._random.random() < 0.6:
            return ""
        name = self._random.choice(found)
        self._cluster.delete("v1", "Node", name)
        return f"{name}: deleted"

    def _mark_node(self) -> str:
        found = self._nodes()
        if not found:
            return ""
        name = self._random.choice(found)
        cordoned = self._random.random() < 0.3
        labels = {"example.com/mark": str(self._random.randint(0, 9))}
        self._cluster.patch("v1", "Node", name, {"metadata": {"labels": labels}, "spec": {"unschedulable": cordoned}})
        return f"{name}: {'cordoned' if cordoned else 'not cordoned'}"

    def _share_pods(self) -> list[str]:
        found = self._cluster.list("v1", "Pod", SHARES)
        return sorted(each["metadata"]["name"] for each in found if each["metadata"]["name"].startswith("share-"))

    def _nodes(self) -> list[str]:
        """Nodes of Workspaces that are not being deleted."""
        found = self._cluster.list("v1", "Node", selector="node.kubernetes.io/instance-type=" + TYPE)
        return sorted(each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"])

    def uncordon(self) -> None:
        for name in self._nodes():
            self._cluster.patch("v1", "Node", name, {"spec": {"unschedulable": None}})


def claims_of(cluster: Kube, name: str) -> list[dict[str, Any]]:
    """NodeClaims of a Workspace that are not being deleted."""
    found = cluster.list(*CLAIM, selector=f"plimsoll.dev/workspace={name}")
    return [claim for claim in found if "deletionTimestamp" not in claim["metadata"]]
