"""Pods, each with one change that a level of Pod Security may refuse."""

from typing import Any, NamedTuple


class Case(NamedTuple):
    name: str
    spec: dict[str, Any]
    """Fields of the pod's spec."""
    container: dict[str, Any] | None = None
    annotations: dict[str, str] | None = None

    @property
    def template(self) -> dict[str, Any]:
        container = {"name": "c", "image": "example.com/image:1", **(self.container or {})}
        return {"metadata": {"annotations": self.annotations or {}}, "spec": {"containers": [container], **self.spec}}


_STRICT = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def _secured(**more: Any) -> dict[str, Any]:
    return {"securityContext": {**_STRICT, **more}}


def _volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_PROBE = {"httpGet": {"port": 80, "host": "10.0.0.1"}}
_LOCAL = {"type": "Localhost", "localhostProfile": "p"}

CASES = (
    Case("plain", {}),
    Case("strict", {}, _secured()),
    Case(
        "strict by the pod",
        {"securityContext": _POD},
        {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}},
    ),
    Case("host network", {"hostNetwork": True}, _secured()),
    Case("host PID", {"hostPID": True}, _secured()),
    Case("host IPC", {"hostIPC": True}, _secured()),
    Case("not host IPC", {"hostIPC": False}, _secured()),
    Case("privileged", {}, {"securityContext": {"privileged": True}}),
    Case("capability of baseline", {}, _secured(capabilities={"drop": ["ALL"], "add": ["CHOWN"]})),
    Case("capability of restricted", {}, _secured(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]})),
    Case("capability", {}, _secured(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]})),
    Case("dropped some", {}, _secured(capabilities={"drop": ["CHOWN"]})),
    Case("host path", _volume(hostPath={"path": "/"}), _secured()),
    Case("empty dir", _volume(emptyDir={}), _secured()),
    Case("config map", _volume(configMap={"name": "c"}), _secured()),
    Case("secret", _volume(secret={"secretName": "c"}), _secured()),
    Case("claim", _volume(persistentVolumeClaim={"claimName": "c"}), _secured()),
    Case(
        "ephemeral",
        _volume(
            ephemeral={
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            }
        ),
        _secured(),
    ),
    Case("projected", _volume(projected={"sources": []}), _secured()),
    Case("downward", _volume(downwardAPI={"items": []}), _secured()),
    Case("csi", _volume(csi={"driver": "d"}), _secured()),
    Case("nfs", _volume(nfs={"server": "s", "path": "/"}), _secured()),
    Case("iscsi", _volume(iscsi={"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 0}), _secured()),
    Case("image volume", _volume(image={"reference": "example.com/i"}), _secured()),
    Case("host port", {}, {**_secured(), "ports": [{"containerPort": 80, "hostPort": 80}]}),
    Case("no host port", {}, {**_secured(), "ports": [{"containerPort": 80, "hostPort": 0}]}),
    Case("AppArmor unconfined", {}, _secured(appArmorProfile={"type": "Unconfined"})),
    Case("AppArmor of the pod", {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}, _secured()),
    Case("AppArmor", {}, _secured(appArmorProfile={"type": "RuntimeDefault"})),
    Case("SELinux type", {}, _secured(seLinuxOptions={"type": "spc_t"})),
    Case("SELinux container", {}, _secured(seLinuxOptions={"type": "container_kvm_t"})),
    Case("SELinux engine", {}, _secured(seLinuxOptions={"type": "container_engine_t"})),
    Case("SELinux user", {}, _secured(seLinuxOptions={"user": "u"})),
    Case("SELinux role of the pod", {"securityContext": {"seLinuxOptions": {"role": "r"}}}, _secured()),
    Case("SELinux level", {}, _secured(seLinuxOptions={"level": "s0"})),
    Case("proc", {"hostUsers": True}, _secured(procMount="Default")),
    Case("seccomp unconfined", {}, _secured(seccompProfile={"type": "Unconfined"})),
    Case("seccomp of the pod", {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, _secured()),
    Case("seccomp local", {}, _secured(seccompProfile=_LOCAL)),
    Case("no seccomp", {}, _secured(seccompProfile=None)),
    Case("sysctl", {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, _secured()),
    Case(
        "safe sysctl",
        {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "4096 87380 16777216"}]}},
        _secured(),
    ),
    Case("probe of a host", {}, {**_secured(), "livenessProbe": _PROBE}),
    Case("hook of a host", {}, {**_secured(), "lifecycle": {"preStop": {"tcpSocket": {"port": 80, "host": "h"}}}}),
    Case("probe", {}, {**_secured(), "livenessProbe": {"httpGet": {"port": 80}}}),
    Case("escalation", {}, _secured(allowPrivilegeEscalation=True)),
    Case("escalation not said", {}, _secured(allowPrivilegeEscalation=None)),
    Case("root", {}, _secured(runAsNonRoot=False)),
    Case("root not said", {}, _secured(runAsNonRoot=None)),
    Case("root for the pod only", {"securityContext": {"runAsNonRoot": False}}, _secured()),
    Case("user 0", {}, _secured(runAsUser=0)),
    Case("user 0 of the pod", {"securityContext": {"runAsUser": 0}}, _secured()),
    Case("user", {}, _secured(runAsUser=1000)),
    Case("init container", {"initContainers": [{"name": "i", "image": "x"}]}, _secured()),
    Case("strict init container", {"initContainers": [{"name": "i", "image": "x", **_secured()}]}, _secured()),
    Case(
        "privileged init container",
        {"initContainers": [{"name": "i", "image": "x", "securityContext": {"privileged": True}}]},
        _secured(),
    ),
    Case("windows", {"os": {"name": "windows"}}, {"securityContext": {"runAsNonRoot": True}}),
    Case(
        "windows host process",
        {"os": {"name": "windows"}, "hostNetwork": True, "securityContext": {"windowsOptions": {"hostProcess": True}}},
        {"securityContext": {"runAsNonRoot": True}},
    ),
    Case("AppArmor annotation", {}, _secured(), {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}),
)
