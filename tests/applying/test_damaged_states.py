"""A truncated checkpoint is set aside, and the newest backup that can be read takes its place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from moto import mock_aws

from plimsoll.apply import LeaseLostError, StateChangedError, StateDamagedError
from plimsoll.apply.delta import Reviewer
from plimsoll.apply.stacks import StateKeeper
from plimsoll.apply.state import Backend, FolderBackend, S3Backend
from tests.applying.states import CLUSTER, STACK, FakeCluster, FakeLease, a_claim, a_state, live
from tests.applying.test_states import FakeStack

KEY = f".pulumi/stacks/plimsoll/{STACK}.json"
HISTORY = f".pulumi/history/plimsoll/{STACK}/{STACK}-"
TRUNCATED = b'{"version": 3, "checkpoint": {"latest": {"resou'
BUCKET = "states"


def content(*names: str) -> bytes:
    """A checkpoint with these NodeClaims."""
    state = a_state(*(live(a_claim(name)) for name in names))
    return orjson.dumps({"version": 3, "checkpoint": {"stack": STACK, "latest": state.deployment}})


class Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.backend: Backend = FolderBackend(folder)

    def write(self, files: dict[str, bytes]) -> None:
        for name, text in files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)

    def read(self) -> dict[str, bytes]:
        return {str(each.relative_to(self._folder)): each.read_bytes() for each in self._folder.rglob("*.json*")}


class Bucket:
    def __init__(self) -> None:
        self._client: Any = boto3.client("s3", region_name="us-east-1")
        self._client.create_bucket(Bucket=BUCKET)
        self.backend: Backend = S3Backend(f"s3://{BUCKET}?region=us-east-1")

    def write(self, files: dict[str, bytes]) -> None:
        for key, text in files.items():
            self._client.put_object(Bucket=BUCKET, Key=key, Body=text)

    def read(self) -> dict[str, bytes]:
        found = self._client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {each["Key"]: self._client.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read() for each in found}


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder | Bucket]:
    if request.param == "folder":
        yield Folder(tmp_path)
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield Bucket()


@pytest.mark.parametrize("damaged", [TRUNCATED, b"", b"{}", b"\x00" * 64], ids=["half", "empty", "other", "zeros"])
def test_the_newest_readable_backup_takes_the_place_of_a_damaged_state(place: Folder | Bucket, damaged: bytes) -> None:
    place.write(
        {
            KEY: damaged,
            f"{HISTORY}1000.checkpoint.json": content("first"),
            f"{HISTORY}2000.checkpoint.json": content("first", "second"),
            f"{HISTORY}2000.history.json": b"{}",
            f"{HISTORY}3000.checkpoint.json": TRUNCATED,
        }
    )
    with pytest.raises(StateDamagedError):
        place.backend.read(STACK)
    found = place.backend.set_aside(STACK)
    assert found is not None
    assert found.backup.endswith("-2000.checkpoint.json")
    state = place.backend.read(STACK)
    assert state is not None
    assert {key.name for key in state.resources} == {"first", "second"}
    assert [text for name, text in place.read().items() if ".damaged-" in name] == [damaged], "it is kept"
    assert place.backend.stacks() == [STACK], "what was set aside is no stack"


def test_the_copy_that_the_engine_keeps_is_a_backup_too(place: Folder | Bucket) -> None:
    place.write({KEY: TRUNCATED, f"{KEY}.bak": content("kept")})
    place.backend.set_aside(STACK)
    state = place.backend.read(STACK)
    assert state is not None
    assert {key.name for key in state.resources} == {"kept"}


def test_without_a_readable_backup_the_stack_is_new(place: Folder | Bucket) -> None:
    place.write({KEY: TRUNCATED, f"{KEY}.bak": TRUNCATED})
    found = place.backend.set_aside(STACK)
    assert found is not None
    assert found.backup == ""
    assert place.backend.read(STACK) is None
    assert place.backend.stacks() == []


@pytest.mark.parametrize("backup", [content("backup"), TRUNCATED], ids=["a backup", "none"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_another_has_just_written_is_left(monkeypatch: pytest.MonkeyPatch, backup: bytes, when: str) -> None:
    """An engine that was paused while it wrote: S3 compares and swaps."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        place = Bucket()
        place.write({KEY: content("written") if when == "before" else TRUNCATED, f"{KEY}.bak": backup})

        def after(*_: object) -> list[str]:
            place.write({KEY: content("written")})
            return []

        monkeypatch.setattr(S3Backend, "_keys", after)  # it looks for backups, after it has read the state
        with pytest.raises(StateChangedError, match=BUCKET):
            place.backend.set_aside(STACK)
        state = place.backend.read(STACK)
        assert state is not None
        assert {key.name for key in state.resources} == {"written"}


class Recorded(FakeStack):
    """The commands of a stack whose state is in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(None)
        self._folder = folder

    def replace_state(self, deployment: Any) -> None:
        self.commands.append("import")
        (self._folder / KEY).write_bytes(orjson.dumps({"version": 3, "checkpoint": {"latest": deployment}}))


def a_keeper(folder: Path, *objects: dict[str, Any], held: bool = True) -> StateKeeper:
    stack: Any = Recorded(folder)
    lease: Any = FakeLease(held, ())
    return StateKeeper(stack, FolderBackend(folder), Reviewer(FakeCluster(*objects)), lease, CLUSTER)


def test_recovery_goes_on_with_the_backup_and_forgets_what_is_gone_since(tmp_path: Path) -> None:
    Folder(tmp_path).write({KEY: TRUNCATED, f"{HISTORY}1.checkpoint.json": content("stays", "gone")})
    keeper = a_keeper(tmp_path, live(a_claim("stays")))
    keeper.recover()
    assert {key.name for key in keeper.state.resources} == {"stays"}
    assert keeper.restored, "what was created since is in no state"


def test_without_the_lease_a_damaged_state_stays_where_it_is(tmp_path: Path) -> None:
    place = Folder(tmp_path)
    place.write({KEY: TRUNCATED, f"{HISTORY}1.checkpoint.json": content("first")})
    before = place.read()
    with pytest.raises(LeaseLostError):
        a_keeper(tmp_path, held=False).recover()
    assert place.read() == before


def test_a_state_of_a_newer_release_is_not_damaged(tmp_path: Path) -> None:
    """It is refused, and nothing older takes its place."""
    newer = orjson.loads(content("first"))
    inputs = {"uid": CLUSTER.uid, "server": "", "format": 99}
    newer["checkpoint"]["latest"]["resources"].append(
        {"urn": "urn:pulumi:s::p::plimsoll:index:Cluster::c", "type": "plimsoll:index:Cluster", "inputs": inputs}
    )
    place = Folder(tmp_path)
    place.write({KEY: orjson.dumps(newer), f"{HISTORY}1.checkpoint.json": content("first")})
    before = place.read()
    with pytest.raises(Exception, match="newer release"):
        a_keeper(tmp_path).recover()
    assert place.read() == before
