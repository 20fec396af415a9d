"""The manifest of a reservation: KAI's names, labels and fields."""

import hashlib

import pytest

from plimsoll.bind.planning import reservation_manifest, reservation_name
from plimsoll.cluster.pods import gpu_groups, is_reservation
from plimsoll.errors import InvalidObjectError, PlimsollError
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import NAMESPACES, ReservationSettings
from plimsoll.model.meta import Toleration

SETTINGS = ReservationSettings(image="example/plimsoll:1")
TOLERATION = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}


def test_the_manifest_equals_that_of_kai() -> None:
    manifest = reservation_manifest(SETTINGS, "node-1", "group-xyz", [Toleration.read(TOLERATION)])
    assert manifest == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"gpu-reservation-{hashlib.sha256(b'node-1/group-xyz').hexdigest()[:16]}",
            "namespace": "kai-resource-reservation",
            "labels": {
                "app": "kai-resource-reservation",
                "app.runai.resource.reservation": "gpu-reservation",
                "runai-gpu-group": "group-xyz",
                "app.kubernetes.io/managed-by": "plimsoll-bind",
            },
            "annotations": {"karpenter.sh/do-not-disrupt": "true"},
        },
        "spec": {
            "nodeName": "node-1",
            "serviceAccountName": "kai-resource-reservation",
            "tolerations": [TOLERATION],
            "containers": [
                {
                    "name": "resource-reservation",
                    "image": "example/plimsoll:1",
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["plimsoll", "probe"],
                    "resources": {
                        "requests": {"cpu": "1m", "memory": "10Mi", "nvidia.com/gpu": "1"},
                        "limits": {"cpu": "50m", "memory": "100Mi", "nvidia.com/gpu": "1"},
                    },
                    "env": [
                        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                    ],
                }
            ],
        },
    }


def test_every_name_of_the_former_manifest_has_a_setting() -> None:
    former = ReservationSettings.model_validate(
        {
            "image": "example/reservation:1",
            "command": [],
            "namespace": "runai-reservation",
            "serviceAccount": "runai-reservation",
            "app": "runai-reservation",
            "namePrefix": "runai-reservation-gpu",
            "container": "runai-reservation",
            "requests": {},
            "limits": {},
            "runtimeClass": "nvidia",
            "gpuResource": "example.com/gpu",
            "env": {"LOG": "debug"},
            "labels": {"team": "platform"},
            "annotations": {"note": "x"},
        }
    )
    manifest = reservation_manifest(former, "node-1", "g")
    metadata, spec = manifest["metadata"], manifest["spec"]
    assert metadata["namespace"] == spec["serviceAccountName"] == "runai-reservation"
    assert metadata["labels"]["app.runai.resource.reservation"] == "runai-reservation-gpu"
    assert (metadata["labels"]["team"], metadata["annotations"]["note"]) == ("platform", "x")
    container = spec["containers"][0]
    assert container["name"] == "runai-reservation"
    assert container["resources"]["limits"] == {"example.com/gpu": "1"}
    assert container["env"][-1] == {"name": "LOG", "value": "debug"}
    assert spec["runtimeClassName"] == "nvidia"
    assert "command" not in container
    assert "tolerations" not in spec


def test_the_ledger_reads_the_reservation() -> None:
    pod = Pod.read(reservation_manifest(SETTINGS, "node-1", "g"))
    assert is_reservation(pod, NAMESPACES)
    assert (gpu_groups(pod), pod.node_name, pod.devices("nvidia.com/gpu")) == (("g",), "node-1", 1)


def test_names_are_functions_of_node_group_and_attempt() -> None:
    names = {reservation_name(SETTINGS, *of) for of in (("n", "g"), ("n", "h"), ("m", "g"), ("n", "g", 1))}
    assert len(names) == 4
    assert reservation_name(SETTINGS, "n", "g") == reservation_name(SETTINGS, "n", "g")


def test_tolerations_are_not_repeated() -> None:
    settings = SETTINGS.model_copy(update={"tolerations": (TOLERATION,)})
    assert reservation_manifest(settings, "n", "g", [Toleration.read(TOLERATION)])["spec"]["tolerations"] == [
        TOLERATION
    ]


@pytest.mark.parametrize("field", [{"image": ""}, {"imagePullPolicy": "Sometimes"}, {"deadlineSeconds": 0}, {"x": 1}])
def test_wrong_settings_are_refused(field: dict[str, object]) -> None:
    with pytest.raises((ValueError, InvalidObjectError, PlimsollError)):
        ReservationSettings.model_validate({"image": "i", **field})
