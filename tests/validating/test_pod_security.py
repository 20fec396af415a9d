"""Pods that their namespace would refuse are refused before a node is bought, with the field.

`tests/e2e/admission/test_pod_security.py` compares each case with a real apiserver.
"""

from typing import Any

import pytest

from plimsoll.model import Reason
from plimsoll.model.cluster import Namespace
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import ENFORCE, ENFORCE_VERSION, pod_security
from tests.builders import a_node_pool, a_snapshot, a_workspace, an_environment
from tests.demand.test_tenancy import L4, NOW
from tests.validating.pod_security_cases import CASES, Case

ATTACK: dict[str, Any] = {
    "spec": {
        "hostNetwork": True,
        "hostPID": True,
        "serviceAccountName": "default",
        "volumes": [{"name": "root", "hostPath": {"path": "/"}}],
        "containers": [{"name": "m", "image": "x", "securityContext": {"privileged": True}}],
    }
}


def a_namespace(level: str, version: str = "", name: str = "default") -> Namespace:
    labels = {ENFORCE: level} | ({ENFORCE_VERSION: version} if version else {})
    return Namespace.read({"metadata": {"name": name, "labels": labels}})


def judged(
    *objects: Any, template: dict[str, Any] | None = None, settings: dict[str, Any] | None = None, **more: Any
) -> Any:
    workspace = a_workspace(instance_type=L4, selector={}, template=template, **more)
    snapshot = a_snapshot(
        workspace, a_node_pool("pool", (L4,)), *objects, environment=an_environment(nap=True, **(settings or {}))
    )
    [verdict] = validate(snapshot)
    assert bool(plan(snapshot, [verdict], NOW).creations) == verdict.accepted
    return verdict


@pytest.mark.parametrize(("level", "accepted"), [("privileged", True), ("baseline", False), ("restricted", False)])
def test_no_node_is_bought_for_pods_that_the_namespace_refuses(level: str, accepted: bool) -> None:
    verdict = judged(a_namespace(level), template=ATTACK)
    assert verdict.accepted is accepted, verdict.message
    if not accepted:
        assert verdict.reason is Reason.NOT_ALLOWED
        for said in ("'default'", level, ENFORCE, "inference.template.spec.hostNetwork", "change the template"):
            assert said in verdict.message


def test_other_namespaces_and_those_without_the_label_decide_nothing() -> None:
    assert judged(a_namespace("restricted", name="other"), template=ATTACK).accepted
    assert judged(Namespace.read({"metadata": {"name": "default"}}), template=ATTACK).accepted
    assert judged(template=ATTACK).accepted


def test_the_pods_of_a_preset_are_checked_too() -> None:
    preset = "phi-4-mini-instruct"
    for level in ("baseline", "restricted"):
        assert judged(a_namespace(level), preset=preset).accepted
    verdict = judged(a_namespace("restricted"), preset=preset, settings={"inferenceUser": 0})
    assert not verdict.accepted
    assert "the preset's pods: spec.containers[0]" in verdict.message
    assert "set inferenceUser of the Environment" in verdict.message
    assert judged(a_namespace("baseline"), preset=preset, settings={"inferenceUser": 0}).accepted


@pytest.mark.parametrize(
    ("pods", "field"),
    [
        ({"securityContext": {"runAsUser": 0}}, "spec.securityContext.runAsUser"),
        ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "spec.securityContext.seccompProfile"),
        (
            {"containerSecurityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}},
            "spec.containers[0].securityContext.capabilities",
        ),
    ],
)
def test_the_settings_of_pods_are_checked_as_templates_are(pods: dict[str, Any], field: str) -> None:
    preset = "phi-4-mini-instruct"
    verdict = judged(a_namespace("restricted"), preset=preset, settings={"presetPods": pods})
    assert verdict.reason is Reason.NOT_ALLOWED
    assert f"the preset's pods: {field}" in verdict.message
    assert "presetPods" in verdict.message
    assert judged(a_namespace("privileged"), preset=preset, settings={"presetPods": pods}).accepted
    stricter = {"containerSecurityContext": {"readOnlyRootFilesystem": True}, "securityContext": {"runAsUser": 1000}}
    assert judged(a_namespace("restricted"), preset=preset, settings={"presetPods": stricter}).accepted


def test_a_pinned_version_has_no_newer_rules() -> None:
    [probe] = [case for case in CASES if case.name == "probe of a host"]
    labels = {ENFORCE: "baseline"}
    assert list(pod_security(labels, probe.template))
    assert not list(pod_security({**labels, ENFORCE_VERSION: "v1.33"}, probe.template))
    assert list(pod_security({**labels, ENFORCE_VERSION: "latest"}, probe.template))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_baseline_refuses_no_more_than_restricted(case: Case) -> None:
    baseline, restricted = (list(pod_security({ENFORCE: level}, case.template)) for level in ("baseline", "restricted"))
    assert set(baseline) <= set(restricted)
    assert not list(pod_security({ENFORCE: "privileged"}, case.template))


