"""Reads the state of a stack, repairs it, and keeps it consistent with the cluster."""

import re
import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from plimsoll.apply import (
    ApplySettings,
    LeaseLostError,
    LockedError,
    LockHolder,
    OtherClusterError,
    StateUnreadableError,
)
from plimsoll.apply.delta import Reviewer
from plimsoll.apply.engine import CLUSTER_TYPE, ClusterProvider, cluster_urn
from plimsoll.apply.stacks import Shard, StateKeeper
from plimsoll.apply.state import State, declare, importable
from plimsoll.errors import PlimsollError
from plimsoll.labels import SHARD
from plimsoll.model import ObjectKey
from tests.applying.states import CLUSTER, STACK, FakeCluster, FakeLease, a_claim, a_deployment, a_record, a_state, live

CLAIM = a_claim("claim")
KEY = ObjectKey.of(CLAIM)


class FakeStack:
    """A stack and its backend, with the state in memory. `locked` is the host of an ended process whose lock a command
    finds; `telling`: whether the backend tells of it, too."""

    name = STACK
    engine = SimpleNamespace(pid=None, interrupt=lambda: None, kill=lambda: None, ended_by_signal=False)

    def __init__(self, state: State | None, locked: str = "", telling: bool = True) -> None:
        self.state = state
        self.locked = locked
        self.telling = telling
        self.truncated = False
        self.commands: list[str] = []

    def replace_state(self, deployment: Mapping[str, Any]) -> None:
        self.commands.append("import")
        if self.locked:
            raise LockedError(self.name, self._holders)
        content = orjson.dumps({"version": 3, "deployment": deployment})
        self.state = State.read(self.name, content, f"tag-{len(self.commands)}")

    @property
    def _holders(self) -> tuple[LockHolder, ...]:
        return (LockHolder("root", self.locked, 2**22 - 1, "2026-01-01T00:00:00Z"),) if self.locked else ()

    def lock_holders(self, stack: str) -> tuple[LockHolder, ...] | None:
        assert stack == self.name
        return self._holders if self.telling else None

    def break_lock(self) -> None:
        assert not self.truncated, "no engine reads such a state"
        self.commands.append("cancel")
        self.locked = ""

    def repair(self, stack: str) -> None:
        self.truncated = False

    def init(self) -> None:
        self.commands.append("init")
        self.state = State.empty(self.name)

    def remember_secrets(self, secrets: Mapping[str, str]) -> None:
        self.commands.append(f"secrets {dict(secrets)}")

    def read(self, stack: str) -> State | None:
        assert stack == self.name
        return self.state

    def prune(self, stack: str, keep: int) -> None:
        """Does nothing: there is no history."""

    def tag(self, stack: str) -> str | None:
        return self.state.tag if self.state else "missing"


def of_cluster(state: State, uid: str, version: int = 1) -> State:
    """The state with a record of its cluster."""
    inputs = {"uid": uid, "server": "https://other.example", "format": version}
    record = {"urn": cluster_urn(STACK), "custom": False, "type": CLUSTER_TYPE, "inputs": inputs}
    resources = [*state.deployment["resources"], record]
    content = {"version": 3, "deployment": {**state.deployment, "resources": resources}}
    return State.read(STACK, orjson.dumps(content), "tag")


def a_keeper(
    stack: FakeStack,
    *objects: dict[str, Any],
    held: bool = True,
    expired: tuple[str, ...] = (),
    cluster: FakeCluster | None = None,
    lease: FakeLease | None = None,
) -> StateKeeper:
    fake: Any = stack
    own: Any = lease or FakeLease(held, expired)
    keeper = StateKeeper(fake, fake, Reviewer(cluster or FakeCluster(*objects)), own, CLUSTER)
    keeper.read()
    return keeper


