"""A Kubernetes client for tests: plain manifests as arguments, plain dicts as results, a few milliseconds for each
call."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import yaml

from plimsoll.kube import APPLY_PATCH, MERGE_PATCH, Connection, RequestError

_PLURALS = {"Class": "classes", "Policy": "policies", "Topology": "topologies", "Ingress": "ingresses"}
_CLUSTERED = {
    "Node", "Namespace", "NodeClaim", "NodePool", "KWOKNodeClass", "Queue", "ClusterRole", "ClusterRoleBinding",
    "CustomResourceDefinition", "PriorityClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "Environment", "ClusterTrainingRuntime", "Topology",
    "GPUDemand", "NodeOverlay", "NodeProfile", "ResourceSlice", "DeviceClass", "RuntimeClass",
    "ValidatingWebhookConfiguration", "PersistentVolume", "StorageClass",
}  # fmt: skip

Manifest = dict[str, Any]


class Kube:
    """A client of the cluster in `kubeconfig`. Kinds are given with group and version, as in a manifest."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._connection = Connection.open(kubeconfig)

    def close(self) -> None:
        self._connection.close()

    def reconnect(self) -> None:
        """With the kubeconfig as it is now, such as after the sandbox was started again."""
        self._connection.close()
        self._connection = Connection.open(self._kubeconfig)

    @property
    def server(self) -> str:
        return self._connection.server

    def revision(self) -> int:
        """The revision of etcd, as the apiserver knows it now."""
        return int(self._connection.request("GET", "/api/v1/namespaces")["metadata"]["resourceVersion"])

    def token(self, namespace: str, account: str, pod: Manifest | None = None) -> str:
        """A token of a service account; bound to a pod, as one that the kubelet mounts there, if one is given."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        spec: Manifest = {"expirationSeconds": 7200}
        if pod is not None:
            metadata = {key: pod["metadata"][key] for key in ("name", "uid")}
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", **metadata}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        token: str = self._connection.request("POST", path, request)["status"]["token"]
        return token

    def get(self, api_version: str, kind: str, name: str, namespace: str = "default") -> Manifest | None:
        """The object; None if it does not exist."""
        try:
            return self._connection.request("GET", _path(api_version, kind, namespace, name))
        except RequestError as error:
            if error.code == 404:
                return None
            raise

    def list(self, api_version: str, kind: str, namespace: str | None = None, selector: str = "") -> list[Manifest]:
        """The objects of a namespace, or of all namespaces."""
        query = {"labelSelector": selector}
        found = self._connection.request("GET", _path(api_version, kind, namespace), query=query, retry_throttled=True)
        items: list[Manifest] = found["items"]
        return items

    def changes_since(
        self, revision: int, api_version: str, kind: str, namespace: str, selector: str
    ) -> Iterator[Manifest]:
        """What a watch of the objects of a namespace delivers from `revision` until now: `type` and `object` each, in
        the order in which they were written."""
        query = {"watch": "true", "resourceVersion": str(revision), "labelSelector": selector, "timeoutSeconds": "2"}
        with self._connection.stream(_path(api_version, kind, namespace), query=query, read_timeout=30) as lines:
            yield from map(orjson.loads, b"".join(lines.stream(None)).splitlines())

    def apply(self, manifest: Manifest, manager: str = "test", *, dry_run: bool = False) -> Manifest:
        """Server-side apply with force. A dry run is admitted or refused in the same way and writes nothing."""
        metadata = manifest["metadata"]
        path = _path(manifest["apiVersion"], manifest["kind"], metadata.get("namespace", "default"), metadata["name"])
        query = {"fieldManager": manager, "force": "true"} | ({"dryRun": "All"} if dry_run else {})
        return self._connection.request("PATCH", path, manifest, query=query, content_type=APPLY_PATCH)

    def refusal(self, manifest: Manifest) -> str:
        """The message with which a dry run is refused; empty if the object would be admitted."""
        try:
            self.apply(manifest, dry_run=True)
        except RequestError as error:
            return error.message
        return ""

    def patch(
        self, api_version: str, kind: str, name: str, patch: Manifest, namespace: str = "default", subresource: str = ""
    ) -> Manifest:
        """A merge patch, of a subresource such as `status` if one is given."""
        path = _path(api_version, kind, namespace, name) + (f"/{subresource}" if subresource else "")
        return self._connection.request("PATCH", path, patch, content_type=MERGE_PATCH)

    def create(self, manifest: Manifest, subresource: str = "") -> Manifest:
        """Creates an object, or a subresource such as the `binding` of a pod."""
        metadata = manifest["metadata"]
        kind = "Pod" if subresource else manifest["kind"]
        version = "v1" if subresource else manifest["apiVersion"]
        path = _path(version, kind, metadata.get("namespace", "default"), metadata["name"] if subresource else "")
        return self._connection.request("POST", path + (f"/{subresource}" if subresource else ""), manifest)

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "default") -> None:
        """Requests the deletion; the object may disappear later. A missing object is not an error."""
        try:
            self._connection.request("DELETE", _path(api_version, kind, namespace, name))
        except RequestError as error:
            if error.code != 404:
                raise


def acting_as(kubeconfig: Path, token: str, folder: Path) -> Kube:
    """A client of the same cluster with another token; its kubeconfig is written into the folder."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    folder.mkdir(exist_ok=True)
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return Kube(path)


def _path(api_version: str, kind: str, namespace: str | None, name: str = "") -> str:
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    within = "" if namespace is None or kind in _CLUSTERED else f"/namespaces/{namespace}"
    plural = next((kind.lower().removesuffix(k.lower()) + p for k, p in _PLURALS.items() if kind.endswith(k)), None)
    return f"{root}{within}/{plural or kind.lower() + 's'}" + (f"/{name}" if name else "")