UNSET = "C.allowPrivilegeEscalation C.runAsNonRoot C.seccompProfile.type C.capabilities.drop"
REFUSED = {
    "plain": ("", UNSET),
    "host network": ("hostNetwork", ""),
    "host PID": ("hostPID", ""),
    "host IPC": ("hostIPC", ""),
    "privileged": ("C.privileged", UNSET),
    "capability of baseline": ("", "C.capabilities.add"),
    "capability": ("C.capabilities.add", ""),
    "dropped some": ("", "C.capabilities.drop"),
    "host path": ("volumes[0].hostPath", ""),
    "nfs": ("", "volumes[0].nfs"),
    "iscsi": ("", "volumes[0].iscsi"),
    "host port": ("containers[0].ports[0].hostPort", ""),
    "AppArmor unconfined": ("C.appArmorProfile.type", ""),
    "AppArmor of the pod": ("securityContext.appArmorProfile.type", ""),
    "SELinux type": ("C.seLinuxOptions.type", ""),
    "SELinux user": ("C.seLinuxOptions.user", ""),
    "SELinux role of the pod": ("securityContext.seLinuxOptions.role", ""),
    "seccomp unconfined": ("C.seccompProfile.type", ""),
    "seccomp of the pod": ("securityContext.seccompProfile.type", ""),
    "no seccomp": ("", "C.seccompProfile.type"),
    "sysctl": ("securityContext.sysctls", ""),
    "probe of a host": ("containers[0].livenessProbe.httpGet.host", ""),
    "hook of a host": ("containers[0].lifecycle.preStop.tcpSocket.host", ""),
    "escalation": ("", "C.allowPrivilegeEscalation"),
    "escalation not said": ("", "C.allowPrivilegeEscalation"),
    "root": ("", "C.runAsNonRoot"),
    "root not said": ("", "C.runAsNonRoot"),
    "root for the pod only": ("", "securityContext.runAsNonRoot"),
    "user 0": ("", "C.runAsUser"),
    "user 0 of the pod": ("", "securityContext.runAsUser"),
    "init container": ("", UNSET.replace("C.", "I.")),
    "privileged init container": ("I.privileged", UNSET.replace("C.", "I.")),
    "windows host process": ("hostNetwork securityContext.windowsOptions.hostProcess", ""),
    "AppArmor annotation": ("metadata.annotations.container.apparmor.security.beta.kubernetes.io/c", ""),
}
"""Fields below `spec` by case: those that baseline refuses, and those that restricted refuses besides. C is the
security context of the container, I that of the init container."""


def fields(level: str, template: dict[str, Any]) -> list[str]:
    return [problem.partition(" ")[0] for problem in pod_security({ENFORCE: level}, template)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_rule_names_the_field(case: Case) -> None:
    def written(text: str) -> list[str]:
        text = text.replace("I.", "initContainers[0].securityContext.").replace("C.", "containers[0].securityContext.")
        return [name if name.startswith("metadata.") else f"spec.{name}" for name in text.split()]

    baseline, restricted = (written(text) for text in REFUSED.get(case.name, ("", "")))
    assert fields("baseline", case.template) == baseline
    assert fields("restricted", case.template) == baseline + restricted


def test_in_a_user_namespace_pods_may_be_root() -> None:
    context = {"procMount": "Unmasked", "runAsNonRoot": False, "runAsUser": 0, "allowPrivilegeEscalation": False}
    context |= {"seccompProfile": {"type": "RuntimeDefault"}, "capabilities": {"drop": ["ALL"]}}
    pod = {"containers": [{"name": "c", "image": "example.com/image:1", "securityContext": context}]}
    assert fields("restricted", {"spec": {**pod, "hostUsers": False}}) == []
    below = "spec.containers[0].securityContext"
    assert fields("baseline", {"spec": pod}) == [f"{below}.procMount"]
    assert fields("restricted", {"spec": pod}) == [
        f"{below}.{name}" for name in ("procMount", "runAsNonRoot", "runAsUser")
    ]


@pytest.mark.parametrize("hook", ["livenessProbe", "readinessProbe", "startupProbe", "postStart", "preStop"])
@pytest.mark.parametrize("kind", ["httpGet", "tcpSocket"])
def test_no_probe_and_no_hook_names_a_host(hook: str, kind: str) -> None:
    action: dict[str, Any] = {hook: {kind: {"port": 80, "host": "10.0.0.1"}}}
    container = action if hook.endswith("Probe") else {"lifecycle": action}
    where = hook if hook.endswith("Probe") else f"lifecycle.{hook}"
    template = {"spec": {"containers": [{"name": "c", "image": "example.com/image:1", **container}]}}
    assert fields("baseline", template) == [f"spec.containers[0].{where}.{kind}.host"]
