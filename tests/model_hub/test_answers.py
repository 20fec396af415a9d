"""Models of a hub in a snapshot: those that Workspaces name are read once, stored in the cluster, and read again after
failures."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.labels import API_VERSION
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment, Workspace, models_config_map, models_of
from plimsoll.observe.hub_models import AGAIN, LASTING_AGAIN, HubModels
from plimsoll.plan import plan, validate
from plimsoll.report import Reporter
from tests.builders import a_node, a_snapshot, a_workspace, an_environment
from tests.model_hub.hub import Hub

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NAME = "acme/law-8b"
PATH = "/api/v1/namespaces/plimsoll-system/configmaps/plimsoll-models"


class Cluster(Connection):
    """Holds the ConfigMap."""

    def __init__(self) -> None:
        super().__init__(client.Configuration())
        self.kept: dict[str, Any] | None = None
        self.error: PlimsollError | None = None
        self.writes = 0

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        if path != PATH:
            return {}
        if self.error is not None:
            raise self.error
        if method == "PATCH":
            self.kept = body
            self.writes += 1
        if self.kept is None:
            raise RequestError(404, "NotFound", "not found")
        return self.kept


class Asking:
    """Hub models with a clock that tests set, and a wait for background requests."""

    def __init__(self, connection: Connection | None = None, timeout: float | None = None) -> None:
        self.now = NOW
        self.answered = threading.Event()
        self.models = HubModels(connection, self.answered.set, timeout, lambda: self.now)

    def refresh(self) -> None:
        self.answered.clear()
        self.models.refresh()


@pytest.fixture
def asking() -> Iterator[Asking]:
    asking = Asking()
    yield asking
    asking.models.close()


def having(hub: Hub, **spec: Any) -> Environment:
    return an_environment(modelHub=hub.spec().manifest(), **spec)


def naming(hub: Hub, *names: str, **spec: Any) -> Snapshot:
    workspaces = [a_workspace(f"ws-{number}", preset=name) for number, name in enumerate(names)]
    nodes = [a_node(f"n-{number}") for number in range(len(names))]
    return a_snapshot(*workspaces, *nodes, environment=having(hub, **spec))


def refusal(snapshot: Snapshot) -> str:
    [verdict] = validate(snapshot)
    assert not verdict.accepted
    return f"{verdict.reason}: {verdict.message}"


def test_a_model_of_the_hub_is_planned_like_any_other(hub: Hub, asking: Asking) -> None:
    hub.add(NAME)
    seen = asking.models.completed(naming(hub, NAME))
    [verdict] = validate(seen)
    assert verdict.accepted, verdict.message
    assert verdict.serving is not None and verdict.serving.context_length > 2048
    [workload, _] = plan(seen, [verdict], NOW).creations
    arguments = workload.manifest["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[:3] == [NAME, "--served-model-name", NAME]
    asked = len(hub.asked)
    asking.models.completed(naming(hub, NAME))
    assert len(hub.asked) == asked


def test_known_and_forbidden_models_are_not_requested(hub: Hub, asking: Asking) -> None:
    given = {"sizeGiB": 1, "config": {"num_hidden_layers": 1, "num_attention_heads": 1, "hidden_size": 64}}
    seen = a_snapshot(
        a_workspace("a", preset="microsoft/phi-4"),
        a_workspace("b", preset="own/model"),
        a_workspace("c", preset="nonsense"),
        a_workspace("d", preset="../../admin"),
        a_workspace("e", preset="org/../admin"),
        a_workspace("f", preset="org/name/more"),
        a_workspace("g"),
        environment=having(hub, presets=[{"name": "own/model", "repository": "own/model", **given}]),
    )
    assert asking.models.completed(seen).hub_refusals == {}
    without = a_snapshot(a_workspace(preset=NAME))
    assert asking.models.completed(without) is without
    assert hub.asked == []


def test_without_a_hub_the_setting_is_named() -> None:
    assert "modelHub" in refusal(a_snapshot(a_workspace(preset=NAME), a_node()))


def with_token_for(hub: Hub, *owners: str) -> Snapshot:
    environment = an_environment(modelHub=hub.spec(tokenOrganizations=list(owners)).manifest())
    return naming(hub, NAME).model_copy(update={"environment": environment})


def test_a_tenant_learns_nothing_by_the_controllers_token_unless_the_environment_names_the_owner(
    hub: Hub, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME)
    hub.gated[NAME] = "secret"
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert "tokenOrganizations" in refusal(asking.models.completed(with_token_for(hub)))
    assert "tokenOrganizations" in refusal(asking.models.completed(with_token_for(hub, "other")))
    assert {token for _, _, token in hub.asked} == {""}
    [known] = asking.models.completed(with_token_for(hub, "ACME")).hub_models
    assert known.gated
    assert "tokenOrganizations" in refusal(asking.models.completed(with_token_for(hub))), "what is known is forgotten"


def test_owners_are_limited(hub: Hub, asking: Asking) -> None:
    hub.add(NAME)
    seen = naming(hub, NAME).model_copy(
        update={"environment": an_environment(modelHub=hub.spec(organizations=["Qwen"]).manifest())}
    )
    assert "organizations" in refusal(asking.models.completed(seen))
    assert hub.asked == []


def test_owners_that_are_no_longer_allowed_are_refused_although_their_model_was_read(hub: Hub, asking: Asking) -> None:
    hub.add(NAME)
    seen = naming(hub, NAME)
    assert validate(asking.models.completed(seen))[0].accepted
    narrowed = an_environment(modelHub=hub.spec(organizations=["Qwen"]).manifest())
    assert "organizations" in refusal(asking.models.completed(seen.model_copy(update={"environment": narrowed})))


def test_a_refused_model_that_no_workspace_names_is_not_requested_again(hub: Hub, asking: Asking) -> None:
    asking.models.completed(naming(hub, NAME))
    asking.models.completed(naming(hub))
    asked = len(hub.asked)
    asking.now += LASTING_AGAIN
    asking.refresh()
    asking.models.close()
    assert len(hub.asked) == asked


def test_a_refused_model_has_a_reason_and_is_requested_again(hub: Hub, asking: Asking) -> None:
    seen = naming(hub, NAME)
    assert f"UnknownPreset: preset '{NAME}'" in refusal(asking.models.completed(seen))
    assert "no config.json" in refusal(asking.models.completed(seen))
    hub.add(NAME)
    asking.now += LASTING_AGAIN - timedelta(seconds=1)
    asking.refresh()
    assert "no config.json" in refusal(asking.models.completed(seen))
    asking.now += timedelta(seconds=1)
    asking.refresh()
    assert asking.answered.wait(120)
    assert validate(asking.models.completed(seen))[0].accepted


def test_a_failing_hub_is_requested_again_soon(hub: Hub, asking: Asking) -> None:
    hub.add(NAME)
    hub.status = 503
    seen = naming(hub, NAME)
    assert "503" in refusal(asking.models.completed(seen))
    hub.status = 0
    asking.now += AGAIN
    asking.refresh()
    assert asking.answered.wait(120)
    assert validate(asking.models.completed(seen))[0].accepted


def test_a_model_is_requested_again_after_an_unexpected_error(
    hub: Hub, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME)
    with monkeypatch.context() as patched:
        patched.setattr("plimsoll.observe.hub_models.read_hub_model", lambda *_: 1 / 0)
        refused = validate(asking.models.completed(naming(hub, NAME)))[0]
    assert "ZeroDivisionError" in refused.message
    asking.now += LASTING_AGAIN
    asking.refresh()
    assert asking.answered.wait(120)
    assert validate(asking.models.completed(naming(hub, NAME)))[0].accepted


def test_a_changed_hub_is_requested_at_once(hub: Hub, asking: Asking) -> None:
    seen = naming(hub, NAME)
    nobody = an_environment(modelHub={"endpoint": "http://127.0.0.1:1"})
    assert "127.0.0.1:1" in refusal(asking.models.completed(seen.model_copy(update={"environment": nobody})))
    hub.add(NAME)
    assert validate(asking.models.completed(seen))[0].accepted


def test_a_loop_does_not_wait_for_a_slow_hub(hub: Hub) -> None:
    hub.add(NAME)
    hub.slow.set()
    asking = Asking(timeout=0.0)
    before = asking.models.version
    assert "is being read from" in refusal(asking.models.completed(naming(hub, NAME)))
    hub.slow.clear()
    assert asking.answered.wait(120)
    assert asking.models.version > before
    asking.models.close()


def test_a_model_is_awaited_once(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    awaited: list[int] = []
    monkeypatch.setattr("plimsoll.observe.hub_models.wait", lambda futures, _: awaited.append(len(futures)))
    hub.add(NAME)
    hub.slow.set()
    asking = Asking(timeout=2.0)
    for names in ([NAME], [NAME], [NAME, "acme/other"]):
        assert asking.models.completed(naming(hub, *names)).hub_models == ()
    assert awaited == [1, 0, 1], "a further snapshot does not wait for an answer that did not come in time"
    hub.slow.clear()
    asking.models.close()


def test_many_models_are_read_within_one_deadline(hub: Hub, asking: Asking) -> None:
    names = [f"acme/m-{number}" for number in range(8)]
    for name in names:
        hub.add(name)
    assert {each.name for each in asking.models.completed(naming(hub, *names)).hub_models} == set(names)


def test_models_are_stored_in_the_cluster(hub: Hub) -> None:
    hub.add(NAME)
    cluster = Cluster()
    asking, reporter = Asking(cluster), Reporter(cluster)
    seen = asking.models.completed(naming(hub, NAME))
    for _ in range(2):
        reporter.report(seen, plan(seen, validate(seen), NOW), NOW)
        reporter.flush()
    assert cluster.writes == 1
    assert cluster.kept is not None and list(cluster.kept["data"]) == ["acme--law-8b"]
    asking.models.close()
    asked = len(hub.asked)
    later = Asking(cluster)
    assert validate(later.models.completed(naming(hub, NAME)))[0].accepted
    assert len(hub.asked) == asked
    later.models.close()
    nobody: tuple[Workspace, ...] = ()
    gone = seen.model_copy(update={"workspaces": nobody, "hub_models": ()})
    reporter.report(gone, plan(gone, (), NOW), NOW)
    reporter.close()
    assert cluster.kept["data"] == {}


def test_invalid_stored_models_are_read_again(hub: Hub) -> None:
    hub.add(NAME)
    cluster = Cluster()
    cluster.kept = {"data": {"acme--law-8b": '{"sizeGiB": "x"}', "else": "no JSON"}}
    asking = Asking(cluster)
    assert validate(asking.models.completed(naming(hub, NAME)))[0].accepted
    asking.models.close()


def test_an_unreadable_config_map_is_a_warning(hub: Hub) -> None:
    hub.add(NAME)
    cluster = Cluster()
    cluster.error = RequestError(403, "Forbidden", "configmaps is forbidden")
    asking = Asking(cluster)
    seen = asking.models.completed(naming(hub, NAME))
    assert validate(seen)[0].accepted
    assert any("plimsoll-models: configmaps is forbidden" in warning for warning in seen.warnings)
    asking.models.close()


def test_the_config_map_is_read_as_it_was_written(hub: Hub, asking: Asking) -> None:
    hub.add(NAME)
    models = asking.models.completed(naming(hub, NAME)).hub_models
    assert models_of(models_config_map(models)) == models


def test_estimate_reads_a_model_with_the_option_hub(hub: Hub, tmp_path: Path) -> None:
    hub.add(NAME)
    on = ["--instance-type", "Standard_NC24ads_A100_v4", "--output", "json"]
    reported = CliRunner().invoke(app, ["estimate", NAME, "--hub", hub.url, *on])
    assert reported.exit_code == 0, reported.output
    file = tmp_path / "environment.yaml"
    spec = {"modelHub": {"endpoint": hub.url}}
    file.write_text(yaml.safe_dump({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Environment", "spec": spec}))
    assert CliRunner().invoke(app, ["estimate", NAME, "-f", str(file), *on]).output == reported.output
    with pytest.raises(PlimsollError, match="neither a preset"):
        CliRunner().invoke(app, ["estimate", NAME, *on], catch_exceptions=False)
    with pytest.raises(PlimsollError, match="not a URL"):
        CliRunner().invoke(app, ["estimate", NAME, "--hub", "huggingface.co", *on], catch_exceptions=False)


def test_plan_from_files_reads_a_model(hub: Hub, tmp_path: Path) -> None:
    hub.add(NAME)
    selector = {"matchLabels": {"pool": "a"}}
    workspace = {"resource": {"labelSelector": selector}, "inference": {"preset": {"name": NAME}}}
    node = {
        "nvidia.com/gpu.product": "A100",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.memory": "81920",
        "pool": "a",
    }
    manifests = [
        {"apiVersion": API_VERSION, "kind": "Environment", "spec": {"modelHub": {"endpoint": hub.url}}},
        {"apiVersion": API_VERSION, "kind": "Workspace", "metadata": {"name": "law"}, "spec": workspace},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": node}},
    ]
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    planned = CliRunner().invoke(app, ["plan", "-f", str(file)])
    assert planned.exit_code == 0, planned.output
    explained = CliRunner().invoke(app, ["why", "workspace", "law", "-f", str(file)])
    assert explained.exit_code == 0, explained.output