def a_shard(
    stack: FakeStack,
    cluster: FakeCluster,
    tmp_path: Path,
    lease: FakeLease | None = None,
) -> Shard:
    """A shard whose state was read when the writer started. Its thread ends when it is closed."""
    fake: Any = stack
    held: Any = lease or FakeLease()
    shard = Shard(
        fake,
        backend=fake,
        reviewer=Reviewer(cluster),
        provider=ClusterProvider({}, {}, "4.34.0", CLUSTER),
        settings=ApplySettings(environment="test", work_folder=tmp_path),
        lease=held,
        on_idle=lambda: None,
    )
    shard.recover().result()
    return shard


def pending(operation: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {"type": operation, "resource": a_record(obj)}


def names(state: State) -> set[str]:
    return {key.name for key in state.resources}


def test_an_exported_stack_has_the_state_of_its_checkpoint() -> None:
    state = a_state(live(CLAIM))
    exported = State.read(STACK, orjson.dumps({"version": 3, "deployment": state.deployment}), "tag")
    assert exported == state
    assert state.resources[KEY].uid == "uid-claim"
    assert state.resources[KEY].owner == ("default", "ws")
    assert state.secrets == {"encryptionsalt": "v1:salt"}


def test_a_state_of_another_cluster_is_refused_and_not_changed() -> None:
    theirs = of_cluster(a_state(live(CLAIM)), "uid-of-another")
    assert theirs.foreign == ()
    stack = FakeStack(theirs)
    with pytest.raises(OtherClusterError) as refused:
        a_keeper(stack)
    assert {theirs.cluster.uid if theirs.cluster else "", CLUSTER.uid} <= set(
        re.findall(r"uid-[-a-z]+", str(refused.value))
    )
    assert stack.commands == []


def test_the_cluster_is_identified_by_its_uid_not_its_address() -> None:
    stack = FakeStack(of_cluster(a_state(live(CLAIM)), CLUSTER.uid))
    assert names(a_keeper(stack, live(CLAIM)).state) == {"claim"}


def test_a_state_of_a_newer_release_is_refused() -> None:
    with pytest.raises(StateUnreadableError, match="newer release"):
        of_cluster(a_state(), CLUSTER.uid, version=2)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"checkpoint": {"latest": {"resources": [{"type": "kubernetes:x"}]}}}']
)
def test_a_damaged_checkpoint_is_an_error(content: bytes) -> None:
    with pytest.raises(StateUnreadableError, match=STACK):
        State.read(STACK, content, None)


def test_an_object_created_by_a_killed_engine_is_adopted_with_its_declared_inputs() -> None:
    declared = live(CLAIM)
    made = live(CLAIM)
    made["spec"]["defaulted"] = "by the apiserver"
    stack = FakeStack(a_state(pending=[pending("creating", declared)]))

    a_keeper(stack, made).recover()

    assert stack.state is not None
    assert not stack.state.interrupted
    resource = stack.state.resources[KEY]
    assert resource.uid == "uid-claim"
    assert "defaulted" not in resource.declared.inputs["spec"]


def test_a_pending_operation_without_an_object_is_removed() -> None:
    stack = FakeStack(a_state(live(a_claim("kept")), pending=[pending("creating", live(CLAIM))]))
    a_keeper(stack, live(a_claim("kept"))).recover()
    assert stack.state is not None
    assert names(stack.state) == {"kept"}
    assert not stack.state.interrupted


def test_an_object_of_another_owner_is_not_adopted() -> None:
    theirs = live(CLAIM)
    theirs["metadata"]["labels"] = {}
    stack = FakeStack(a_state(pending=[pending("creating", live(CLAIM))]))
    a_keeper(stack, theirs).recover()
    assert stack.state is not None
    assert names(stack.state) == set()


def test_an_interrupted_update_is_recorded_if_it_was_applied() -> None:
    old, new = live(a_deployment("serve")), live(a_deployment("serve", image="two"))
    for state in (old, new):
        state["metadata"]["annotations"]["plimsoll.dev/spec-hash"] = state["spec"]["image"]
    stack = FakeStack(a_state(old, pending=[pending("updating", new)]))
    a_keeper(stack, new).recover()
    assert stack.state is not None
    assert stack.state.resources[ObjectKey.of(new)].declared.inputs["spec"]["image"] == "two"


