"""The official plugin waits for the end of a deletion, such as the drain of a node: the stack is busy until then, and
tells when it is free."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from plimsoll.apply.delta import Part
from plimsoll.apply.engine import EngineEvent, Program
from plimsoll.model import ObjectKey
from tests.applying.states import FakeCluster, a_claim, a_state, deletion, live
from tests.applying.test_states import FakeStack, a_shard

CLAIM = a_claim("drained")
KEY = ObjectKey.of(CLAIM)


class DrainingStack(FakeStack):
    """Its engine waits for `drained` after it has begun the deletion of the claim."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.before = a_state(live(CLAIM))
        super().__init__(self.before)
        self._cluster = cluster
        self.drained = threading.Event()

    def update(self, program: Program, on_event: Callable[[EngineEvent], None], _: tuple[Path, ...]) -> None:
        program._on_ready()
        if program._registrations.exception(30) is not None:
            return
        deleted = {"urn": self.before.resources[KEY].urn, "op": "delete"}
        on_event({"resourcePreEvent": {"metadata": deleted}})
        self._cluster.objects[KEY] = live(CLAIM, deleting=True)
        assert self.drained.wait(30)
        self._cluster.objects.clear()
        on_event({"resOutputsEvent": {"metadata": deleted}})
        self.state = a_state(tag="written")

    def check_room(self) -> None:
        """There is room."""


def test_a_stack_is_busy_until_what_it_deleted_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.apply.stacks.update._POLL_SECONDS", 0.01)
    cluster = FakeCluster(live(CLAIM))
    stack = DrainingStack(cluster)
    free = threading.Event()
    with closing(a_shard(stack, cluster, tmp_path, free.set)) as shard:
        outcome = shard.apply(Part(deletions=[deletion(CLAIM, "uid-drained")]), lambda _: None).result(30)
        assert (outcome.deleted, shard.waits_for_deletions, free.is_set()) == ((KEY,), True, False)
        stack.drained.set()
        assert free.wait(30)
        assert not shard.waits_for_deletions
