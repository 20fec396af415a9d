"""The pods of a preset: server, adapters, options, and the token for a gated model."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from plimsoll.presets import ModelCatalog
from tests.builders import a_node, a_snapshot, a_workspace

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pods_of(preset: dict[str, Any] | None = None, **inference: Any) -> dict[str, Any]:
    """The pod spec of a Workspace on one existing node."""
    plain = a_workspace(preset="phi-4-mini-instruct")
    manifest = {
        "metadata": {"name": "ws", "namespace": "default"},
        "spec": {
            "resource": plain.spec.resource.manifest(),
            "inference": {"preset": {"name": "phi-4-mini-instruct", **(preset or {})}, **inference},
        },
    }
    snapshot = a_snapshot(Workspace.read(manifest), a_node())
    creations = plan(snapshot, validate(snapshot), NOW).creations
    (creation,) = [each for each in creations if each.key.kind != "Service"]
    spec: dict[str, Any] = creation.manifest["spec"]["template"]["spec"]
    return spec


def test_a_preset_alone_has_shared_memory_and_its_weights_on_a_volume() -> None:
    spec = pods_of()
    assert {"initContainers", "imagePullSecrets"} & set(spec) == set()
    assert spec["volumes"] == [
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "weights", "emptyDir": {}},
    ]
    (server,) = spec["containers"]
    assert {"name": "HF_HOME", "value": "/mnt/weights"} in server["env"]


def test_weights_on_a_read_only_claim_are_not_downloaded() -> None:
    source = {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}}
    spec = pods_of(weights={"volumeSource": source, "readOnly": True})
    (server,) = spec["containers"]
    assert {"name": "weights", **source} in spec["volumes"]
    assert {"name": "weights", "mountPath": "/mnt/weights", "readOnly": True} in server["volumeMounts"]
    assert {"name": "HF_HUB_OFFLINE", "value": "1"} in server["env"]


def test_the_server_is_probed_and_ends_gracefully() -> None:
    spec = pods_of()
    (server,) = spec["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert server[probe]["httpGet"] == {"path": "/health", "port": "http"}
    start = server["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= 1800, "the download is a part of it"
    assert server["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "10"]
    assert spec["terminationGracePeriodSeconds"] == 120


@pytest.mark.parametrize("name", ["phi-4-mini-instruct", "qwen3.5-2b", "phi-4"])
def test_larger_files_have_more_time_until_the_server_is_there(name: str) -> None:
    known = ModelCatalog.builtin().find(name)
    assert known is not None
    (server,) = pods_of({"name": name})["containers"]
    probe = server["startupProbe"]
    seconds = probe["periodSeconds"] * probe["failureThreshold"]
    assert 0 <= seconds - (1800 + 10 * known.size_gib) <= probe["periodSeconds"] + 1


def test_an_adapter_is_copied_out_of_its_image_before_the_server_starts() -> None:
    source = {"name": "law", "image": "registry/law:1", "imagePullSecrets": ["pull"]}
    spec = pods_of(adapters=[{"source": source, "strength": "1.0"}])
    (copying,) = spec["initContainers"]
    assert copying["image"] == "registry/law:1"
    assert copying["command"][-1] == "/mnt/adapters/law"
    (server,) = spec["containers"]
    assert copying["volumeMounts"][0] in server["volumeMounts"]
    assert server["args"][-4:] == ["--max-loras", "1", "--lora-modules", "law=/mnt/adapters/law"]
    assert spec["imagePullSecrets"] == [{"name": "pull"}]


def test_an_adapter_on_a_volume_is_mounted() -> None:
    volume = {"persistentVolumeClaim": {"claimName": "law"}}
    spec = pods_of(adapters=[{"source": {"name": "law", "volumeSource": volume}}])
    mounted = spec["volumes"][-1]
    assert mounted["persistentVolumeClaim"] == {"claimName": "law"}
    assert {"name": mounted["name"], "mountPath": "/mnt/adapters/law"} in spec["containers"][0]["volumeMounts"]


def test_options_and_the_token_come_from_their_objects() -> None:
    spec = pods_of({"presetOptions": {"modelAccessSecret": "token"}}, config="options")
    (server,) = spec["containers"]
    assert server["args"][-2:] == ["--config", "/mnt/options/vllm.yaml"]
    assert {"name": "options", "configMap": {"name": "options"}} in spec["volumes"]
    assert server["env"][1]["valueFrom"]["secretKeyRef"] == {"name": "token", "key": "HF_TOKEN"}
