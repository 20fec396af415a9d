"""Pod Security: what a namespace that enforces a level refuses of a pod, so that no node is bought for it.

The rules are those of https://kubernetes.io/docs/concepts/security/pod-security-standards/, where a version of them is
pinned, without those that are newer. What the cluster may admit is not refused here: its own admission decides.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.model import Reason, Refusal
from plimsoll.model.api import EnvironmentSpec, Workspace
from plimsoll.model.meta import dig, section
from plimsoll.text import shortlist

ENFORCE: Final = "pod-security.kubernetes.io/enforce"
"""Label of a namespace: `privileged`, `baseline` or `restricted`."""
ENFORCE_VERSION: Final = "pod-security.kubernetes.io/enforce-version"
_LATEST: Final = 10_000
_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
_SELINUX_TYPES: Final = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_VOLUMES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_PROFILES: Final = ("RuntimeDefault", "Localhost")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


class _Pod(NamedTuple):
    annotations: Mapping[str, Any]
    spec: Mapping[str, Any]
    containers: tuple[tuple[str, Mapping[str, Any]], ...]
    """Each with its field."""

    @property
    def windows(self) -> bool:
        return bool(dig(self.spec, "os.name") == "windows")

    @property
    def in_user_namespace(self) -> bool:
        """Where users of the pod are none of the node's, newer clusters ask for less."""
        return self.spec.get("hostUsers") is False

    def contexts(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The security context of the pod, and of each container, with its field."""
        yield "spec.securityContext", section(self.spec, "securityContext")
        for field, container in self.containers:
            yield f"{field}.securityContext", section(container, "securityContext")


_Check = Callable[[_Pod], Iterator[str]]
"""Each field that breaks a rule, with what to change."""


def refused_by_pod_security(
    workspace: Workspace,
    labels: Mapping[str, str],
    environment: EnvironmentSpec,
    where: str,
    template: Mapping[str, Any],
) -> Refusal | None:
    """A refusal of pods, as `declared_pods` gives them, that a namespace with these labels would not let exist."""
    inference = workspace.spec.inference
    if inference is None or labels.get(ENFORCE) not in _LEVELS:
        return None
    remedy = "change the template"
    if inference.template is None:
        remedy = "change inference.pods, inference.weights or presetPods of the Environment"
        remedy = remedy if environment.inference_user else "set inferenceUser of the Environment"
    problems = [f"{where}{problem}" for problem in pod_security(labels, template)]
    if not problems:
        return None
    return Refusal(
        Reason.NOT_ALLOWED,
        f"namespace {workspace.namespace!r} enforces Pod Security {labels[ENFORCE]!r} (its label {ENFORCE}), and the "
        f"cluster would refuse the pods: {shortlist(problems, 4)}; {remedy}, or use another namespace",
    )


def pod_security(labels: Mapping[str, str], template: Mapping[str, Any]) -> Iterator[str]:
    """What a namespace with these labels refuses of pods of the template: field, value and what to change."""
    level = labels.get(ENFORCE, "")
    checks = _LEVELS.get(level, ())
    version = re.fullmatch(r"v1\.(\d{1,3})", labels.get(ENFORCE_VERSION, ""))
    newest = int(version[1]) if version else _LATEST
    spec = section(template, "spec")
    containers = tuple(
        (f"spec.{part}[{number}]", section(container))
        for part in _CONTAINERS
        for number, container in enumerate(spec.get(part) or ())
    )
    pod = _Pod(section(template, "metadata", "annotations"), spec, containers)
    for since, check in checks:
        if since <= newest:
            yield from check(pod)


def _host_namespaces(pod: _Pod) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.get(field):
            yield f"spec.{field} is true: remove it"


def _privileged(pod: _Pod) -> Iterator[str]:
    for field, context in pod.contexts():
        if context.get("privileged"):
            yield f"{field}.privileged is true: remove it"


def _capabilities(pod: _Pod) -> Iterator[str]:
    for field, context in pod.contexts():
        added = [str(name) for name in dig(context, "capabilities.add") or () if name not in _CAPABILITIES]
        if added:
            yield f"{field}.capabilities.add has {', '.join(added)}: remove it"


def _host_paths(pod: _Pod) -> Iterator[str]:
    for number, volume in enumerate(pod.spec.get("volumes") or ()):
        if section(volume).get("hostPath") is not None:
            yield f"spec.volumes[{number}].hostPath is set: use another type of volume"


def _host_ports(pod: _Pod) -> Iterator[str]:
    for field, container in pod.containers:
        for number, port in enumerate(container.get("ports") or ()):
            if section(port).get("hostPort"):
                yield f"{field}.ports[{number}].hostPort is set: remove it"


def _app_armor(pod: _Pod) -> Iterator[str]:
    for field, context in pod.contexts():
        kind = dig(context, "appArmorProfile.type")
        if kind is not None and kind not in _PROFILES:
            yield f"{field}.appArmorProfile.type is {kind}: set one of {', '.join(_PROFILES)}"
    for key, value in pod.annotations.items():
        allowed = value in ("", "runtime/default") or str(value).startswith("localhost/")
        if key.startswith(_APP_ARMOR) and not allowed:
            yield f"metadata.annotations.{key} is {value}: set runtime/default"


def _selinux(pod: _Pod) -> Iterator[str]:
    for field, context in pod.contexts():
        options = section(context, "seLinuxOptions")
        if (options.get("type") or "") not in _SELINUX_TYPES:
            yield f"{field}.seLinuxOptions.type is {options['type']}: remove it"
        for name in ("user", "role"):
            if options.get(name):
                yield f"{field}.seLinuxOptions.{name} is set: remove it"


def _proc_mount(pod: _Pod) -> Iterator[str]:
    if pod.in_user_namespace:
        return
    for field, context in pod.contexts():
        if context.get("procMount") not in (None, "Default"):
            yield f"{field}.procMount is {context['procMount']}: remove it"


def _seccomp(pod: _Pod) -> Iterator[str]:
    for field, context in pod.contexts():
        if dig(context, "seccompProfile.type") == "Unconfined":
            yield f"{field}.seccompProfile.type is Unconfined: set RuntimeDefault"


def _sysctls(pod: _Pod) -> Iterator[str]:
    for sysctl in dig(pod.spec, "securityContext.sysctls") or ():
        name = section(sysctl).get("name")
        if name not in _SYSCTLS:
            yield f"spec.securityContext.sysctls has {name}: remove it"


def _host_process(pod: _Pod) -> Iterator[str]:
    for field, context in pod.contexts():
        if dig(context, "windowsOptions.hostProcess"):
            yield f"{field}.windowsOptions.hostProcess is true: remove it"


def _probed_hosts(pod: _Pod) -> Iterator[str]:
    hooks = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")
    for field, container in pod.containers:
        for hook in hooks:
            for kind in ("httpGet", "tcpSocket"):
                if dig(container, f"{hook}.{kind}.host"):
                    yield f"{field}.{hook}.{kind}.host is set: remove it"


def _volume_types(pod: _Pod) -> Iterator[str]:
    for number, volume in enumerate(pod.spec.get("volumes") or ()):
        others = [kind for kind in section(volume) if kind != "name" and kind not in _VOLUMES]
        if others and others != ["hostPath"]:  # which is said already
            yield f"spec.volumes[{number}].{others[0]} is set: use one of {', '.join(sorted(_VOLUMES))}"


def _escalation(pod: _Pod) -> Iterator[str]:
    for field, container in pod.containers:
        if not pod.windows and dig(container, "securityContext.allowPrivilegeEscalation") is not False:
            yield f"{field}.securityContext.allowPrivilegeEscalation is not false: set it to false"


def _non_root(pod: _Pod) -> Iterator[str]:
    if pod.in_user_namespace:
        return
    of_pod = dig(pod.spec, "securityContext.runAsNonRoot")
    if of_pod is False:
        yield "spec.securityContext.runAsNonRoot is false: set it to true"
    for field, container in pod.containers:
        of_container = dig(container, "securityContext.runAsNonRoot")
        if not (of_pod if of_container is None else of_container):
            yield f"{field}.securityContext.runAsNonRoot is not true: set it, there or in spec.securityContext"


def _root_user(pod: _Pod) -> Iterator[str]:
    if pod.in_user_namespace:
        return
    for field, context in pod.contexts():
        user = context.get("runAsUser")
        if user == 0 and user is not None:
            yield f"{field}.runAsUser is 0: set another user"


def _seccomp_set(pod: _Pod) -> Iterator[str]:
    of_pod = dig(pod.spec, "securityContext.seccompProfile.type")
    for field, container in pod.containers:
        of_container = dig(container, "securityContext.seccompProfile.type")
        profile = of_pod if of_container is None else of_container
        if not pod.windows and profile not in (*_PROFILES, "Unconfined"):
            yield f"{field}.securityContext.seccompProfile.type is not set: set RuntimeDefault, there or for the pod"


def _dropped(pod: _Pod) -> Iterator[str]:
    for field, container in pod.containers:
        if pod.windows:
            continue
        if "ALL" not in (dig(container, "securityContext.capabilities.drop") or ()):
            yield f"{field}.securityContext.capabilities.drop has no ALL: add it"
        added = [name for name in dig(container, "securityContext.capabilities.add") or () if name in _CAPABILITIES]
        if others := [name for name in added if name != "NET_BIND_SERVICE"]:
            yield f"{field}.securityContext.capabilities.add has {', '.join(others)}: remove it"


_BASELINE: Final[tuple[tuple[int, _Check], ...]] = (
    (0, _host_namespaces),
    (0, _privileged),
    (0, _capabilities),
    (0, _host_paths),
    (0, _host_ports),
    (0, _app_armor),
    (0, _selinux),
    (0, _proc_mount),
    (19, _seccomp),
    (0, _sysctls),
    (0, _host_process),
    (34, _probed_hosts),
)
"""Minor version of Kubernetes that has the rule, and its check."""
_RESTRICTED: Final[tuple[tuple[int, _Check], ...]] = (
    (0, _volume_types),
    (8, _escalation),
    (0, _non_root),
    (23, _root_user),
    (19, _seccomp_set),
    (22, _dropped),
)
_LEVELS: Final = {"baseline": _BASELINE, "restricted": (*_BASELINE, *_RESTRICTED)}
