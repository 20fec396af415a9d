"""The processes of every sandbox, and Karpenter, with their flags."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from plimsoll.sandbox.certificates import AUTHORITY, CERTIFICATE, KEY, SERVICE_ACCOUNT_KEY
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.processes.ports import LOOPBACK
from plimsoll.sandbox.processes.process import Process
from plimsoll.sandbox.state import Settings

PORTS: Final = (
    "etcd",
    "etcd-peer",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "karpenter",
    "karpenter-metrics",
)
"""Names of the ports that these processes take."""


def etcd(folder: Folder, ports: Mapping[str, int]) -> Process:
    client, peer = (f"https://{LOOPBACK}:{ports[name]}" for name in ("etcd", "etcd-peer"))
    pair = _pair(folder)
    return Process(
        "etcd",
        (
            str(folder.bin() / "etcd"),
            f"--data-dir={folder.path / 'etcd'}",
            "--name=sandbox",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=sandbox={peer}",
            "--client-cert-auth",
            "--peer-client-cert-auth",
            *(f"--{side}{flag}={path}" for side in ("", "peer-") for flag, path in pair.items()),
            # Without fsync, data is lost only if the machine loses power.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ),
        port=ports["etcd"],
        ready_url=f"{client}/health",
    )


def kube_apiserver(folder: Folder, ports: Mapping[str, int], settings: Settings) -> Process:
    port, keys = ports["kube-apiserver"], folder.certificates
    return Process(
        "kube-apiserver",
        (
            str(folder.bin() / "kube-apiserver"),
            f"--etcd-servers=https://{LOOPBACK}:{ports['etcd']}",
            f"--etcd-cafile={keys / AUTHORITY}",
            f"--etcd-certfile={keys / CERTIFICATE}",
            f"--etcd-keyfile={keys / KEY}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={port}",
            *_serving(folder),
            f"--token-auth-file={folder.tokens}",
            "--authorization-mode=RBAC",
            "--anonymous-auth=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys / SERVICE_ACCOUNT_KEY}",
            f"--service-account-signing-key-file={keys / SERVICE_ACCOUNT_KEY}",
            "--service-cluster-ip-range=10.0.0.0/16",
            # KWOK's nodes do not mount credentials into pods, and start without the taints that a kubelet removes.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--enable-admission-plugins=ValidatingAdmissionPolicy,MutatingAdmissionPolicy",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",
            *(_audit(folder) if settings.audit else ()),
        ),
        port=port,
        ready_url=f"https://{LOOPBACK}:{port}/readyz",
    )


def kube_controller_manager(folder: Folder, ports: Mapping[str, int]) -> Process:
    return _kube_component(
        folder,
        ports,
        "kube-controller-manager",
        "controller-manager",
        # Longer than the interval at which KWOK renews leases, see kwok.yaml.
        "--node-monitor-grace-period=700s",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        f"--root-ca-file={folder.certificates / AUTHORITY}",
        f"--service-account-private-key-file={folder.certificates / SERVICE_ACCOUNT_KEY}",
    )


def kube_scheduler(folder: Folder, ports: Mapping[str, int]) -> Process:
    return _kube_component(folder, ports, "kube-scheduler", "scheduler", "--kube-api-qps=200", "--kube-api-burst=400")


def kwok(folder: Folder, ports: Mapping[str, int]) -> Process:
    address = f"{LOOPBACK}:{ports['kwok']}"
    return Process(
        "kwok",
        (
            str(folder.bin() / "kwok"),
            f"--config={resource('kwok.yaml')}",
            f"--kubeconfig={folder.kubeconfig('kwok')}",
            f"--server-address={address}",
        ),
        port=ports["kwok"],
        ready_url=f"http://{address}/healthz",
    )


def karpenter(folder: Folder, ports: Mapping[str, int]) -> Process:
    port = ports["karpenter"]
    return Process(
        "karpenter",
        (str(folder.bin() / "karpenter"),),
        port=port,
        ready_url=f"http://{LOOPBACK}:{port}/readyz",
        environment={
            "KUBECONFIG": str(folder.kubeconfig("karpenter")),
            "DISABLE_LEADER_ELECTION": "true",
            "METRICS_PORT": str(ports["karpenter-metrics"]),
            "HEALTH_PROBE_PORT": str(port),
            "FEATURE_GATES": "StaticCapacity=true,NodeOverlay=true,CapacityBuffer=true",
            "INSTANCE_TYPES_FILE_PATH": str(folder.path / "instance_types.json"),
            "BATCH_IDLE_DURATION": "1s",
        },
    )


def after_apiserver(folder: Folder, ports: Mapping[str, int]) -> list[Process]:
    """The processes that start concurrently as soon as the apiserver answers."""
    return [kube_controller_manager(folder, ports), kube_scheduler(folder, ports), kwok(folder, ports)]


def _kube_component(folder: Folder, ports: Mapping[str, int], name: str, user: str, *flags: str) -> Process:
    port = ports[name]
    return Process(
        name,
        (
            str(folder.bin() / name),
            f"--kubeconfig={folder.kubeconfig(user)}",
            f"--authentication-kubeconfig={folder.kubeconfig(user)}",
            f"--authorization-kubeconfig={folder.kubeconfig(user)}",
            "--authentication-skip-lookup=true",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            *_serving(folder),
            "--leader-elect=false",
            *flags,
        ),
        port=port,
        ready_url=f"https://{LOOPBACK}:{port}/healthz",
    )


def _pair(folder: Folder) -> dict[str, Path]:
    keys = folder.certificates
    return {
        "trusted-ca-file": keys / AUTHORITY,
        "cert-file": keys / CERTIFICATE,
        "key-file": keys / KEY,
    }


def _audit(folder: Folder) -> tuple[str, ...]:
    # One file: the apiserver would begin another one after 100 MiB.
    size = "--audit-log-maxsize=10240"
    return f"--audit-policy-file={resource('audit.yaml')}", f"--audit-log-path={folder.audit_log}", size


def _serving(folder: Folder) -> tuple[str, str]:
    return (
        f"--tls-cert-file={folder.certificates / CERTIFICATE}",
        f"--tls-private-key-file={folder.certificates / KEY}",
    )


def resource(name: str) -> Path:
    """Path of a file of this package."""
    return Path(str(files("plimsoll.sandbox.processes").joinpath(name)))
