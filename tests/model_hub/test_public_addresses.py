"""A hub, or who answers for its name, cannot have the controller ask servers of the cluster, the node or the cloud."""

import socket
from typing import Any
from urllib.request import Request

import pytest
from pydantic import ValidationError

from plimsoll.model.api import MOST_MODELS_BYTES, DeclaredPreset, ModelHub, models_config_map, models_of
from plimsoll.observe.hub_models import MOST_OF_NAMESPACE, HubModels
from plimsoll.observe.model_hub import HubError, read_hub_model
from plimsoll.observe.public_addresses import Reachable
from tests.builders import a_snapshot, a_workspace, an_environment
from tests.model_hub.hub import Hub, a_hub

NAME = "org/model"
PRIVATE = (
    "127.0.0.1", "127.8.8.8", "10.96.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "224.0.0.1", "::1", "::", "fe80::1", "fd00:ec2::254", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
)  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_leads_to_a_private_address_is_not_asked(address: str) -> None:
    assert not Reachable(()).admits(address, "hub.example.com")
    assert Reachable([f"{address}/{128 if ':' in address else 32}"]).admits(address, "hub.example.com") is (
        not address.startswith(("::ffff", "64:", "2002:"))
    ), "a network has to be named as it is reached"


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111"])
def test_public_addresses_are_asked(address: str) -> None:
    assert Reachable(()).admits(address, "hub.example.com")


def test_an_endpoint_that_is_an_address_is_asked_there_and_nowhere_else() -> None:
    own = Reachable((), "127.0.0.1")
    assert own.admits("127.0.0.1", "127.0.0.1")
    assert not own.admits("127.0.0.1", "localhost")
    assert not own.admits("10.0.0.1", "10.0.0.1")
    assert not Reachable((), "localhost").admits("127.0.0.1", "localhost"), "a name is no address"


@pytest.mark.parametrize(
    "target",
    ["localhost:9", "127.8.8.8", "169.254.169.254", "[::1]", "[fe80::1]", "[::ffff:169.254.169.254]", "10.0.0.1"],
)
def test_a_redirect_to_a_private_address_is_refused(hub: Hub, target: str) -> None:
    hub.add(NAME)
    hub.redirects[f"/{NAME}/resolve/main/config.json"] = f"http://{target}/latest/meta-data/"
    with pytest.raises(HubError, match="which is no public address") as error:
        read_hub_model(hub.spec(), NAME)
    assert error.value.lasting
    assert "modelHub.privateNetworks" in error.value.message


def test_a_name_is_resolved_once_so_that_it_cannot_change_between_check_and_use(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME)
    port = int(hub.url.rpartition(":")[2])
    answers = iter(["127.0.0.1", "8.8.8.8"])

    def resolve(host: str, *given: Any, **more: Any) -> Any:
        if host != "hub.test":
            return real(host, *given, **more)
        return real(next(answers), *given, **more)

    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("no_proxy", "*")
    spec = ModelHub.model_validate({"endpoint": f"http://hub.test:{port}", "deadlineSeconds": 10})
    with pytest.raises(HubError, match=r"hub\.test is at 127\.0\.0\.1"):
        read_hub_model(spec, NAME)
    answers = iter(["127.0.0.1"] * 9)
    allowed = spec.model_copy(update={"private_networks": ("127.0.0.0/8",)})
    assert read_hub_model(allowed, NAME).name == NAME


def test_a_proxy_is_asked_wherever_it_is_and_not_for_private_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_hub() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(HubError):  # the hub is no proxy, and has been asked
            read_hub_model(ModelHub.model_validate({"endpoint": "http://hub.example.com", "deadlineSeconds": 10}), NAME)
        assert proxy.asked
        proxy.asked.clear()
        proxy.status = 0
        reachable = Reachable(())
        request = Request("http://169.254.169.254/latest")
        request.set_proxy("127.0.0.1:1", "http")
        with pytest.raises(OSError, match="no public address"):
            reachable.of(request)


@pytest.mark.parametrize("network", ["10.0.0.0/33", "hub", ""])
def test_a_network_is_a_cidr(network: str) -> None:
    with pytest.raises(ValidationError):
        ModelHub.model_validate({"privateNetworks": [network]})


def test_one_namespace_names_so_many_models(hub: Hub) -> None:
    hub.status = 404
    names = [f"org/model-{number:04}" for number in range(MOST_OF_NAMESPACE + 20)]
    workspaces = [a_workspace(f"ws-{n:04}", namespace="hostile", preset=name) for n, name in enumerate(names)]
    workspaces.append(a_workspace("own", namespace="team", preset="other/model"))
    models = HubModels()
    try:
        environment = an_environment(modelHub=hub.spec().manifest())
        found = models.completed(a_snapshot(*workspaces, environment=environment)).hub_refusals
    finally:
        models.close()
    beyond = [name for name, why in found.items() if "are read for one namespace" in why]
    assert beyond == names[MOST_OF_NAMESPACE:]
    assert "other/model" not in beyond
    assert len({path.split("/resolve")[0] for _, path, _ in hub.asked}) <= MOST_OF_NAMESPACE + 1


def test_the_config_map_is_bounded() -> None:
    large = [
        DeclaredPreset(name=f"org/m-{number}", repository="r" * 200, size_gib=1, config={"hidden_size": 1})
        for number in range(4000)
    ]
    kept = models_config_map(large)
    assert sum(len(key) + len(text) for key, text in kept["data"].items()) <= MOST_MODELS_BYTES
    assert len(models_of(kept)) > 100
