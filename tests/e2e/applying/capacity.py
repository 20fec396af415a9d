"""Helpers for tests of applying: Plans by names, an Applier on a sandbox, and the contents of its stacks."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson

from plimsoll import labels
from plimsoll.apply import Applier, ApplySettings, LeaseSettings
from plimsoll.kube import Connection
from plimsoll.model import Change, Deletion, ObjectKey, Plan
from plimsoll.model.api import WorkspaceRef
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube

NODE_CLAIM = ("karpenter.sh/v1", "NodeClaim")
QUICK = LeaseSettings(namespace="kube-system", duration=8.0, renew_deadline=7.0, retry_period=1.0)
"""A Lease that tests can wait for, and that a slow machine renews in time."""


def owner(workspace: str = "ws") -> WorkspaceRef:
    return WorkspaceRef(namespace="default", name=workspace, uid=f"uid-{workspace}")


def a_claim(name: str, workspace: str = "ws", instance_type: str = "p4d.24xlarge") -> dict[str, Any]:
    """A NodeClaim as a Plan declares it."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": _labels(workspace)},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": [instance_type]}],
            "resources": {"requests": {labels.GPU_RESOURCE: "8"}},
        },
    }


def a_deployment(name: str, workspace: str = "ws", image: str = "registry.example/serve:1") -> dict[str, Any]:
    """A Deployment without pods."""
    selector = {"app": name}
    pod = {"metadata": {"labels": selector}, "spec": {"containers": [{"name": "serve", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": _labels(workspace)},
        "spec": {"replicas": 0, "selector": {"matchLabels": selector}, "template": pod},
    }


def clearing_claims(cluster: Kube) -> Iterator[Kube]:
    """The cluster; its NodeClaims are deleted afterwards."""
    yield cluster
    for claim in cluster.list(*NODE_CLAIM):
        cluster.delete(*NODE_CLAIM, claim["metadata"]["name"])


def _labels(workspace: str) -> dict[str, str]:
    return {
        labels.WORKSPACE: workspace,
        labels.WORKSPACE_NAMESPACE: "default",
        labels.WORKSPACE_UID: f"uid-{workspace}",
    }


def key_of(manifest: dict[str, Any]) -> ObjectKey:
    return ObjectKey.of(manifest)


def creating(*manifests: dict[str, Any]) -> Plan:
    return Plan(creations=tuple(Change(manifest=each, owner=_owner_of(each), reason="test") for each in manifests))


def updating(*manifests: dict[str, Any]) -> Plan:
    return Plan(updates=tuple(Change(manifest=each, owner=_owner_of(each), reason="test") for each in manifests))


def deleting(*manifests: dict[str, Any], uid: str) -> Plan:
    return Plan(
        deletions=tuple(Deletion(key=key_of(each), uid=uid, owner=_owner_of(each), reason="test") for each in manifests)
    )


def both(*plans: Plan) -> Plan:
    return Plan(
        creations=tuple(each for plan in plans for each in plan.creations),
        updates=tuple(each for plan in plans for each in plan.updates),
        deletions=tuple(each for plan in plans for each in plan.deletions),
    )


def _owner_of(manifest: dict[str, Any]) -> WorkspaceRef:
    return owner(manifest["metadata"]["labels"][labels.WORKSPACE])


def settings_for(sandbox: Sandbox, folder: Path, **changes: Any) -> ApplySettings:
    """Settings of a writer on the sandbox, with its state below `folder`; all writers of the folder share the
    backend."""
    folder.mkdir(parents=True, exist_ok=True)
    passphrase = folder / "passphrase"
    passphrase.write_text("open sesame")
    pulumi = shutil.which("pulumi", path=sandbox.environ()["PATH"])
    environment = folder.name[-8:].strip("-_").replace("_", "-").lower()
    fields: dict[str, Any] = {
        "environment": environment,
        "work_folder": folder / "work",
        "passphrase_file": passphrase,
        "backend": f"file://{folder / 'state'}",
        "kubeconfig": sandbox.kubeconfig,
        "pulumi": pulumi,
        "pulumi_home": sandbox.environ()["PULUMI_HOME"],
        "lease": QUICK.model_copy(update={"name": f"plimsoll-{environment}"}),
    }
    return ApplySettings(**(fields | changes))


@contextmanager
def a_writer(settings: ApplySettings, *, started: bool = True) -> Iterator[Applier]:
    """An Applier that is stopped when the context ends."""
    assert settings.kubeconfig is not None
    with closing(Connection.open(settings.kubeconfig)) as connection, Applier(settings, connection) as applier:
        if started:
            applier.start()
        yield applier


def checkpoint(settings: ApplySettings, stack: str) -> dict[str, Any]:
    """The deployment in a stack's checkpoint file."""
    deployment: dict[str, Any] = orjson.loads(checkpoint_path(settings, stack).read_bytes())["checkpoint"]["latest"]
    return deployment


def checkpoint_path(settings: ApplySettings, stack: str) -> Path:
    return Path(settings.backend_url.removeprefix("file://")) / ".pulumi/stacks/plimsoll" / f"{stack}.json"


def locks(settings: ApplySettings) -> list[Path]:
    folder = Path(settings.backend_url.removeprefix("file://")) / ".pulumi/locks"
    return list(folder.rglob("*.json")) if folder.is_dir() else []


def names(keys: Iterable[ObjectKey]) -> list[str]:
    return sorted(key.name for key in keys)


def pre_started(writer: Applier) -> None:
    await_condition(lambda: writer.pre_started, message="a pre-started update")
