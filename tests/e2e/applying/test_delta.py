"""Applying a Plan changes exactly the objects of the Plan in the cluster."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from structlog.testing import capture_logs

from plimsoll.apply import Applier, ApplySettings, FailureKind, OwnedResource
from plimsoll.kube import Objects
from plimsoll.labels import SHARD
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.applying.capacity import (
    NODE_CLAIM,
    a_claim,
    a_deployment,
    a_writer,
    both,
    checkpoint,
    creating,
    deleting,
    key_of,
    names,
    pre_started,
    settings_for,
    updating,
)
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e


@pytest.fixture
def settings(claims_sandbox: Sandbox, tmp_path: Path) -> ApplySettings:
    return settings_for(claims_sandbox, tmp_path)


@pytest.fixture(scope="module")
def writer(claims_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applier]:
    """A writer for all tests whose objects have names of their own."""
    with a_writer(settings_for(claims_sandbox, tmp_path_factory.mktemp("shared"))) as applier:
        yield applier


@pytest.fixture
def cluster(claims_sandbox: Sandbox, kube: Callable[..., Kube]) -> Kube:
    return kube(claims_sandbox)


def owned(writer: Applier, prefix: str) -> dict[str, OwnedResource]:
    """The objects of the writer's states whose names begin like this, by name."""
    return {each.key.name: each for each in writer.resources() if each.key.name.startswith(prefix)}


def uid(cluster: Kube, name: str) -> str:
    found = cluster.get(*NODE_CLAIM, name)
    assert found is not None
    return str(found["metadata"]["uid"])


def test_creations_are_applied_and_labelled_with_their_shard(writer: Applier, cluster: Kube) -> None:
    outcome = writer.apply(creating(a_claim("made-0"), a_deployment("made")))

    assert names(outcome.created) == ["made", "made-0"]
    assert not outcome.failed
    claim, workload = cluster.get(*NODE_CLAIM, "made-0"), cluster.get("apps/v1", "Deployment", "made")
    assert claim is not None and workload is not None
    made = owned(writer, "made")
    assert made.keys() == {"made", "made-0"}
    assert made["made-0"].uid == claim["metadata"]["uid"]
    assert {claim["metadata"]["labels"][SHARD], workload["metadata"]["labels"][SHARD]} == {made["made"].stack}


