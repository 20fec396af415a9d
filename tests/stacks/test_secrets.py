"""Strings of a configuration key with a secret are secret in the objects and in the exports."""

import json
from typing import Any

import pulumi
import pytest
from google.protobuf.json_format import MessageToDict

from plimsoll.stacks import run
from tests.components.declaring import requests

SIGNATURE = "4dabf18193072939515e22adb298388d"
CONTROLLER: dict[str, Any] = {
    "image": "a:1",
    "passphrase": {"name": "plimsoll"},
    "env": {"PULUMI_ACCESS_TOKEN": "hidden-token"},
    "podLabels": {"team": "hidden-team"},
    "serviceAccountAnnotations": {"role": "hidden-role"},
    "ui": {"env": {"TOKEN": "hidden-ui"}, "serviceAccountAnnotations": {"role": "hidden-ui-role"}},
}


def registered(config: dict[str, Any], *secret_keys: str) -> dict[str, Any]:
    """The inputs of each resource by `type::name`; a secret string is `{"secret": STRING}`."""
    texts = {f"plimsoll:{key}": value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    made = requests(run, texts, [f"plimsoll:{key}" for key in secret_keys])
    return {name: marked(MessageToDict(each.object)) for name, each in made.items()}


def marked(value: Any) -> Any:
    if isinstance(value, dict):
        if SIGNATURE in value:
            return {"secret": value["value"]}
        return {key: marked(item) for key, item in value.items()}
    return [marked(item) for item in value] if isinstance(value, list) else value


def readable(value: Any) -> list[str]:
    """The strings that are not secret."""
    if isinstance(value, dict):
        return [] if "secret" in value else [each for item in value.values() for each in readable(item)]
    if isinstance(value, list):
        return [each for item in value for each in readable(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("state", [{"backend": "s3://hidden-states"}, {"stateClaim": "hidden-claim"}])
def test_settings_of_the_controller_are_secret(state: dict[str, Any]) -> None:
    made = registered({"layer": "foundation", "controller": {**CONTROLLER, **state}}, "controller")
    assert not [text for text in readable(made) if "hidden" in text]
    pod = made["kubernetes:Deployment::controller-plimsoll-controller"]["spec"]["template"]["spec"]
    env = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    assert env["PULUMI_ACCESS_TOKEN"] == {"secret": "hidden-token"}
    assert env["PLIMSOLL_METRICS_HOST"] == "0.0.0.0"
    assert made["kubernetes:ServiceAccount::plimsoll-plimsoll"]["metadata"]["annotations"]["role"] == {
        "secret": "hidden-role"
    }


def test_without_a_secret_the_settings_of_the_controller_are_readable() -> None:
    config = {"layer": "foundation", "controller": {**CONTROLLER, "backend": "s3://hidden-states"}}
    assert readable(registered(config)).count("hidden-token") == 2, "of the component and of its Deployment"


def test_fields_of_kaito_workspaces_are_secret() -> None:
    fields = {"resource": {"instanceType": "hidden-type"}, "inference": {"template": {"x": ["hidden-x"]}}}
    config = {"layer": "objects", "kaitoWorkspaces": {"w": {"fields": fields}}}
    workspace = registered(config, "kaitoWorkspaces")["kubernetes:Workspace::kaito-w"]
    assert workspace["resource"] == {"instanceType": {"secret": "hidden-type"}}
    assert not [text for text in readable(workspace) if "hidden" in text]
    assert registered(config)["kubernetes:Workspace::kaito-w"]["resource"] == fields["resource"]


def test_the_exported_parent_of_a_queue_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    exported: dict[str, Any] = {}
    monkeypatch.setattr(pulumi, "export", exported.__setitem__)
    registered({"layer": "objects", "queues": {"q": {"parentQueue": "hidden-parent"}}}, "queues")
    assert isinstance(exported["queues"]["q"]["parentQueue"], pulumi.Output)


def test_a_secret_in_settings_that_determine_objects_is_refused() -> None:
    with pytest.raises(pulumi.RunError, match="ShareBinder share-binder: image: is an Output"):
        registered({"layer": "environment", "shareBinder": {"image": "hidden:1"}}, "shareBinder")
