"""The programs of the KAI Scheduler in a sandbox, with the roles of its chart, and without its operator."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.sandbox.certificates import AUTHORITY, link_certificates
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.identities import KAI_ACCOUNTS, KAI_NAMESPACE, kai_user
from plimsoll.sandbox.parts import part
from plimsoll.sandbox.processes.control_plane import resource
from plimsoll.sandbox.processes.ports import LOOPBACK
from plimsoll.sandbox.processes.process import Process

ADMISSION: Final = "admission"
_ROLES: Final = {"podgroupcontroller": "kai-podgroup-controller", "queuecontroller": "queuecontroller"}
"""Names of ClusterRoles that are not the program's, after `kai-`."""
_NO_METRICS: Final = "--metrics-bind-address=0"
_NO_PROBE: Final = "--health-probe-bind-address=0"


def ports() -> tuple[str, ...]:
    """Names of the ports of the programs."""
    return tuple(map(kai_user, KAI_ACCOUNTS))


def processes(folder: Folder, taken: Mapping[str, int]) -> list[Process]:
    """The programs, each with the service account of the chart."""
    return [_process(folder, program, taken[kai_user(program)]) for program in KAI_ACCOUNTS]


def _process(folder: Folder, program: str, port: int) -> Process:
    address = f"{LOOPBACK}:{port}"
    probe = f"--health-probe-bind-address={address}"
    flags: dict[str, tuple[tuple[str, ...], str]] = {
        ADMISSION: ((f"--webhook-addr={port}",), f"https://{address}/validate--v1-pod"),
        # It has no health check. With more workers, 0.12 deletes reservations that it has just created:
        # https://github.com/NVIDIA/KAI-Scheduler/issues/1103
        "binder": (
            (f"--metrics-bind-address={address}", _NO_PROBE, "--max-concurrent-reconciles=1"),
            f"http://{address}/metrics",
        ),
        "podgroupcontroller": ((probe, "--enable-podgroup-webhook=false"), f"http://{address}/healthz"),
        "podgrouper": ((_NO_METRICS, probe), f"http://{address}/healthz"),
        "queuecontroller": (
            (f"--metrics-listen-address={address}", "--enable-webhook=false"),
            f"http://{address}/metrics",
        ),
        # The server of plugins would listen on every interface; it has no use here, and no port of that number.
        "scheduler": ((f"--listen-address={address}", "--plugin-server-port=-1"), f"http://{address}/metrics"),
    }
    own = folder.path / "kai"
    link_certificates(folder.certificates, own / "k8s-webhook-server" / "serving-certs")
    given, ready_url = flags[program]
    return Process(
        kai_user(program),
        (str(folder.bin() / "kai"), program, *given),
        port=port,
        ready_url=ready_url,
        environment={"KUBECONFIG": str(folder.kubeconfig(kai_user(program))), "TMPDIR": str(own)},
    )


def write_objects(folder: Folder) -> list[Path]:
    """The files with what KAI needs in the cluster before its programs start."""
    bindings = folder.path / "kai-bindings.yaml"
    bindings.write_text(yaml.safe_dump_all(_binding(*each) for each in KAI_ACCOUNTS.items()))
    return [part("kai-scheduler").cached / "objects", resource("kai.yaml"), bindings]


def _binding(program: str, account: str) -> dict[str, Any]:
    api, role = "rbac.authorization.k8s.io", _ROLES.get(program, f"kai-{program}")
    return {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": KAI_NAMESPACE}],
    }


def write_webhooks(folder: Folder, taken: Mapping[str, int]) -> Path:
    """Writes the webhooks for pods of KAI. The binder refuses pods that the mutating one has not seen."""
    target = folder.path / "kai-webhooks.yaml"
    address = f"https://{LOOPBACK}:{taken[kai_user(ADMISSION)]}"
    authority = base64.b64encode((folder.certificates / AUTHORITY).read_bytes()).decode()
    kinds = (("Mutating", "/mutate--v1-pod", ["CREATE"]), ("Validating", "/validate--v1-pod", ["CREATE", "UPDATE"]))
    target.write_text(
        yaml.safe_dump_all(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": f"{kind}WebhookConfiguration",
                "metadata": {"name": "kai-admission"},
                "webhooks": [_webhook({"url": address + path, "caBundle": authority}, operations)],
            }
            for kind, path, operations in kinds
        )
    )
    return target


def _webhook(client: dict[str, str], operations: list[str]) -> dict[str, Any]:
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": operations}
    return {
        "name": "admission.run.ai",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": client,
        "rules": [pods],
        "matchConditions": [{"name": "of-kai", "expression": "object.spec.schedulerName == 'kai-scheduler'"}],
    }
