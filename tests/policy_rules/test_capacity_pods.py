"""Rules on trigger pods, which are never bound, and on reservations, which hold one GPU under KAI's names."""

from typing import Any

import pytest

from plimsoll.bind.planning import reservation_manifest
from plimsoll.labels import MANAGED_BY
from plimsoll.model.kai import ReservationSettings
from tests.policy_rules.manifests import GPU, a_pod, a_reservation, a_trigger, an_environment, broken, with_path

DISRUPT = "karpenter.sh/do-not-disrupt"


def test_valid_capacity_pods_violate_no_rule() -> None:
    assert broken(a_trigger(), a_reservation()) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec__activeDeadlineSeconds": None}, ("trigger-pod-deadline", "spec.activeDeadlineSeconds")),
        ({"spec__nodeName": "node-1"}, ("trigger-pod-never-bound", "spec.nodeName")),
        ({"spec__schedulerName": None}, ("trigger-pod-never-bound", "spec.schedulerName")),
        ({"spec__schedulerName": "default-scheduler"}, ("trigger-pod-never-bound", "spec.schedulerName")),
        ({"spec__schedulerName": "kai-scheduler"}, ("trigger-pod-never-bound", "spec.schedulerName")),
        ({"metadata__name": "a" * 64}, ("trigger-pod-name", "metadata.name")),
        ({"metadata__namespace": "kai-scale-adjust"}, ("trigger-pod-name", "metadata.namespace")),
        ({"metadata__namespace": "kai-resource-reservation"}, ("trigger-pod-name", "metadata.namespace")),
    ],
)
def test_a_trigger_pod(changes: dict[str, Any], expected: tuple[str, str]) -> None:
    assert broken(a_trigger(**changes)) == [expected]


def test_tensor_fusions_trigger_pods_are_checked_too() -> None:
    labels = {"tensor-fusion.ai/trigger-type": "smart-scheduling"}
    assert broken(a_trigger(metadata__labels=labels, spec__activeDeadlineSeconds=None)) == [
        ("trigger-pod-deadline", "spec.activeDeadlineSeconds")
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec__nodeName": None}, ("reservation-pod-node", "spec.nodeName")),
        (
            {"spec__containers__0__resources__limits": {GPU: 2}},
            ("reservation-pod-gpu", f"spec.containers[0].resources.limits[{GPU}]"),
        ),
        (
            {"spec__containers__0__resources": None},
            ("reservation-pod-gpu", f"spec.containers[0].resources.limits[{GPU}]"),
        ),
        ({"metadata__annotations": {}}, ("reservation-pod-do-not-disrupt", f"metadata.annotations[{DISRUPT}]")),
        (
            {"metadata__annotations": {DISRUPT: "10m"}},
            ("reservation-pod-do-not-disrupt", f"metadata.annotations[{DISRUPT}]"),
        ),
        ({"metadata__name": "gpu-reservation-a"}, ("reservation-pod-name", "metadata.name")),
        ({"metadata__namespace": "default"}, ("reservation-pod-name", "metadata.namespace")),
        (
            {"metadata__labels": {"app": "kai-resource-reservation"}},
            ("reservation-pod-name", "metadata.labels[runai-gpu-group]"),
        ),
    ],
)
def test_a_reservation(changes: dict[str, Any], expected: tuple[str, str]) -> None:
    assert broken(a_reservation(**changes)) == [expected]


@pytest.mark.parametrize("namespace", ["own", "kai-resource-reservation"])
def test_the_share_binders_reservations_have_its_names_and_namespace(namespace: str) -> None:
    """As it creates them where the first attempt got another GPU, in a namespace of its settings."""
    settings = ReservationSettings(image="plimsoll:1", namespace=namespace)
    own = reservation_manifest(settings, "n1", "group", attempt=1)
    assert own["metadata"]["name"].endswith("-1")
    assert broken(own) == []
    del own["metadata"]["labels"][MANAGED_BY]
    field = "metadata.namespace" if namespace == "own" else "metadata.name"
    assert broken(own) == [("reservation-pod-name", field)]


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("gpu-reservation-node-1-bcd45", True),
        ("gpu-reservation-node-2-bcd45", False),
        ("gpu-reservation-node-1-bcd4", False),
        ("gpu-reservation-node-1-abcde", False),
        ("gpu-reservation-node-1-x-bcd45", False),
    ],
)
def test_the_names_of_kai_0_12_have_the_node(name: str, right: bool) -> None:
    expected = [] if right else [("reservation-pod-name", "metadata.name")]
    assert broken(a_reservation(metadata__name=name)) == expected


def test_former_names_of_kai_are_accepted() -> None:
    labels = {
        "app": "runai-reservation",
        "runai-gpu-group": "gpu-group-xyz",
        "app.runai.resource.reservation": "runai-reservation-gpu",
    }
    before = a_reservation(
        metadata__labels=labels,
        metadata__name="runai-reservation-gpu-node-1-abc45",
        metadata__namespace="runai-reservation",
    )
    assert broken(before) == []


@pytest.mark.parametrize("namespace", ["kai-scale-adjust", "kai-resource-reservation", "runai-reservation"])
def test_other_pods_in_kais_namespaces_are_a_finding(namespace: str) -> None:
    assert broken(a_pod(namespace=namespace)) == [("kai-namespace", "metadata.namespace")]


def test_a_share_pod_is_not_a_reservation() -> None:
    labels = {"runai-gpu-group": "group", "kai.scheduler/queue": "team"}
    assert broken(a_pod({"gpu-fraction": "0.5"}, labels=labels)) == []


def test_kais_scaling_pods_need_no_queue() -> None:
    labels = {"app": "scaling-pod"}
    pod = a_pod(gpus=1, labels=labels, scheduler="default-scheduler", namespace="kai-scale-adjust")
    assert broken(pod) == []


def test_their_label_exempts_no_pod_of_another_namespace() -> None:
    pod = a_pod(gpus=1, labels={"app": "scaling-pod"}, scheduler="kai-scheduler", namespace="team")
    assert [rule for rule, _ in broken(pod)] == ["gpu-workload-names-queue"]


def test_a_trigger_pod_must_not_use_the_queue_scheduler() -> None:
    environment = an_environment(queueScheduler="own-scheduler")
    trigger = with_path(a_trigger(), spec__schedulerName="own-scheduler")
    assert broken(trigger, environment) == [("trigger-pod-never-bound", "spec.schedulerName")]
