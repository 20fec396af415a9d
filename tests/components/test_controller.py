"""The controller's Deployment by its settings: the update strategy and the container's variables."""

from typing import Any, Unpack

import pytest

from plimsoll.components import Controller, ControllerArgs
from plimsoll.components.specs import CONTROLLER_SETTINGS
from tests.components.declaring import declared, manifest

ON_A_BUCKET: dict[str, Any] = {"backend": "s3://states", "passphrase": {"name": "plimsoll"}}
ON_A_VOLUME: dict[str, Any] = {"state_claim": "states", "passphrase": {"name": "plimsoll"}}


def deployment(**args: Unpack[ControllerArgs]) -> dict[str, Any]:
    given: ControllerArgs = {"image": "a:1", **args}
    made = manifest(declared(lambda: Controller("controller", given)), "Deployment")
    found: dict[str, Any] = made["spec"]
    return found


@pytest.mark.parametrize(
    ("args", "strategy"),
    [
        ({**ON_A_VOLUME, "replicas": 1}, "Recreate"),
        ({**ON_A_VOLUME, "replicas": 2}, "RollingUpdate"),
        ({**ON_A_BUCKET, "replicas": 1}, "RollingUpdate"),
    ],
)
def test_a_single_pod_on_a_volume_ends_before_the_next_one_starts(args: dict[str, Any], strategy: str) -> None:
    """A ReadWriteOnce volume is mounted on one node only, so the next pod would wait for the end of the first."""
    assert deployment(**args)["strategy"]["type"] == strategy


def test_variables_that_fields_set_are_refused_in_env() -> None:
    (container,) = deployment(**ON_A_BUCKET)["template"]["spec"]["containers"]
    assert {each["name"] for each in container["env"]} == set(CONTROLLER_SETTINGS)


def test_a_toleration_may_have_seconds() -> None:
    toleration: dict[str, Any] = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    given: Any = [{**toleration, "toleration_seconds": 30}]
    pod = deployment(**ON_A_BUCKET, tolerations=given)["template"]["spec"]
    assert pod["tolerations"] == [{**toleration, "tolerationSeconds": 30}]
