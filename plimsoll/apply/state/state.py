"""State: the resources that Pulumi's engine has recorded for one capacity stack."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from plimsoll.apply.engine import (
    CLUSTER_TYPE,
    PROVIDER_TYPE,
    STACK_TYPE,
    DeclaredResource,
    cluster_urn,
    provider_urn,
    stack_urn,
    urn_of,
)
from plimsoll.apply.errors import OtherClusterError, StateDamagedError, StateUnreadableError
from plimsoll.apply.identity import FORMAT, ClusterIdentity
from plimsoll.errors import PlimsollError
from plimsoll.kube import Kind, id_of, kind_of, type_of
from plimsoll.labels import DEMAND, FIELD_MANAGER, HEADROOM, WORKSPACE, WORKSPACE_NAMESPACE
from plimsoll.model import ObjectKey

Manifest = dict[str, Any]
OWNED_KINDS: Final = (
    Kind("karpenter.sh", "v1", "NodeClaim"),
    Kind("karpenter.sh", "v1", "NodePool"),
    Kind("apps", "v1", "Deployment"),
    Kind("apps", "v1", "StatefulSet"),
    Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
    Kind("", "v1", "Service"),
    Kind("resource.k8s.io", "v1", "ResourceClaimTemplate"),
    Kind("", "v1", "Pod"),
    Kind("", "v1", "PodTemplate"),
    Kind("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer"),
    Kind("autoscaling.x-k8s.io", "v1", "ProvisioningRequest"),
)
"""Kinds that a Plan creates. They are searched in the cluster after a state was lost."""
_RETAINED: Final = {"retainOnDelete": True}
"""Field of a resource whose object the engine does not delete; see `Reviewer.delete`."""


@dataclass(frozen=True)
class Resource:
    """One Kubernetes object of a stack."""

    urn: str
    key: ObjectKey
    uid: str
    declared: DeclaredResource
    owner: tuple[str, str]
    """(namespace, name) of the Workspace by its labels, or ("", name) of a demand; each is empty if there is no
    label."""
    pending_deletion: bool = False
    """Whether the engine would delete or replace it in the next update, whatever the program declares."""


@dataclass(frozen=True)
class Pending:
    """An operation that was started and not finished, because the engine was killed."""

    operation: str
    """`creating`, `updating`, `deleting`, ..."""
    urn: str
    key: ObjectKey
    inputs: Manifest


@dataclass(frozen=True)
class State:
    """A stack's checkpoint. `tag` changes with every write; None if the backend has no tags."""

    stack: str
    tag: str | None
    deployment: Mapping[str, Any]
    resources: Mapping[ObjectKey, Resource]
    pending: tuple[Pending, ...]
    foreign: tuple[str, ...]
    """URNs of resources other than the stack, its provider, its cluster and its objects."""
    secrets: Mapping[str, str]
    """The secrets provider in the stack's settings file; empty if the state has none yet."""
    cluster: ClusterIdentity | None
    """The cluster of the objects; None in a state of release 0.1, which did not record it."""

    @classmethod
    def read(cls, stack: str, content: bytes, tag: str | None) -> "State":
        """Reads a checkpoint file or an exported stack. Raises StateDamagedError, or StateUnreadableError for the
        state of a newer release."""
        try:
            parsed = orjson.loads(content)
            deployment = parsed["checkpoint"].get("latest") if "checkpoint" in parsed else parsed["deployment"]
            deployment = deployment or {}
            records = deployment.get("resources") or []
            resources = [_resource(record) for record in records if _is_object(record)]
            operations = deployment.get("pending_operations") or []
            pending = tuple(_pending(operation) for operation in operations if _is_object(operation["resource"]))
            secrets = _secrets(deployment.get("secrets_providers") or {})
            recorded = next((each["inputs"] for each in records if each["type"] == CLUSTER_TYPE), None)
            version = int(recorded["format"]) if recorded else 0
            cluster = ClusterIdentity(str(recorded["uid"]), str(recorded["server"])) if recorded else None
            own = {stack_urn(stack), provider_urn(stack), cluster_urn(stack), *(each.urn for each in resources)}
            foreign = tuple(str(record["urn"]) for record in records if record["urn"] not in own)
            by_key = {each.key: each for each in resources}
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError, PlimsollError) as error:
            raise StateDamagedError(
                f"stack {stack}: its state is not a Pulumi checkpoint: {error}",
                "restore it with `pulumi stack import` from a backup",
            ) from None
        if version > FORMAT:
            raise StateUnreadableError(
                f"stack {stack}: a newer release wrote its state (format {version}; this release supports {FORMAT})",
                "run the newer release, or see Rollback in docs/guides/production.md",
            )
        return cls(stack, tag, deployment, by_key, pending, foreign, secrets, cluster)

    @classmethod
    def empty(cls, stack: str) -> "State":
        return cls(stack, None, {}, {}, (), (), {}, None)

    @property
    def interrupted(self) -> bool:
        """Whether operations of any kind are pending."""
        return bool(self.deployment.get("pending_operations"))

    @property
    def deletes_objects(self) -> bool:
        """Whether the engine would delete an object that leaves the state, as in the states of releases before 0.4."""
        records = self.deployment.get("resources") or []
        return any(_is_object(record) and not record.get("retainOnDelete") for record in records)

    @property
    def adoptable(self) -> bool:
        """Whether objects can be added to it, because the stack and its provider are known."""
        return {STACK_TYPE, PROVIDER_TYPE} <= {
            str(record.get("type")) for record in self.deployment.get("resources") or []
        }

    def advanced(
        self, made: Iterable[tuple[DeclaredResource, Mapping[str, Any]]], gone: Iterable[ObjectKey]
    ) -> "State":
        """The state after the running update; `made` are resources with their outputs."""
        resources = {key: each for key, each in self.resources.items() if key not in set(gone)}
        for declared, outputs in made:
            record = {"urn": urn_of(self.stack, declared), "type": declared.token, "inputs": declared.inputs}
            resource = _resource({**record, "outputs": outputs})
            resources[resource.key] = resource
        return dataclasses.replace(self, resources=resources)

    def edited(self, drop: Iterable[ObjectKey] = (), adopt: Iterable[tuple[Manifest, Manifest]] = ()) -> dict[str, Any]:
        """The deployment without pending operations and without `drop`, with the (live, inputs) of `adopt` added."""
        adopted = [_record(self, live, inputs) for live, inputs in adopt]
        gone = {self.resources[key].urn for key in drop if key in self.resources} | {each["urn"] for each in adopted}
        records = self.deployment.get("resources") or []
        kept = [{**each, **(_RETAINED if _is_object(each) else {})} for each in records if each["urn"] not in gone]
        deployment = {key: value for key, value in self.deployment.items() if key != "pending_operations"}
        return {**deployment, "resources": [*kept, *adopted]}


