"""Admission of Workspaces by a real apiserver: CEL and Python have the same results."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from plimsoll.kube import RequestError
from plimsoll.model.api import (
    INSTANCE_TYPE_GIVEN,
    INSTANCE_TYPE_REQUIRED,
    PARTITION_FORBIDDEN,
    SELECTOR_RESERVED,
    TEMPLATE_RESERVED,
    EnvironmentSpec,
    WorkspaceSpec,
    changes_refused,
)
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube
from tests.immutability.cases import CHANGES, SLICE, Change, on, running, template

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
PREFIXES = ", ".join(EnvironmentSpec().reserved_label_prefixes)


@pytest.fixture(scope="module")
def cluster(admission_sandbox: Sandbox) -> Iterator[Kube]:
    with closing(Kube(admission_sandbox.kubeconfig)) as kube:
        yield kube


def workspace(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def text(call: Callable[[], Any]) -> str:
    """The message of the refusal; empty if the cluster accepts the object."""
    try:
        call()
    except RequestError as error:
        return error.message
    return ""


def environment(cluster: Kube, mode: str, admission: str | None = None) -> None:
    """Declares the mode, and waits until the policies use it."""
    spec = {"nodeAutoProvisioning": mode} | ({"admission": admission} if admission else {})
    cluster.apply({"apiVersion": API, "kind": "Environment", "metadata": {"name": "test"}, "spec": spec})
    probe = workspace("probe", on() if mode == "enabled" else on(instanceType="a"))

    def settled() -> bool:
        refused = bool(text(lambda: cluster.apply(probe)))
        cluster.delete(API, "Workspace", "probe")
        return refused == (admission in (None, "deny"))

    await_condition(settled, message=f"{mode} {admission} is known to the policies")


@pytest.fixture(scope="module")
def before(cluster: Kube) -> list[Change]:
    """Every Workspace before its change, created while nothing is refused."""
    environment(cluster, "disabled", "off")
    for change in CHANGES:
        cluster.apply(workspace(change.name, change.before))
    return list(CHANGES)


@pytest.mark.parametrize("mode", ["disabled", "enabled"])
def test_cel_and_python_agree_on_changes(cluster: Kube, before: list[Change], mode: str) -> None:
    environment(cluster, mode)
    differing = {}
    for change in before:
        message = text(partial(cluster.apply, workspace(change.name, change.after)))
        old, new = WorkspaceSpec.model_validate(change.before), WorkspaceSpec.model_validate(change.after)
        expected = changes_refused(old, new, auto_provisioning=mode == "enabled")
        if bool(message) != bool(expected) or not all(each in message for each in expected):
            differing[change.name] = (message, expected)
        if not message:
            environment(cluster, mode, "off")
            cluster.delete(API, "Workspace", change.name)
            cluster.apply(workspace(change.name, change.before))
            environment(cluster, mode)
    assert differing == {}


@pytest.mark.parametrize(
    ("mode", "spec", "message"),
    [
        ("disabled", on(instanceType="a"), INSTANCE_TYPE_GIVEN.format(given="a")),
        ("disabled", on(), ""),
        ("disabled", on(partition=SLICE), ""),
        ("enabled", on(), INSTANCE_TYPE_REQUIRED),
        ("enabled", on(instanceType=""), INSTANCE_TYPE_REQUIRED),
        ("enabled", {}, INSTANCE_TYPE_REQUIRED),
        ("enabled", on(instanceType="a"), ""),
        ("enabled", on(instanceType="a", partition=SLICE), PARTITION_FORBIDDEN),
        (
            "disabled",
            {**running(), "resource": {"labelSelector": {"matchLabels": {"kaito.sh/workspace": "w", "pool": "a"}}}},
            SELECTOR_RESERVED.format(keys="kaito.sh/workspace", prefixes=PREFIXES),
        ),
        (
            "disabled",
            {
                **running(),
                "resource": {
                    "labelSelector": {"matchExpressions": [{"key": "plimsoll.dev/workspace", "operator": "Exists"}]}
                },
            },
            SELECTOR_RESERVED.format(keys="plimsoll.dev/workspace", prefixes=PREFIXES),
        ),
        (
            "disabled",
            {
                "inference": {
                    "template": {
                        **template("own:1")["inference"]["template"],
                        "metadata": {"labels": {"karpenter.sh/a": "b"}},
                    }
                }
            },
            TEMPLATE_RESERVED.format(keys="karpenter.sh/a", prefixes=PREFIXES),
        ),
        ("disabled", template("own:1"), ""),
    ],
)
def test_creations_that_a_mode_allows(cluster: Kube, mode: str, spec: dict[str, Any], message: str) -> None:
    environment(cluster, mode)
    try:
        reported = text(lambda: cluster.apply(workspace("made", spec)))
        assert message in reported
        assert bool(reported) == bool(message)
    finally:
        cluster.delete(API, "Workspace", "made")


@pytest.mark.parametrize("setting", ["audit", "off"])
def test_the_setting_admission_allows_violations(cluster: Kube, setting: str) -> None:
    environment(cluster, "enabled", setting)
    try:
        assert text(lambda: cluster.apply(workspace("passes", on()))) == ""
    finally:
        cluster.delete(API, "Workspace", "passes")


def test_an_instance_type_may_narrow_existing_nodes(cluster: Kube) -> None:
    spec = {"nodeAutoProvisioning": "disabled", "byoInstanceType": "narrow"}
    try:
        cluster.apply({"apiVersion": API, "kind": "Environment", "metadata": {"name": "test"}, "spec": spec})
        narrowed = workspace("narrowed", on(instanceType="a"))
        await_condition(lambda: not text(lambda: cluster.apply(narrowed)), message="the policies know the setting")
    finally:
        cluster.delete(API, "Workspace", "narrowed")
        environment(cluster, "disabled")


def test_an_existing_violation_can_be_scaled_and_deleted(cluster: Kube) -> None:
    environment(cluster, "disabled", "off")
    wrong = on(instanceType="a")
    cluster.apply(workspace("wrong", wrong))
    environment(cluster, "disabled")
    wrong["inference"]["replicas"] = 2
    assert text(lambda: cluster.apply(workspace("wrong", wrong))) == ""
    assert text(lambda: cluster.patch(API, "Workspace", "wrong", {"metadata": {"labels": {"a": "b"}}})) == ""
    cluster.delete(API, "Workspace", "wrong")
    await_condition(lambda: cluster.get(API, "Workspace", "wrong") is None)


def selected(**selector: Any) -> dict[str, Any]:
    return {**running(), "resource": {"labelSelector": selector}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({**running(), "tuning": {"input": {"image": "a"}, "output": {"image": "b"}}}, "inference and tuning exclude"),
        (on(partition={"mode": "mig"}), "a partition of mode mig needs a profile"),
        (on(partition={"mode": "mig", "profile": "huge"}), "spec.resource.partition.profile"),
        (on(partition={"mode": "accelerator", "profile": "1g.10gb"}), "a partition of mode accelerator needs a count"),
        (running(adapters=[{"source": {"name": "a"}}]), "a source needs exactly one of"),
        (running(adapters=[{"source": {"image": "a"}}]), "an adapter's source needs a name"),
        (running(adapters=[{"source": {"name": "a", "image": "a"}}] * 2), "two adapters have the same name"),
        (running(adapters=[{"source": {"name": "a", "image": "a"}, "strength": "2"}]), "strength"),
        (running(adapters=[{"source": {"name": f"a{n}", "image": "a"}} for n in range(11)]), "inference.adapters"),
        ({"inference": {**template("own:1")["inference"], "config": "c"}}, "are for presets"),
        ({"tuning": {"input": {"image": "a"}, "output": {}}}, "an output needs exactly one of"),
        ({"inference": {"template": {}}}, "spec.inference.template.spec"),
        ({"inference": {"template": {"spec": {"containers": []}}}}, "spec.inference.template.spec.containers"),
        ({"inference": {"template": {"spec": {"containers": [{"image": "a"}]}}}}, "containers[0].name"),
        (selected(matchLabels={"pool": "a b"}), "spec.resource.labelSelector.matchLabels.pool"),
        (selected(matchLabels={"a/b/c": "a"}), "not a label key"),
        (selected(matchExpressions=[{"key": "-a", "operator": "Exists"}]), "matchExpressions[0].key"),
        (selected(matchExpressions=[{"key": "a", "operator": "In", "values": ["-"]}]), "matchExpressions[0].values"),
        (selected(matchExpressions=[{"key": "a", "operator": "In"}]), "operators In and NotIn need"),
        (selected(matchExpressions=[{"key": "a", "operator": "Exists", "values": ["b"]}]), "operators In and NotIn"),
        ({"tuning": {"method": "full", "input": {"image": "a"}, "output": {"image": "b"}}}, "spec.tuning.method"),
    ],
)
def test_the_crd_and_the_model_refuse_the_same_specs(cluster: Kube, spec: dict[str, Any], words: str) -> None:
    environment(cluster, "disabled", "off")
    with pytest.raises(ValueError):
        WorkspaceSpec.model_validate(spec)
    assert words in text(lambda: cluster.apply(workspace("shape", spec)))


SHARING = [{"nodePool": "a", "resource": "nvidia.com/gpu.shared", "perGpu": 2}]
HEADROOM = [{"name": "a", "nodePool": "a", "instanceType": "a", "gpus": 1, "nodes": 1}]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"policies": {"exemptions": [{"rule": "a", "reason": "a", "until": "2100-01-01"}]}}, "names no objects"),
        ({"demand": {"namespace": "kai-scale-adjust"}}, "is one of KAI's namespaces"),
        ({"demand": {"labelPrefix": "-a"}}, "spec.demand.labelPrefix"),
        ({"demand": {"sharedDevices": [{**SHARING[0], "resource": "gpu"}]}}, "sharedDevices[0].resource"),
        ({"demand": {"sharedDevices": SHARING, "provisioner": "capacity-buffer"}}, "sharedDevices needs"),
        ({"demand": {"headroom": HEADROOM}}, "headroom needs the provisioner capacity-buffer"),
        ({"demand": {"sharedDevices": SHARING, "labelPrefix": "example.org"}}, ""),
        ({"demand": {"headroom": HEADROOM, "provisioner": "capacity-buffer"}}, ""),
        ({"policies": {"exemptions": [{"rule": "a", "reason": "a", "until": "2100-01-01", "kind": "Pod"}]}}, ""),
    ],
)
def test_the_crd_and_the_model_refuse_the_same_environments(cluster: Kube, spec: dict[str, Any], words: str) -> None:
    if words:
        with pytest.raises(ValueError):
            EnvironmentSpec.model_validate(spec)
    else:
        EnvironmentSpec.model_validate(spec)
    manifest = {"apiVersion": API, "kind": "Environment", "metadata": {"name": "shape"}, "spec": spec}
    refused = text(lambda: cluster.apply(manifest, dry_run=True))
    assert words in refused
    assert bool(refused) == bool(words)
