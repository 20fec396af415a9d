"""A killed writer loses nothing and creates nothing twice, and there is never a second writer at the same time."""

import contextlib
import json
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from plimsoll.apply import (
    ApplySettings,
    LeaseHeldError,
    LeaseLostError,
    LockedError,
    UpdateInterruptedError,
)
from plimsoll.apply.engine import end_orphans, engine_home
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.applying.capacity import (
    NODE_CLAIM,
    QUICK,
    a_claim,
    a_writer,
    checkpoint,
    checkpoint_path,
    clearing_claims,
    creating,
    locks,
    names,
    pre_started,
    settings_for,
)
from tests.e2e.applying.writer import writer_process
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e

_MANY = 300
"""NodeClaims; more than an engine creates before it is killed."""


@pytest.fixture
def settings(claims_sandbox: Sandbox, tmp_path: Path) -> Iterator[ApplySettings]:
    made = settings_for(claims_sandbox, tmp_path, shards=1)
    yield made
    end_orphans(engine_home(made))  # of writers that were killed, and are followed on "another host"


@pytest.fixture
def cluster(claims_sandbox: Sandbox, kube: Callable[..., Kube]) -> Iterator[Kube]:
    yield from clearing_claims(kube(claims_sandbox))


def claims(cluster: Kube, prefix: str) -> dict[str, str]:
    """NodeClaims that are not being deleted: UID by name."""
    found = (each["metadata"] for each in cluster.list(*NODE_CLAIM))
    return {each["name"]: each["uid"] for each in found if each["name"].startswith(prefix)}


