"""Equal parts of objects are stored once, and objects keep their values."""

from typing import Any

from plimsoll.model.cluster import Pod
from plimsoll.observe.cluster import Stores


def a_pod(name: str, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "team", "uid": name, "labels": {"app": "".join(["tr", "ainer"])}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Running"},
        **more,
    }


def read(stores: Stores, name: str) -> Pod:
    _, pod = stores.pods.read(a_pod(name))
    assert isinstance(pod, Pod)
    return pod


def test_equal_containers_and_texts_of_two_pods_are_the_same_objects() -> None:
    stores = Stores()
    one, other = read(stores, "one"), read(stores, "other")
    assert one.containers is other.containers
    assert one.labels["app"] is other.labels["app"]
    assert one.labels is not other.labels


def test_a_pod_has_the_values_of_its_manifest() -> None:
    pod = read(Stores(), "one")
    assert pod == Pod.read(a_pod("one"))
    assert pod.model_copy(update={"node_name": "n"}).node_name == "n"
    assert not read(Stores(), "two").model_fields_set
