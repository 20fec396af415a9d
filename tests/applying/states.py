"""Checkpoints as the engine writes them, and a cluster in memory."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from plimsoll import labels
from plimsoll.apply import ClusterIdentity, LeaseLostError
from plimsoll.apply.delta import with_shard_label
from plimsoll.apply.engine import provider_urn, stack_urn, urn_of
from plimsoll.apply.state import State, declare
from plimsoll.errors import PlimsollError
from plimsoll.kube import Kind, Mapping, NoSuchKindError, Objects, RequestError, kind_of
from plimsoll.model import Change, Deletion, ObjectKey
from plimsoll.model.api import WorkspaceRef

STACK = "capacity-test-0"
CLUSTER = ClusterIdentity("uid-of-kube-system", "https://one.example")


def a_claim(name: str, workspace: str = "ws", instance_type: str = "a") -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": ownership(workspace)},
        "spec": {"requirements": [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": [instance_type]}]},
    }


def a_deployment(name: str, workspace: str = "ws", image: str = "one") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": ownership(workspace)},
        "spec": {"image": image},
    }


def ownership(workspace: str) -> dict[str, str]:
    return {
        labels.WORKSPACE: workspace,
        labels.WORKSPACE_NAMESPACE: "default",
        labels.WORKSPACE_UID: f"uid-{workspace}",
    }


def change(manifest: dict[str, Any]) -> Change:
    return Change(manifest=manifest, owner=_owner(manifest), reason="test")


def deletion(manifest: dict[str, Any], uid: str) -> Deletion:
    return Deletion(key=ObjectKey.of(manifest), uid=uid, owner=_owner(manifest), reason="test")


def _owner(manifest: dict[str, Any]) -> WorkspaceRef:
    return WorkspaceRef(namespace="default", name=manifest["metadata"]["labels"][labels.WORKSPACE])


def live(manifest: dict[str, Any], uid: str = "", stack: str = STACK, deleting: bool = False) -> dict[str, Any]:
    """The live object after a capacity stack has created it."""
    made = with_shard_label(manifest, stack)
    made["metadata"] |= {"uid": uid or f"uid-{manifest['metadata']['name']}"}
    if deleting:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return made


def a_state(
    *objects: dict[str, Any], stack: str = STACK, pending: Iterable[dict[str, Any]] = (), tag: str = "tag", **more: Any
) -> State:
    """The state of a stack that created these live objects. `pending` are pending operations."""
    provider = {"urn": provider_urn(stack), "custom": True, "id": "p1", "type": "pulumi:providers:kubernetes"}
    resources = [
        {"urn": stack_urn(stack), "custom": False, "type": "pulumi:pulumi:Stack"},
        {**provider, "inputs": {}},
        *(a_record(each, stack, **more) for each in objects),
    ]
    deployment = {
        "resources": resources,
        "pending_operations": list(pending),
        "secrets_providers": {"type": "passphrase", "state": {"salt": "v1:salt"}},
    }
    return State.read(stack, orjson.dumps({"version": 3, "checkpoint": {"latest": deployment}}), tag)


def a_record(obj: dict[str, Any], stack: str = STACK, **more: Any) -> dict[str, Any]:
    inputs = copy.deepcopy(obj)
    inputs["metadata"].pop("uid", None)
    declared = declare(inputs)
    return {
        "urn": urn_of(stack, declared),
        "custom": True,
        "id": obj["metadata"]["name"],
        "type": declared.token,
        "inputs": inputs,
        "outputs": obj,
        "retainOnDelete": True,
        **more,
    }


class FakeCluster(Objects):
    """Live objects by key. If `refusal` is set, dry runs and deletions are rejected with it. Finalizers keep what is
    deleted."""

    def __init__(self, *objects: dict[str, Any], refusal: PlimsollError | None = None) -> None:
        self.objects = {ObjectKey.of(each): each for each in objects}
        self.refusal = refusal
        self.looked_at: list[str] = []
        self.deleted: list[str] = []

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        key = ObjectKey(api_version=kind.api_version, kind=kind.kind, namespace=namespace, name=name)
        self.looked_at.append(name)
        return self.objects.get(key)

    def names(self, kind: Kind, namespace: str = "") -> set[tuple[str, str]]:
        found = {(key.namespace, key.name) for key, each in self.objects.items() if kind_of(each) == kind}
        return {key for key in found if not namespace or key[0] == namespace}

    def mapping(self, kind: Kind) -> Mapping:
        if kind.group not in ("karpenter.sh", "apps"):
            raise NoSuchKindError(kind)
        return Mapping("/apis", kind.kind.lower(), kind.group == "apps")

    def dry_run(self, obj: dict[str, Any], manager: str) -> dict[str, Any]:
        self.mapping(kind_of(obj))
        if self.refusal is not None:
            raise self.refusal
        return obj

    def delete(self, kind: Kind, namespace: str, name: str, uid: str, require: Callable[[], None]) -> None:
        require()
        key = ObjectKey(api_version=kind.api_version, kind=kind.kind, namespace=namespace, name=name)
        if self.refusal is not None:
            raise self.refusal
        if (found := self.objects.get(key)) is None:
            return
        if found["metadata"]["uid"] != uid:
            raise RequestError(409, "Conflict", "the UID in the precondition does not match the UID in record")
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.deleted.append(name)

    def labelled(self, kind: Kind, selector: str, *, metadata_only: bool = False) -> list[dict[str, Any]]:
        key, _, value = selector.partition("=")
        return [
            each
            for each in self.objects.values()
            if kind_of(each) == kind and (found := each["metadata"]["labels"].get(key)) and value in ("", found)
        ]


class FakeLease:
    """A Lease that is held or lost."""

    identity = "here_1_a"

    def __init__(self, held: bool = True, expired: tuple[str, ...] = ()) -> None:
        self.usable = self.held = held
        self.expired_holders = expired

    def require(self) -> None:
        if not self.usable:
            raise LeaseLostError("lost")