def require_own(state: State, cluster: ClusterIdentity) -> None:
    """Raises OtherClusterError if a state is that of another cluster."""
    if state.cluster is not None and state.cluster.uid != cluster.uid:
        raise OtherClusterError(
            f"stack {state.stack} belongs to the cluster {state.cluster}, but this is the cluster {cluster}",
            "give each cluster's Environment another name, or another --backend; if that cluster no longer exists, "
            f"remove its stack with `pulumi stack rm --force {state.stack}`",
        )


def declare(manifest: Mapping[str, Any]) -> DeclaredResource:
    """The resource of an object. Its logical name depends on the object's key only."""
    key = ObjectKey.of(dict(manifest))
    token = type_of(kind_of(dict(manifest)))
    return DeclaredResource(token, f"{key.namespace}/{key.name}" if key.namespace else key.name, manifest)


def owner_of(manifest: Mapping[str, Any]) -> tuple[str, str]:
    labels = (manifest.get("metadata") or {}).get("labels") or {}
    name = labels.get(WORKSPACE) or labels.get(DEMAND) or labels.get(HEADROOM) or ""
    return (str(labels.get(WORKSPACE_NAMESPACE, "")), str(name))


def importable(live: Manifest) -> Manifest:
    """The declaration of a live object: without the fields that the apiserver and controllers write."""
    metadata = live["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if metadata.get(key)}
    return {key: value for key, value in live.items() if key != "status"} | {"metadata": kept}


def _secrets(provider: Mapping[str, Any]) -> Mapping[str, str]:
    """The stack's settings for the secrets provider in its state: a passphrase, or a key in a KMS."""
    state = provider.get("state") or {}
    if "salt" in state:
        return {"encryptionsalt": str(state["salt"])}
    if "url" in state:
        return {"secretsprovider": str(state["url"]), "encryptedkey": str(state.get("encryptedkey") or "")}
    return {}


def _is_object(record: Mapping[str, Any]) -> bool:
    return str(record.get("type", "")).startswith("kubernetes:")


def _resource(record: Mapping[str, Any]) -> Resource:
    inputs = record["inputs"]
    declared = DeclaredResource(str(record["type"]), str(record["urn"]).rpartition("::")[2], inputs)
    metadata = (record.get("outputs") or {}).get("metadata") or {}
    return Resource(
        urn=str(record["urn"]),
        key=_key(inputs),
        uid=str(metadata.get("uid") or ""),
        declared=declared,
        owner=owner_of(inputs),
        pending_deletion=bool(record.get("delete") or record.get("taint") or record.get("pendingReplacement")),
    )


def _pending(operation: Mapping[str, Any]) -> Pending:
    record = operation["resource"]
    return Pending(str(operation["type"]), str(record["urn"]), _key(record["inputs"]), record["inputs"])


def _key(inputs: Manifest) -> ObjectKey:
    return ObjectKey.of({**inputs, "apiVersion": kind_of(inputs).api_version})


def _record(state: State, live: Manifest, inputs: Manifest) -> dict[str, Any]:
    """The resource in the state, as the plugin would have returned it after creating the object."""
    records = {str(each["type"]): each for each in state.deployment.get("resources") or []}
    if not state.adoptable:
        raise PlimsollError(f"stack {state.stack} has no provider yet: nothing can be adopted into it")
    provider = records[PROVIDER_TYPE]
    declared = declare(inputs)
    return {
        "urn": urn_of(state.stack, declared),
        "custom": True,
        "id": id_of(live),
        "type": declared.token,
        "inputs": inputs,
        "outputs": live
        | {"__inputs": inputs, "__initialApiVersion": str(live["apiVersion"]), "__fieldManager": FIELD_MANAGER},
        "parent": records[STACK_TYPE]["urn"],
        **_RETAINED,
        "provider": f"{provider['urn']}::{provider['id']}",
    }


@dataclass(frozen=True)
class OwnedResource:
    """An object that a capacity stack owns."""

    stack: str
    key: ObjectKey
    uid: str
    urn: str


def owned(states: Iterable[State]) -> list[OwnedResource]:
    """The objects by stack, in the order of the states, then by key."""
    return [
        OwnedResource(state.stack, each.key, each.uid, each.urn)
        for state in states
        for each in sorted(state.resources.values(), key=lambda resource: str(resource.key))
    ]
