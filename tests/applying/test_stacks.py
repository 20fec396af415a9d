"""Which stacks a writer works on, and when it pre-starts updates on them."""

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.apply import ApplySettings, LeaseLostError
from plimsoll.apply.delta import Reviewer
from plimsoll.apply.stacks import Stacks
from plimsoll.apply.state import State
from plimsoll.model import ObjectKey
from tests.applying.states import CLUSTER, FakeCluster, FakeLease, a_claim, live


class FakeShard:
    """Every pre-start fails."""

    idle = True
    has_pre_started = False
    rank = 2

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = State.empty(name)
        self.backing_off = False
        self.recovered = 0
        self.failure: Exception | None = None
        self.adopted: list[str] = []
        self.pre_starts = 0
        self.was_restored = False

    def restored(self) -> bool:
        found, self.was_restored = self.was_restored, False
        return found

    def recover(self) -> "Future[None]":
        self.recovered += 1
        done: Future[None] = Future()
        if self.failure is not None:
            done.set_exception(self.failure)
        else:
            done.set_result(None)
        return done

    def adopt(self, objects: list[dict[str, Any]]) -> "Future[None]":
        self.adopted = [each["metadata"]["name"] for each in objects]
        return self.recover()

    def pre_start(self) -> None:
        self.pre_starts += 1
        self.backing_off = True

    def forget_missing(self, _: object) -> None:
        """There is nothing to forget."""


@pytest.fixture
def names() -> list[str]:
    """Names of the stacks in the backend."""
    return []


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def stacks(names: list[str], cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = "plimsoll.apply.stacks.stacks"
    monkeypatch.setattr(f"{module}.find_pulumi", lambda _: (Path("pulumi"), None))
    monkeypatch.setattr(f"{module}.find_provider", lambda *_: SimpleNamespace(environment={}))
    backend = SimpleNamespace(make=lambda: None, stacks=lambda _: list(names))
    monkeypatch.setattr(f"{module}.open_backend", lambda *_, **__: backend)
    monkeypatch.setattr(f"{module}.CapacityStack", lambda name, *_: name)
    monkeypatch.setattr(f"{module}.Shard", lambda name, **_: FakeShard(name))
    settings = ApplySettings(environment="test", work_folder=tmp_path, shards=1, secrets_provider="awskms://k")
    lease: Any = FakeLease()
    made = Stacks(settings, Reviewer(cluster), lease, lambda: CLUSTER)
    made.open()
    return made


def test_stacks_that_another_writer_creates_before_the_takeover_are_recovered(stacks: Any, names: list[str]) -> None:
    """As one with more shards, while this writer is its standby."""
    assert [shard.name for shard in stacks] == ["capacity-test-0"]
    names += ["capacity-test-0", "capacity-test-1", "capacity-other-0"]
    stacks.recover()
    assert {shard.name: shard.recovered for shard in stacks} == {"capacity-test-0": 1, "capacity-test-1": 1}
    assert stacks.ready() == ["capacity-test-0"], "only the stacks in the settings take new objects"


def test_a_stack_that_cannot_be_recovered_is_an_error_after_all_have_ended(stacks: Any, names: list[str]) -> None:
    names += ["capacity-test-0", "capacity-test-1"]
    stacks.recover()
    first, second = stacks
    first.failure = LeaseLostError("lost")
    with pytest.raises(LeaseLostError):
        stacks.recover()
    assert (first.recovered, second.recovered) == (2, 2)


def test_objects_in_no_state_are_adopted_by_their_stack_unless_they_are_being_deleted(
    stacks: Any, cluster: FakeCluster
) -> None:
    found = [
        live(a_claim("here"), stack="capacity-test-0"),
        live(a_claim("going"), stack="capacity-test-0", deleting=True),
        live(a_claim("of-a-stack-that-is-gone"), stack="capacity-test-7"),
        live(a_claim("of-others"), stack="capacity-other-0"),
    ]
    cluster.objects |= {ObjectKey.of(each): each for each in found}
    stacks.recover()
    [shard] = stacks
    assert sorted(shard.adopted) == ["here", "of-a-stack-that-is-gone"]


def test_objects_that_a_restored_state_lacks_are_adopted_in_the_next_round(stacks: Any, cluster: FakeCluster) -> None:
    stacks.recover()
    [shard] = stacks
    found = live(a_claim("since"), stack="capacity-test-0")
    cluster.objects[ObjectKey.of(found)] = found
    stacks.forget_missing(())
    assert shard.adopted == [], "nothing was restored"
    shard.was_restored = True
    stacks.forget_missing(())
    assert shard.adopted == ["since"]


TRIGGERS = "plimsoll-triggers"
OWNED = [
    ("karpenter.sh/v1", "NodeClaim", ""),
    ("karpenter.sh/v1", "NodePool", ""),
    ("apps/v1", "Deployment", "team"),
    ("apps/v1", "StatefulSet", "team"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "team"),
    ("v1", "Service", "team"),
    ("v1", "Pod", TRIGGERS),
    ("v1", "PodTemplate", TRIGGERS),
    ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", TRIGGERS),
    ("autoscaling.x-k8s.io/v1", "ProvisioningRequest", TRIGGERS),
]


@pytest.mark.parametrize(("version", "kind", "namespace"), OWNED)
def test_each_kind_that_a_plan_creates_is_adopted_where_the_controller_creates_it(
    stacks: Any, cluster: FakeCluster, version: str, kind: str, namespace: str
) -> None:
    labels = {"plimsoll.dev/shard": "capacity-test-0", "plimsoll.dev/workspace-namespace": "team"}
    for place in {namespace, "elsewhere"} if namespace else {""}:
        metadata = {"name": f"one-{place}", "labels": labels} | ({"namespace": place} if place else {})
        obj = {"apiVersion": version, "kind": kind, "metadata": metadata}
        cluster.objects[ObjectKey.of(obj)] = obj
    stacks.recover()
    [shard] = stacks
    assert shard.adopted == [f"one-{namespace}"]


def test_a_failed_pre_start_is_repeated_after_its_back_off_although_nothing_happens(stacks: Any) -> None:
    stacks.arrange()
    shard = stacks["capacity-test-0"]
    stacks.forget_missing(set())
    assert shard.pre_starts == 1
    shard.backing_off = False
    stacks.forget_missing(set())
    assert shard.pre_starts == 2