def test_deleted_and_replaced_objects_leave_the_state_and_those_without_a_label_stay() -> None:
    held = [live(a_claim(name)) for name in ("gone", "replaced", "unlabelled", "kept")]
    unlabelled = live(a_claim("unlabelled"))
    unlabelled["metadata"]["labels"] = {}
    stack = FakeStack(a_state(*held))
    a_keeper(stack, live(a_claim("replaced"), uid="new"), unlabelled, live(a_claim("kept"))).recover()
    assert stack.state is not None
    assert names(stack.state) == {"unlabelled", "kept"}


def test_a_consistent_state_is_not_written() -> None:
    stack = FakeStack(a_state(live(CLAIM)))
    a_keeper(stack, live(CLAIM)).recover()
    assert stack.commands == []


def test_repairing_breaks_a_stale_lock_once() -> None:
    stack = FakeStack(a_state(live(CLAIM)), locked=socket.gethostname())
    a_keeper(stack).repair([KEY], ())
    assert stack.commands.count("cancel") == 1
    assert stack.state is not None
    assert names(stack.state) == set()

    stack = FakeStack(a_state(live(CLAIM)), locked="elsewhere")
    with pytest.raises(LockedError):
        a_keeper(stack).repair([KEY], ())
    assert "cancel" not in stack.commands
    assert stack.state is not None
    assert names(stack.state) == {"claim"}


@pytest.mark.parametrize(
    ("telling", "commands"), [(True, ["cancel"]), (False, ["import", "cancel", "import"])], ids=["told", "found"]
)
def test_recovery_breaks_the_lock_of_a_writer_with_an_expired_lease(telling: bool, commands: list[str]) -> None:
    """Where the backend tells who holds it, with one command; otherwise a command that takes the lock finds it."""

    def recovered(locked: str, *expired: str) -> list[str]:
        stack = FakeStack(a_state(live(CLAIM)), locked, telling)
        a_keeper(stack, live(CLAIM), expired=expired).recover()
        return [each for each in stack.commands if not each.startswith("secrets")]

    assert recovered("node-7", "node-7_1_ab") == commands
    assert recovered("node-7") == [], "the Lease of no writer has expired"
    assert "cancel" not in recovered("", "node-7_1_ab")
    with pytest.raises(LockedError):
        recovered("node-8", "node-7_1_ab")


@pytest.mark.parametrize(
    ("locked", "telling", "held", "unlocked"),
    [
        ("", True, True, True),
        (socket.gethostname(), True, True, True),
        (socket.gethostname(), True, False, False),
        (socket.gethostname(), False, True, False),
        ("", False, True, False),
        ("elsewhere", True, True, False),
    ],
)
def test_a_writer_that_stops_breaks_the_lock_of_its_own_ended_engine(
    locked: str, telling: bool, held: bool, unlocked: bool, tmp_path: Path
) -> None:
    """While it holds the Lease, although it starts nothing more; also where the engine was killed while it wrote."""
    stack, lease = FakeStack(a_state(live(CLAIM)), locked, telling), FakeLease()
    shard = a_shard(stack, FakeCluster(live(CLAIM)), tmp_path, lease=lease)
    lease.usable, lease.held = False, held
    stack.engine = SimpleNamespace(pid=None, ended_by_signal=True)
    stack.truncated = True
    assert shard.close() is unlocked
    assert stack.commands == (["cancel"] if locked and unlocked else [])


def test_nothing_is_repaired_without_the_lease() -> None:
    stack = FakeStack(a_state(live(CLAIM)))
    with pytest.raises(LeaseLostError):
        a_keeper(stack, held=False).recover()
    assert stack.commands == []