def test_a_pre_started_update_applies_a_plan_without_starting_an_engine(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        pre_started(writer)
        engine = writer.engines

        outcome = writer.apply(creating(a_claim("quick-0")))

        assert [timing.pre_started for timing in outcome.timings] == [True]
        assert len(engine) == 1
        assert cluster.get(*NODE_CLAIM, "quick-0") is not None
        pre_started(writer)
        assert len(writer.engines) <= 2


def test_a_repeated_plan_is_applied_once(writer: Applier, cluster: Kube) -> None:
    writer.apply(creating(a_claim("twice-0")))
    before = cluster.get(*NODE_CLAIM, "twice-0")

    outcome = writer.apply(creating(a_claim("twice-0", instance_type="g5.48xlarge")))

    assert names(outcome.created) == ["twice-0"]
    assert cluster.get(*NODE_CLAIM, "twice-0") == before


def test_an_update_changes_its_object_and_no_other(writer: Applier, cluster: Kube) -> None:
    writer.apply(creating(a_claim("kept-0"), a_deployment("kept"), a_deployment("changed")))
    before = {name: cluster.get("apps/v1", "Deployment", name) for name in ("kept", "changed")}
    claim = cluster.get(*NODE_CLAIM, "kept-0")

    outcome = writer.apply(updating(a_deployment("changed", image="registry.example/serve:2")))

    assert names(outcome.updated) == ["changed"]
    changed = cluster.get("apps/v1", "Deployment", "changed")
    assert changed is not None and before["changed"] is not None
    assert changed["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example/serve:2"
    assert changed["metadata"]["uid"] == before["changed"]["metadata"]["uid"]
    assert _spec(cluster.get("apps/v1", "Deployment", "kept")) == _spec(before["kept"])
    assert cluster.get(*NODE_CLAIM, "kept-0") == claim


@pytest.mark.parametrize("replaced", [True, False])
def test_an_update_changes_no_object_but_the_one_that_was_meant(
    replaced: bool, writer: Applier, cluster: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last look at it, a tenant deletes the object, and creates another one of that name, whose fields are in
    conflict with nothing."""
    key = ("apps/v1", "Deployment", f"taken-{replaced}".lower())
    writer.apply(creating(a_deployment(key[2])))
    changed = a_deployment(key[2], image="registry.example/serve:2")
    theirs = copy.deepcopy(changed)
    del theirs["metadata"]["labels"]
    dry_run = Objects.dry_run

    def take(objects: Objects, obj: dict[str, Any], manager: str) -> dict[str, Any]:
        monkeypatch.setattr(Objects, "dry_run", dry_run)
        answer = dry_run(objects, obj, manager)
        cluster.delete(*key)
        await_condition(lambda: cluster.get(*key) is None, 120, "it is gone")
        if replaced:
            cluster.create(theirs)
        return answer

    pre_started(writer)
    monkeypatch.setattr(Objects, "dry_run", take)
    outcome = writer.apply(updating(changed))

    assert outcome.failed.keys() == {key_of(theirs)}, outcome
    found = cluster.get(*key)
    assert (found is not None) is replaced
    assert found is None or "labels" not in found["metadata"], "it is not taken"
    cluster.delete(*key)


def _spec(found: dict[str, Any] | None) -> tuple[str, int]:
    assert found is not None
    return found["metadata"]["uid"], found["metadata"]["generation"]


def test_an_object_with_values_that_the_apiserver_leaves_out_is_not_updated_by_other_changes(
    settings: ApplySettings,
) -> None:
    odd = a_deployment("left-out")
    odd["spec"]["template"]["spec"]["tolerations"] = [{"key": "gpu", "operator": "Equal", "value": ""}]
    with capture_logs() as logs, a_writer(settings) as writer:
        writer.apply(creating(odd))
        outcome = writer.apply(creating(a_claim("left-out-0")))
        assert names(outcome.created) == ["left-out-0"]
        (stack,) = {each.stack for each in writer.resources()}
    assert [each["event"] for each in logs if each["log_level"] in ("warning", "error")] == []
    assert {each["type"] for each in checkpoint(settings, stack)["resources"]} >= {"kubernetes:apps/v1:Deployment"}


def test_an_update_back_to_what_the_state_has_changes_the_object(writer: Applier, cluster: Kube) -> None:
    """As after an engine that was killed before it recorded a change."""
    writer.apply(creating(a_deployment("back")))
    there = cluster.get("apps/v1", "Deployment", "back")
    assert there is not None
    metadata = {key: there["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
    changed = a_deployment("back", image="registry.example/serve:2") | {"metadata": metadata}
    cluster.apply(changed, manager="plimsoll")

    outcome = writer.apply(updating(a_deployment("back")))

    assert names(outcome.updated) == ["back"]
    found = cluster.get("apps/v1", "Deployment", "back")
    assert found is not None
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example/serve:1"


def test_an_update_that_would_replace_the_object_is_refused_before_it_starts(writer: Applier, cluster: Kube) -> None:
    writer.apply(creating(a_deployment("fixed")))
    before = cluster.get("apps/v1", "Deployment", "fixed")
    other = a_deployment("fixed")
    other["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    other["spec"]["template"]["metadata"]["labels"] = {"app": "other"}

    outcome = writer.apply(updating(other))

    assert outcome.failed[key_of(other)].kind is FailureKind.REFUSED
    assert _spec(cluster.get("apps/v1", "Deployment", "fixed")) == _spec(before)


def test_only_planned_deletions_are_applied(writer: Applier, cluster: Kube) -> None:
    writer.apply(creating(a_claim("gone-0"), a_claim("gone-1")))

    outcome = writer.apply(deleting(a_claim("gone-1"), uid=uid(cluster, "gone-1")))

    assert names(outcome.deleted) == ["gone-1"]
    await_condition(lambda: cluster.get(*NODE_CLAIM, "gone-1") is None, 120)
    assert cluster.get(*NODE_CLAIM, "gone-0") is not None
    await_condition(lambda: owned(writer, "gone").keys() == {"gone-0"})


def test_a_new_object_with_the_name_of_a_deleted_one_is_not_deleted(writer: Applier, cluster: Kube) -> None:
    writer.apply(creating(a_claim("renewed-0")))
    old = uid(cluster, "renewed-0")
    cluster.delete(*NODE_CLAIM, "renewed-0")
    await_condition(lambda: cluster.get(*NODE_CLAIM, "renewed-0") is None)
    cluster.apply(a_claim("renewed-0"))

    outcome = writer.apply(deleting(a_claim("renewed-0"), uid=old))

    assert names(outcome.forgotten) == ["renewed-0"]
    assert cluster.get(*NODE_CLAIM, "renewed-0") is not None
    assert not owned(writer, "renewed")
    cluster.delete(*NODE_CLAIM, "renewed-0")


def test_an_object_that_others_deleted_is_created_again(writer: Applier, cluster: Kube) -> None:
    writer.apply(creating(a_claim("back-0"), a_claim("back-1")))
    other = cluster.get(*NODE_CLAIM, "back-1")
    cluster.delete(*NODE_CLAIM, "back-0")
    await_condition(lambda: cluster.get(*NODE_CLAIM, "back-0") is None)
    pre_started(writer)

    outcome = writer.apply(creating(a_claim("back-0")))

    assert names(outcome.created) == ["back-0"]
    assert owned(writer, "back")["back-0"].uid == uid(cluster, "back-0")
    assert cluster.get(*NODE_CLAIM, "back-1") == other


def test_objects_that_others_deleted_are_removed_from_the_state(writer: Applier, cluster: Kube) -> None:
    writer.apply(creating(a_claim("left-0"), a_claim("left-1")))
    cluster.delete(*NODE_CLAIM, "left-0")
    await_condition(lambda: cluster.get(*NODE_CLAIM, "left-0") is None)

    outcome = writer.apply(creating(a_claim("left-2")))

    assert not outcome.failed
    await_condition(lambda: owned(writer, "left").keys() == {"left-1", "left-2"})


def test_an_object_of_another_owner_is_not_changed(writer: Applier, cluster: Kube) -> None:
    cluster.apply(a_deployment("theirs"))
    before = cluster.get("apps/v1", "Deployment", "theirs")
    ours = a_deployment("theirs", image="registry.example/ours:1")

    outcome = writer.apply(both(creating(ours), creating(a_claim("beside-0"))))

    assert outcome.failed[key_of(ours)].kind is FailureKind.NOT_OURS
    assert names(outcome.created) == ["beside-0"]
    assert _spec(cluster.get("apps/v1", "Deployment", "theirs")) == _spec(before)
    cluster.delete("apps/v1", "Deployment", "theirs")


def test_an_object_that_the_apiserver_refuses_fails_alone(writer: Applier, cluster: Kube) -> None:
    bad = a_claim("bad-0")
    bad["spec"]["requirements"] = [{"key": "x", "operator": "Never"}]

    outcome = writer.apply(creating(bad, a_claim("good-0")))

    assert outcome.failed[key_of(bad)].kind is FailureKind.REFUSED
    assert "operator" in outcome.failed[key_of(bad)].message
    assert names(outcome.created) == ["good-0"]
    assert owned(writer, "good").keys() == {"good-0"}
    assert not owned(writer, "bad")


def test_a_burst_goes_through_several_shards_and_another_number_of_shards_moves_nothing(
    settings: ApplySettings, cluster: Kube
) -> None:
    burst = [a_claim(f"burst-{index}", workspace=f"ws-{index % 3}") for index in range(130)]
    with a_writer(settings) as writer:
        outcome = writer.apply(creating(*burst))
        assert len(outcome.created) == 130
        await_condition(lambda: len(writer.resources()) == 130, message="all states written")
        before = {each.key: (each.stack, each.uid) for each in writer.resources()}
    assert len({stack for stack, _ in before.values()}) == 2  # one for every 125

    with a_writer(settings.model_copy(update={"shards": 2})) as writer:
        gone = deleting(burst[0], uid=before[key_of(burst[0])][1])
        outcome = writer.apply(both(creating(a_claim("burst-130", workspace="new")), gone))
        assert not outcome.failed
        await_condition(lambda: len(writer.resources()) == 130)
        after = {each.key: (each.stack, each.uid) for each in writer.resources()}
        assert after.keys() - before.keys() == {key_of(a_claim("burst-130"))}
        assert after.items() >= {key: at for key, at in before.items() if key != key_of(burst[0])}.items()
        assert len(writer.drain()) == 130


def test_engines_start_for_an_expected_burst_and_end_if_it_does_not_come(
    settings: ApplySettings, cluster: Kube
) -> None:
    with a_writer(settings) as writer:
        pre_started(writer)
        with writer.expecting(250):
            await_condition(lambda: writer.pre_started == 2, message="two engines")
        await_condition(lambda: len(writer.engines) == writer.pre_started == 1, message="one engine")
        with writer.expecting(250):
            await_condition(lambda: writer.pre_started == 2, message="two engines")
            burst = [a_claim(f"awaited-{index}") for index in range(130)]
            outcome = writer.apply(creating(*burst))
            assert len(outcome.created) == 130
            assert [timing.pre_started for timing in outcome.timings] == [True, True]
        await_condition(lambda: len(writer.engines) == writer.pre_started == 1, message="one engine")
        writer.drain()


def test_draining_leaves_neither_objects_nor_stacks(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("drained-0"), a_deployment("drained")))

        assert names(writer.drain()) == ["drained", "drained-0"]

        assert writer.resources() == []
    await_condition(lambda: cluster.get("apps/v1", "Deployment", "drained") is None)
    await_condition(lambda: cluster.get(*NODE_CLAIM, "drained-0") is None, 120)
    state = Path(settings.backend_url.removeprefix("file://"))
    assert list((state / ".pulumi/stacks").rglob("*.json")) == []


def test_the_history_keeps_the_newest_updates(settings: ApplySettings) -> None:
    with a_writer(settings.model_copy(update={"history": 2, "shards": 1})) as writer:
        folder = Path(settings.backend_url.removeprefix("file://")) / ".pulumi/history"
        ever: list[str] = []
        for index in range(4):
            writer.apply(creating(a_claim(f"old-{index}")))
            pre_started(writer)
            kept = sorted(path.name for path in folder.rglob("*.history.json"))
            ever += [name for name in kept if name not in ever]
        assert len(ever) >= 4, "one for each update"
        assert kept == ever[-2:]
        writer.drain()


def test_at_rest_there_is_one_small_engine_with_its_plugin(settings: ApplySettings) -> None:
    with a_writer(settings) as writer:
        pre_started(writer)
        (engine,) = writer.engines
        process = psutil.Process(engine)
        assert process.memory_info().rss < 150 * 1024 * 1024

        def below() -> list[str]:
            return [child.name() for child in process.children(recursive=True)]

        await_condition(lambda: below() == ["pulumi-resource-kubernetes"], message="its plugin, and nothing else")