def engines_of(settings: ApplySettings) -> list[psutil.Process]:
    """Engine processes of these stacks."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.name() == "pulumi" and process.environ().get("PULUMI_BACKEND_URL") == settings.backend_url:
                found.append(process)
    return found


@pytest.mark.parametrize("engine_too", [False, True], ids=["writer", "writer and engine"])
def test_a_writer_killed_during_an_update_loses_nothing_and_creates_nothing_twice(
    settings: ApplySettings, cluster: Kube, tmp_path: Path, engine_too: bool
) -> None:
    prefix = f"mid-{engine_too}-".lower()
    plan = creating(*(a_claim(f"{prefix}{index}") for index in range(_MANY)))
    with writer_process(settings, plan, tmp_path / "victim", hostname="elsewhere") as victim:
        await_condition(lambda: len(claims(cluster, prefix)) >= 5, message="an update in the middle")
        if engine_too:
            for engine in engines_of(settings):
                engine.kill()
        victim.kill()
        victim.wait()
    made = claims(cluster, prefix)
    assert len(made) < _MANY
    if engine_too:
        assert locks(settings)

    elsewhere = settings.model_copy(update={"work_folder": tmp_path / "other host"})
    with a_writer(elsewhere) as writer:
        outcome = writer.apply(plan)

        assert len(outcome.created) == _MANY
        assert not outcome.failed
        after = claims(cluster, prefix)
        assert len(after) == _MANY
        assert after.items() >= made.items()
        assert {each.key.name: each.uid for each in writer.resources()} == after
        await_condition(lambda: not checkpoint(settings, writer.resources()[0].stack).get("pending_operations"))
        assert set(names(writer.drain())) == after.keys()
    assert locks(settings) == []


def test_the_lock_of_a_pre_started_update_is_broken_after_its_host_was_lost(
    settings: ApplySettings, tmp_path: Path
) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("host-0")))
    with writer_process(settings, creating(), tmp_path / "victim", hostname="elsewhere") as victim:
        await_condition(lambda: engines_of(settings) and locks(settings), message="a pre-started engine")
        for engine in engines_of(settings):
            engine.kill()
        victim.kill()
        victim.wait()
    assert locks(settings)

    with a_writer(settings.model_copy(update={"work_folder": tmp_path / "other host"})) as writer:
        assert names(writer.apply(creating(a_claim("host-1"))).created) == ["host-1"]
        writer.drain()
    assert locks(settings) == []


def test_a_terminated_writer_breaks_the_lock_of_its_killed_engine(
    settings: ApplySettings, cluster: Kube, tmp_path: Path
) -> None:
    plan = creating(*(a_claim(f"left-{index}") for index in range(60)))
    with writer_process(settings, plan, tmp_path / "victim", hostname="elsewhere") as victim:
        await_condition(lambda: len(claims(cluster, "left-")) >= 5, message="an update in the middle")
        victim.send_signal(signal.SIGTERM)
        for engine in engines_of(settings):
            engine.kill()
        victim.wait(timeout=120)
    assert locks(settings) == []

    with a_writer(settings.model_copy(update={"work_folder": tmp_path / "other host"})) as writer:
        assert names(writer.apply(creating(a_claim("after-left"))).created) == ["after-left"]
        writer.drain()
    assert locks(settings) == []


def test_the_engine_of_a_killed_writer_ends(settings: ApplySettings, tmp_path: Path) -> None:
    with writer_process(settings, creating(), tmp_path / "victim") as victim:
        await_condition(lambda: engines_of(settings) and locks(settings), message="a pre-started engine")
        victim.send_signal(signal.SIGKILL)
        victim.wait()

    await_condition(lambda: not engines_of(settings), message="no engine without its writer")


def test_a_terminated_writer_ends_its_update_and_leaves_no_lock(
    settings: ApplySettings, cluster: Kube, tmp_path: Path
) -> None:
    plan = creating(*(a_claim(f"term-{index}") for index in range(60)))
    with writer_process(settings, plan, tmp_path / "victim") as victim:
        await_condition(lambda: len(claims(cluster, "term-")) >= 5, message="an update in the middle")
        victim.send_signal(signal.SIGTERM)
        victim.wait(timeout=120)

    assert locks(settings) == []
    assert engines_of(settings) == []
    with a_writer(settings) as writer:  # at once: the Lease was given back
        known = {each.key.name for each in writer.resources()}
        assert known == claims(cluster, "term-").keys()
        assert known


def test_stopping_does_not_change_the_stack(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("still-0")))
        pre_started(writer)
        stack = writer.resources()[0].stack
        before = checkpoint(settings, stack)["resources"]
    assert checkpoint(settings, stack)["resources"] == before
    assert claims(cluster, "still-").keys() == {"still-0"}
    assert locks(settings) == []
    assert engines_of(settings) == []


def test_a_second_writer_gets_an_error_that_names_the_holder(settings: ApplySettings, tmp_path: Path) -> None:
    second = settings.model_copy(update={"work_folder": tmp_path / "second"})
    with a_writer(settings) as first:
        with pytest.raises(LeaseHeldError, match=first.identity), a_writer(second):
            pass
        with pytest.raises(LeaseLostError), a_writer(second, started=False) as idle:
            idle.apply(creating(a_claim("never-0")))
    with a_writer(second) as other:
        assert other.held


def test_a_lost_lease_ends_the_pre_started_update_without_changes(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("lost-0")))
        pre_started(writer)
        stack = writer.resources()[0].stack
        before = checkpoint(settings, stack)["resources"]
        _take_lease(cluster, settings)

        await_condition(lambda: not writer.held and not writer.engines, message="the lost Lease to be seen")

        with pytest.raises(LeaseLostError):
            writer.apply(creating(a_claim("lost-1")))
        assert checkpoint(settings, stack)["resources"] == before
        assert claims(cluster, "lost-").keys() == {"lost-0"}
    _free_lease(cluster, settings)
    # Its engine is killed, so its lock stays until the next writer breaks it.
    with a_writer(settings) as writer:
        assert names(writer.apply(creating(a_claim("lost-2"))).created) == ["lost-2"]


def test_a_lease_lost_during_an_update_interrupts_it(settings: ApplySettings, cluster: Kube, tmp_path: Path) -> None:
    plan = creating(*(a_claim(f"cut-{index}") for index in range(600)))  # more than are made before it is noticed
    with writer_process(settings, plan, tmp_path / "victim") as victim:
        await_condition(lambda: len(claims(cluster, "cut-")) >= 5, message="an update in the middle")
        _take_lease(cluster, settings)
        await_condition(lambda: not engines_of(settings), message="the engine to end")
        assert len(claims(cluster, "cut-")) < 600
        victim.wait(timeout=120)
    _free_lease(cluster, settings)
    with a_writer(settings) as writer:
        assert {each.key.name for each in writer.resources()} == claims(cluster, "cut-").keys()
        writer.drain()


def test_the_lock_of_a_running_process_of_others_is_kept(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("locked-0")))
        stack = writer.resources()[0].stack
    lock = _lock(settings, stack, host="laptop", pid=4711)

    with a_writer(settings) as writer:
        with pytest.raises(LockedError, match=r"someone@laptop \(pid 4711\)"):
            writer.apply(creating(a_claim("locked-1")))
        assert lock.exists()
        assert "locked-1" not in claims(cluster, "locked-")
        lock.unlink()
        assert names(writer.apply(creating(a_claim("locked-1"))).created) == ["locked-1"]


def test_the_lock_of_an_ended_process_of_this_host_is_broken(settings: ApplySettings) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("dead-0")))
        stack = writer.resources()[0].stack
    _lock(settings, stack, host=socket.gethostname(), pid=2**22 - 1)

    with a_writer(settings) as writer:
        assert names(writer.apply(creating(a_claim("dead-1"))).created) == ["dead-1"]


def test_truncated_attributes_of_the_state_do_not_block_a_writer(settings: ApplySettings) -> None:
    """An engine that is killed while it writes leaves such files."""
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("cut-0")))
        path = checkpoint_path(settings, writer.resources()[0].stack)
    attributes = path.with_name(f"{path.name}.attrs")
    assert attributes.stat().st_size
    attributes.write_bytes(b"")

    with a_writer(settings) as writer:
        assert names(writer.apply(creating(a_claim("cut-1"))).created) == ["cut-1"]


def test_a_state_changed_during_a_pre_started_update_is_read_again(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("under-0"), a_claim("under-1")))
        pre_started(writer)
        stack = writer.resources()[0].stack
        path = checkpoint_path(settings, stack)
        content = json.loads(path.read_text())
        resources = content["checkpoint"]["latest"]["resources"]
        content["checkpoint"]["latest"]["resources"] = [each for each in resources if each.get("id") != "under-1"]
        path.write_text(json.dumps(content))

        outcome = writer.apply(creating(a_claim("under-2")))

        assert names(outcome.created) == ["under-2"]
        assert claims(cluster, "under-").keys() == {"under-0", "under-1", "under-2"}
        await_condition(lambda: [each.key.name for each in writer.resources()] == ["under-0", "under-2"])


def test_objects_that_are_missing_in_the_state_are_adopted(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("found-0"), a_claim("found-1")))
        before = claims(cluster, "found-")
        stack = writer.resources()[0].stack
    checkpoint_path(settings, stack).unlink()

    with a_writer(settings) as writer:
        assert {each.key.name: each.uid for each in writer.resources()} == before
        writer.apply(creating(a_claim("found-2")))
        assert claims(cluster, "found-").items() >= before.items()
        assert set(names(writer.drain())) == {"found-0", "found-1", "found-2"}


def test_objects_that_others_deleted_leave_the_state_without_a_plan(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("others-0"), a_claim("others-1")))
        pre_started(writer)
        stack = writer.resources()[0].stack
        cluster.delete(*NODE_CLAIM, "others-0")

        writer.forget_missing(set(claims(cluster, "others-").values()))

        def known() -> list[str]:
            return [each["id"] for each in checkpoint(settings, stack)["resources"] if "others-" in each["urn"]]

        await_condition(lambda: known() == ["others-1"], message="a state without the object")
        pre_started(writer)
        assert names(writer.apply(creating(a_claim("others-2"))).created) == ["others-2"]


def test_an_interrupt_from_a_signal_handler_ends_a_running_update(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        pre_started(writer)
        writer.interrupt()
        with pytest.raises(UpdateInterruptedError):
            writer.apply(creating(a_claim("never-0")))
    assert claims(cluster, "never-") == {}


def _lease_path(settings: ApplySettings) -> tuple[str, str, str, str]:
    return "coordination.k8s.io/v1", "Lease", settings.lease.name, QUICK.namespace


def _take_lease(cluster: Kube, settings: ApplySettings) -> None:
    api_version, kind, name, namespace = _lease_path(settings)
    cluster.patch(api_version, kind, name, {"spec": {"holderIdentity": "thief_1_x"}}, namespace)


def _free_lease(cluster: Kube, settings: ApplySettings) -> None:
    api_version, kind, name, namespace = _lease_path(settings)
    cluster.delete(api_version, kind, name, namespace)


def _lock(settings: ApplySettings, stack: str, *, host: str, pid: int) -> Path:
    """A lock as the engine writes it."""
    root = Path(settings.backend_url.removeprefix("file://"))
    folder = root / ".pulumi/locks/organization/plimsoll" / stack
    folder.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {"pid": pid, "username": "someone", "hostname": host, "timestamp": "2026-01-01T00:00:00Z"}
    path = folder / "4a2c.json"
    path.write_text(json.dumps(content))
    return path
