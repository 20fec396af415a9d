"""What a preset's pods carry beside their server: adapters, options, the token for a gated model."""

from datetime import UTC, datetime
from typing import Any

from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import a_node, a_snapshot, a_workspace

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pods_of(preset: dict[str, Any] | None = None, **inference: Any) -> dict[str, Any]:
    """The pod spec of a Workspace on one brought node."""
    plain = a_workspace(preset="phi-4-mini-instruct")
    manifest = {
        "metadata": {"name": "ws", "namespace": "default"},
        "spec": {
            "resource": plain.spec.resource.manifest(),
            "inference": {"preset": {"name": "phi-4-mini-instruct", **(preset or {})}, **inference},
        },
    }
    snapshot = a_snapshot(Workspace.read(manifest), a_node())
    (creation,) = plan(snapshot, validate(snapshot), NOW).creations
    spec: dict[str, Any] = creation.manifest["spec"]["template"]["spec"]
    return spec


def test_a_preset_alone_needs_nothing_more() -> None:
    assert {"volumes", "initContainers", "imagePullSecrets"} & set(pods_of()) == set()


def test_an_adapter_is_copied_out_of_its_image_before_the_server_starts() -> None:
    source = {"name": "law", "image": "registry/law:1", "imagePullSecrets": ["pull"]}
    spec = pods_of(adapters=[{"source": source, "strength": "1.0"}])
    (copying,) = spec["initContainers"]
    assert copying["image"] == "registry/law:1"
    assert copying["command"][-1] == "/mnt/adapters/law"
    (server,) = spec["containers"]
    assert server["volumeMounts"] == copying["volumeMounts"]
    assert server["args"][-4:] == ["--max-loras", "1", "--lora-modules", "law=/mnt/adapters/law"]
    assert spec["imagePullSecrets"] == [{"name": "pull"}]


def test_an_adapter_on_a_volume_is_mounted() -> None:
    volume = {"persistentVolumeClaim": {"claimName": "law"}}
    spec = pods_of(adapters=[{"source": {"name": "law", "volumeSource": volume}}])
    (mounted,) = spec["volumes"]
    assert mounted["persistentVolumeClaim"] == {"claimName": "law"}
    assert spec["containers"][0]["volumeMounts"] == [{"name": mounted["name"], "mountPath": "/mnt/adapters/law"}]


def test_options_and_the_token_come_from_their_objects() -> None:
    spec = pods_of({"presetOptions": {"modelAccessSecret": "token"}}, config="options")
    (server,) = spec["containers"]
    assert server["args"][-2:] == ["--config", "/mnt/options/vllm.yaml"]
    assert spec["volumes"] == [{"name": "options", "configMap": {"name": "options"}}]
    assert server["env"][0]["valueFrom"]["secretKeyRef"] == {"name": "token", "key": "HF_TOKEN"}
