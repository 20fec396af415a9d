"""The controller's Deployment by its settings: the update strategy and the container's variables."""

from typing import Any, Unpack

import pytest

from plimsoll.components import Controller, ControllerArgs, InvalidArgumentError
from plimsoll.components.specs import CONTROLLER_SETTINGS
from tests.components.declaring import declared, manifest

ON_A_BUCKET: dict[str, Any] = {"backend": "s3://states", "passphrase": {"name": "plimsoll"}}
ON_A_VOLUME: dict[str, Any] = {"state_claim": "states", "passphrase": {"name": "plimsoll"}}


def made(kind: str, **args: Unpack[ControllerArgs]) -> dict[str, Any]:
    """The spec of its object of this kind."""
    given: ControllerArgs = {"image": "a:1", **args}
    found: dict[str, Any] = manifest(declared(lambda: Controller("controller", given)), kind)["spec"]
    return found


def deployment(**args: Unpack[ControllerArgs]) -> dict[str, Any]:
    return made("Deployment", **args)


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


@pytest.mark.parametrize("backend", ["s3://states", "gs://states", "azblob://states", "https://api.pulumi.com/org"])
def test_a_state_may_be_on_each_shared_backend(backend: str) -> None:
    (container,) = deployment(**{**ON_A_BUCKET, "backend": backend})["template"]["spec"]["containers"]
    assert backend in {variable.get("value") for variable in container["env"]}


@pytest.mark.parametrize("provider", ["awskms", "azurekeyvault", "gcpkms", "hashivault"])
def test_a_key_of_each_secrets_provider_takes_the_place_of_the_passphrase(provider: str) -> None:
    key = f"{provider}://key"
    given: Any = {"backend": "s3://states", "secrets_provider": key}
    (container,) = deployment(**given)["template"]["spec"]["containers"]
    assert any(key in str(part) for part in (container["env"], container.get("args"), container.get("command")))


def test_only_the_scraper_reaches_the_metrics_and_nobody_the_probes() -> None:
    closed = made("NetworkPolicy", **ON_A_BUCKET)
    assert (closed["ingress"], closed["policyTypes"]) == ([], ["Ingress", "Egress"])
    scraper: Any = {"namespace": "monitoring", "pod_labels": {"app": "prometheus"}}
    (rule,) = made("NetworkPolicy", **ON_A_BUCKET, scraper=scraper)["ingress"]
    assert rule["from"] == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
            "podSelector": {"matchLabels": {"app": "prometheus"}},
        }
    ]
    assert rule["ports"] == [{"protocol": "TCP", "port": 9464}]


def test_metrics_and_probes_cannot_have_one_port() -> None:
    with pytest.raises(InvalidArgumentError, match=r"metricsPort.*healthProbePort"):
        deployment(**ON_A_BUCKET, metrics_port=9000, health_probe_port=9000)