def test_a_new_host_gets_the_salt_and_a_missing_stack_is_created() -> None:
    stack = FakeStack(a_state())
    a_keeper(stack).prepare()
    assert stack.commands == ["secrets {'encryptionsalt': 'v1:salt'}"]
    stack = FakeStack(None)
    a_keeper(stack).prepare()
    assert stack.commands == ["init"]


def test_confirmed_operations_are_in_the_state_before_the_engine_writes_it() -> None:
    made = live(a_claim("made"))
    ahead = a_state(live(CLAIM)).advanced([(declare(made), made)], [KEY])
    assert names(ahead) == {"made"}
    assert ahead.resources[ObjectKey.of(made)].uid == "uid-made"


def test_an_adopted_object_declares_no_field_of_the_apiserver() -> None:
    obj = live(CLAIM)
    obj["metadata"] |= {"resourceVersion": "7", "managedFields": [], "finalizers": ["karpenter.sh/termination"]}
    obj["status"] = {"nodeName": "n"}
    inputs = importable(obj)
    assert set(inputs) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(inputs["metadata"]) == {"name", "labels", "annotations"}


def test_nothing_is_adopted_into_a_stack_without_a_provider() -> None:
    with pytest.raises(PlimsollError, match="no provider"):
        State.empty(STACK).edited(adopt=[(live(CLAIM), CLAIM)])


def test_other_resources_are_foreign() -> None:
    content = a_state().deployment
    guest = {"urn": f"urn:pulumi:{STACK}::plimsoll::custom:index:Guest::guest", "type": "custom:index:Guest"}
    exported = {"version": 3, "deployment": {**content, "resources": [*content["resources"], guest]}}
    assert State.read(STACK, orjson.dumps(exported), None).foreign == (guest["urn"],)


def test_objects_that_others_deleted_leave_the_state_without_a_plan(tmp_path: Path) -> None:
    objects = live(CLAIM), live(a_claim("stays"))
    stack, cluster = FakeStack(a_state(*objects)), FakeCluster(*objects)
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        shard.forget_missing({"uid-claim", "uid-stays"})
        del cluster.objects[KEY]
        shard.forget_missing({"uid-stays"})
    assert names(shard.state) == {"stays"}
    assert stack.commands.count("import") == 1


def test_deletions_by_others_are_collected_into_one_edit_of_the_state(tmp_path: Path) -> None:
    objects = [live(a_claim(f"claim-{number}")) for number in range(5)]
    stack, cluster = FakeStack(a_state(*objects)), FakeCluster(*objects)
    there = {each["metadata"]["uid"] for each in objects}
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        for each in objects:
            del cluster.objects[ObjectKey.of(each)]
            there.remove(each["metadata"]["uid"])
            shard.forget_missing(there)
            shard.call_off().result()
    assert stack.commands.count("import") == 1


def test_an_existing_object_that_no_watch_shows_is_read_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.apply.stacks.shard._FORGET_SECONDS", 0.0)
    hidden = live(CLAIM)
    del hidden["metadata"]["labels"][SHARD]
    stack, cluster = FakeStack(a_state(live(CLAIM))), FakeCluster(hidden)
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        cluster.looked_at.clear()
        for _ in range(3):
            shard.forget_missing(set())
            shard.call_off().result()
    assert cluster.looked_at == ["claim"]
    assert names(shard.state) == {"claim"}
    assert stack.commands == []


def test_whatever_prevents_a_pre_start_is_followed_by_a_back_off(tmp_path: Path) -> None:
    """The shard is idle then: without a back-off it would try again at once, for ever."""

    class Failing(FakeStack):
        failing = False

        def repair(self, stack: str) -> None:
            if self.failing:
                raise RuntimeError

    stack = Failing(a_state())
    with closing(a_shard(stack, FakeCluster(), tmp_path)) as shard:
        stack.failing = True
        shard.pre_start().result()
        assert shard.backing_off
        assert not shard.has_pre_started
