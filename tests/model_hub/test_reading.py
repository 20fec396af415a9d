"""Reading one model of a hub: its figures, or why they are not available."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.model.api import ModelHub
from plimsoll.observe.model_hub import HubError, read_hub_model
from plimsoll.presets import read_model_config
from tests.model_hub.hub import INDEX, LLAMA, Hub

NAME = "acme/law-8b"


def test_figures_are_those_of_config_and_index(hub: Hub) -> None:
    hub.add(NAME)
    found = read_hub_model(hub.spec(), NAME)
    assert (found.name, found.repository, found.gated) == (NAME, NAME, False)
    assert found.size_gib == pytest.approx(14.9575, abs=1e-3)
    assert read_model_config(found.config) == read_model_config(LLAMA)
    assert "rope_scaling" not in found.config


@pytest.mark.parametrize(
    "config",
    [
        {"text_config": LLAMA, "vision_config": {"hidden_size": 1024}},
        {**LLAMA, "kv_lora_rank": 512, "qk_rope_head_dim": 64},
        {"n_layer": 32, "n_head": 71, "n_embd": 4544, "multi_query": True},
    ],
)
def test_a_stored_model_reads_back_equal(hub: Hub, config: dict[str, Any]) -> None:
    hub.add(NAME, config)
    assert read_model_config(read_hub_model(hub.spec(), NAME).config) == read_model_config(config)


def test_one_file_of_weights_is_measured_and_not_read(hub: Hub) -> None:
    hub.add(NAME, index=None, model_safetensors=b"x" * 4096)
    assert read_hub_model(hub.spec(), NAME).size_gib == pytest.approx(4096 / 1024**3)
    assert ("GET", f"/{NAME}/resolve/main/model.safetensors", "") not in hub.asked


def test_the_token_follows_a_redirect_of_the_hub_and_no_other(hub: Hub) -> None:
    """The hub redirects to paths of its own, for a renamed model for example, and to the servers of files."""
    hub.add("acme/renamed")
    for name in (NAME, "acme/renamed"):
        hub.gated[name] = "secret"
    for file in ("config.json", "model.safetensors.index.json"):
        hub.redirects[f"/{NAME}/resolve/main/{file}"] = f"/acme/renamed/resolve/main/{file}"
    hub.redirects["/acme/renamed/resolve/main/config.json"] = (
        f"{hub.url.replace('127.0.0.1', 'localhost')}/store/config"
    )
    hub.files["/store/config"] = json.dumps(LLAMA).encode()
    spec = hub.spec(privateNetworks=["127.0.0.0/8", "::1/128"])
    assert read_hub_model(spec, NAME, "secret\n").gated
    assert ("GET", "/acme/renamed/resolve/main/model.safetensors.index.json", "Bearer secret") in hub.asked
    assert ("GET", "/store/config", "") in hub.asked


def test_the_size_of_redirected_weights_is_read_and_not_the_weights(hub: Hub) -> None:
    path = f"/{NAME}/resolve/main/model.safetensors"
    hub.add(NAME, index=None)
    hub.redirects[path] = "/store/weights"
    hub.files["/store/weights"] = b"x" * 4096
    assert read_hub_model(hub.spec(), NAME).size_gib == pytest.approx(4096 / 1024**3)
    assert [each for each in hub.asked if each[1] == "/store/weights"] == [("HEAD", "/store/weights", "")]
    hub.asked.clear()
    hub.linked_sizes[path] = 8192
    assert read_hub_model(hub.spec(), NAME).size_gib == pytest.approx(8192 / 1024**3)
    assert "/store/weights" not in {asked for _, asked, _ in hub.asked}


@pytest.mark.parametrize("token", ["two\nlines", "sécret"])
def test_an_unusable_token_is_an_error_without_it(hub: Hub, token: str) -> None:
    hub.add(NAME)
    with pytest.raises(HubError, match="HF_TOKEN") as raised:
        read_hub_model(hub.spec(), NAME, token)
    assert token not in str(raised.value) and "lines" not in str(raised.value)
    assert not hub.asked


def test_the_token_is_used_only_where_it_is_needed(hub: Hub) -> None:
    hub.add(NAME)
    assert not read_hub_model(hub.spec(), NAME, "secret").gated
    assert {token for _, _, token in hub.asked} == {""}


@pytest.mark.parametrize(
    ("config", "index", "text", "lasting"),
    [
        (None, INDEX, "no config.json", True),
        (LLAMA, None, "no safetensors files", True),
        (LLAMA, {"metadata": {}}, "metadata.total_size", True),
        (LLAMA, {"metadata": {"total_size": -1}}, "metadata.total_size", True),
        (LLAMA, {"metadata": {"total_size": 1e-320}}, "metadata.total_size", True),
        (LLAMA, {"metadata": {"total_size": True}}, "metadata.total_size", True),
        (LLAMA, {"metadata": {"total_size": 10**30}}, "metadata.total_size", True),
        ([], INDEX, "config.json is not a JSON object", True),
        ({"hidden_size": 1}, INDEX, "num_hidden_layers is missing", True),
        ({**LLAMA, "num_hidden_layers": "many"}, INDEX, "num_hidden_layers must be", True),
    ],
)
def test_missing_files_and_fields_are_named(hub: Hub, config: Any, index: Any, text: str, lasting: bool) -> None:
    hub.add(NAME, config, index)
    with pytest.raises(HubError, match=text) as raised:
        read_hub_model(hub.spec(), NAME)
    assert NAME in raised.value.message and hub.url in raised.value.message
    assert raised.value.lasting is lasting and "preset.parameters" in str(raised.value.hint)


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_gated_model_is_refused_with_the_hubs_message(hub: Hub, token: str) -> None:
    hub.add(NAME)
    hub.gated[NAME] = "secret"
    with pytest.raises(HubError, match="GatedRepo") as raised:
        read_hub_model(hub.spec(), NAME, token)
    assert raised.value.lasting and "of your shell for plimsoll estimate" in str(raised.value.hint)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failing_hub_is_asked_again(hub: Hub, status: int) -> None:
    hub.status = status
    with pytest.raises(HubError, match=str(status)) as raised:
        read_hub_model(hub.spec(), NAME)
    assert not raised.value.lasting


def test_a_slow_answer_ends_at_the_deadline(hub: Hub) -> None:
    hub.add(NAME)
    hub.slow.set()
    with pytest.raises(HubError, match="within 1 seconds") as raised:
        read_hub_model(hub.spec(deadlineSeconds=1), NAME)
    assert not raised.value.lasting


def test_an_unreachable_hub(hub: Hub) -> None:
    with pytest.raises(HubError, match=r"refused|Errno") as raised:
        read_hub_model(hub.spec(endpoint="http://127.0.0.1:1"), NAME)
    assert not raised.value.lasting


@pytest.mark.parametrize("endpoint", ["http://[::1", "http://127.0.0.1:99999", "http://x:y"])
def test_an_invalid_address_is_an_error_of_the_hub(endpoint: str) -> None:
    with pytest.raises(HubError, match="acme/law-8b at "):
        read_hub_model(ModelHub(endpoint=endpoint), NAME)


@pytest.mark.parametrize(
    "endpoint", ["ftp://hub", "hub", "http://", "http://user:secret@hub", "http://a b", "http://a?b"]
)
def test_an_endpoint_is_an_address_without_a_password(endpoint: str) -> None:
    with pytest.raises(ValidationError):
        ModelHub(endpoint=endpoint)
