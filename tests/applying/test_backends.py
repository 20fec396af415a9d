"""State backends: a folder, a bucket or the CLI. Also checks the settings that determine a backend."""

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest
from pydantic import ValidationError

from plimsoll.apply import (
    ApplySettings,
    BackendUnreachableError,
    LeaseSettings,
    LockHolder,
    StateDamagedError,
    StateFolderFullError,
    StateUnreadableError,
)
from plimsoll.apply.state import FolderBackend, S3Backend, open_backend
from tests.applying.states import STACK, a_claim, a_state, live

STACKS = ".pulumi/stacks/plimsoll"


def write(folder: Path, name: str = STACK) -> Path:
    path = folder / STACKS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps({"version": 3, "checkpoint": {"latest": a_state(live(a_claim("c"))).deployment}}))
    return path


def test_every_write_changes_the_tag(tmp_path: Path) -> None:
    backend = FolderBackend(tmp_path)
    assert backend.read(STACK) is None
    path = write(tmp_path)
    state = backend.read(STACK)
    assert state is not None
    assert backend.tag(STACK) == state.tag
    path.write_bytes(path.read_bytes() + b"\n")
    assert backend.tag(STACK) != state.tag
    path.unlink()
    assert backend.tag(STACK) != state.tag
    assert backend.stacks() == []


def test_a_state_is_parsed_again_only_after_a_write(tmp_path: Path) -> None:
    backend = FolderBackend(tmp_path)
    path = write(tmp_path)
    before = backend.read(STACK)
    assert backend.read(STACK) is before
    path.write_bytes(path.read_bytes().replace(b'"c"', b'"other"'))
    state = backend.read(STACK)
    assert state is not None and state is not before
    assert [key.name for key in state.resources] == ["other"]
    path.write_bytes(b"{")
    with pytest.raises(StateDamagedError):
        backend.read(STACK)


def test_stacks_of_other_clusters_are_not_listed(tmp_path: Path) -> None:
    for name in ("capacity-prod-0", "capacity-prod-1", "capacity-prod-eu-0", "other"):
        write(tmp_path, name)
    assert FolderBackend(tmp_path).stacks("capacity-prod-eu-") == ["capacity-prod-eu-0"]
    asked = open_backend("gs://bucket", export=lambda _: b"", names=lambda: ["capacity-prod-0", "other"])
    assert asked.stacks("capacity-prod-") == ["capacity-prod-0"]


def test_a_damaged_checkpoint_raises_state_unreadable(tmp_path: Path) -> None:
    write(tmp_path).write_text("half a fi")
    with pytest.raises(StateUnreadableError, match=STACK):
        FolderBackend(tmp_path).read(STACK)


def test_only_old_history_is_pruned(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi/history/plimsoll" / STACK
    folder.mkdir(parents=True)
    for stamp in (100, 9, 30):
        for kind in ("history", "checkpoint"):
            (folder / f"{STACK}-{stamp}.{kind}.json").touch()
    (folder / "notes.txt").touch()
    FolderBackend(tmp_path).prune(STACK, 2)
    kept = {f"{STACK}-{stamp}.{kind}.json" for stamp in (100, 30) for kind in ("history", "checkpoint")}
    assert {path.name for path in folder.iterdir()} == kept | {"notes.txt"}


def test_a_full_folder_is_an_error_before_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = FolderBackend(tmp_path)
    backend.check_room()
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
    with pytest.raises(StateFolderFullError, match="1 MiB of free disk is not enough"):
        backend.check_room()


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BackendUnreachableError, match="file"):
        FolderBackend(tmp_path / "file" / "state").make()


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    """For example a folder of another user. It must not count as a folder without states."""
    (tmp_path / STACKS).parent.mkdir(parents=True)
    (tmp_path / STACKS).touch()
    with pytest.raises(BackendUnreachableError, match=str(tmp_path)):
        FolderBackend(tmp_path).stacks()


def test_the_backend_follows_the_scheme(tmp_path: Path) -> None:
    def unused(_: str = "") -> list[str]:
        raise AssertionError

    folder = open_backend(f"file://{tmp_path}/a%20b", unused, unused)  # type: ignore[arg-type]
    assert folder.stacks() == []
    assert not (tmp_path / "a b").exists(), "what only reads makes nothing"
    folder.make()
    assert (tmp_path / "a b").is_dir()
    url = "s3://bucket/prefix?region=us-east-1&endpoint=http://127.0.0.1:9"
    assert isinstance(open_backend(url, unused, unused), S3Backend)  # type: ignore[arg-type]
    asked = open_backend("gs://bucket", export=lambda _: orjson.dumps({"deployment": {}}), names=lambda: ["b", "a"])
    assert asked.stacks() == ["a", "b"]
    assert asked.read("c") is None
    state = asked.read("a")
    assert state is not None
    assert state.tag is None


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Host and port of an S3 server whose bucket is empty."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = b"<Error><Code>NoSuchKey</Code></Error>"
            self.send_response(404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "options",
    [
        "endpoint={}&disableSSL=true&s3ForcePathStyle=true",
        "endpoint={}&disable_https=true&use_path_style=true",
        "endpoint=http://{}&s3ForcePathStyle=true",
    ],
)
def test_an_s3_url_has_the_options_of_the_engine(options: str, bucket: str) -> None:
    assert S3Backend(f"s3://bucket?region=us-east-1&{options.format(bucket)}").read(STACK) is None


@pytest.mark.parametrize("options", ["profile=nobody", "endpoint=http://"])
def test_an_s3_url_that_the_client_refuses_is_a_clear_error(options: str) -> None:
    with pytest.raises(BackendUnreachableError, match="the backend's bucket states"):
        S3Backend(f"s3://states?region=us-east-1&{options}")


def settings(**fields: object) -> ApplySettings:
    given = {"environment": "prod", "work_folder": "/work", "passphrase_file": "/secret", **fields}
    return ApplySettings.model_validate(given)


def test_the_state_is_in_the_work_folder_by_default() -> None:
    assert settings().backend_url == "file:///work/state"
    assert settings(backend="s3://bucket").backend_url == "s3://bucket"


def test_stacks_are_named_after_their_environment() -> None:
    assert settings().stack_name(3) == "capacity-prod-3"
    assert settings().shard_number("capacity-prod-3") == 3
    assert settings().shard_number("capacity-prod-eu-3") is None
    assert settings().shard_number("capacity-test-3") is None
    assert settings().lease.name == "plimsoll"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"environment": "Prod_1"}, "environment"),
        ({"environment": "x" * 41}, "environment"),
        ({"backend": "/var/lib"}, "must be a URL"),
        ({"backend": "file://state"}, "absolute folder"),
        ({"backend": "s3://?region=eu-central-1"}, "bucket"),
        ({"secrets_provider": "aws"}, "URL of a key"),
        ({"lease": {"duration": float("inf")}}, "duration"),
        ({"shards": 0}, "shards"),
        ({"provider": "other"}, "provider"),
        ({"shard": 1}, "shard"),
    ],
)
def test_invalid_settings_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        settings(**fields)


def test_the_lease_duration_exceeds_the_renew_deadline() -> None:
    with pytest.raises(ValidationError, match="retryPeriod < renewDeadline < duration"):
        LeaseSettings(duration=5, renew_deadline=5)


def test_truncated_attribute_files_are_removed(tmp_path: Path) -> None:
    """The engine cannot read a state with a truncated attribute file, but it can read one without it."""
    state = write(tmp_path)
    cut, whole, of_another = (state.with_name(f"{name}.attrs") for name in (state.name, f"{state.name}.bak", "x.json"))
    cut.touch()
    of_another.touch()
    whole.write_text('{"user.content_type": "text/plain"}')
    FolderBackend(tmp_path).repair(STACK)
    assert (cut.exists(), whole.exists(), of_another.exists(), state.exists()) == (False, True, True, True)
    FolderBackend(tmp_path / "nothing").repair(STACK)


def test_a_truncated_lock_file_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi/locks/organization/plimsoll" / STACK
    folder.mkdir(parents=True)
    held, begun, cut = (folder / name for name in ("a.json", "b.json.18ea.tmp", "a.json.attrs"))
    held.write_text('{"pid": 7, "username": "root", "hostname": "node-7", "timestamp": "2026-01-01T00:00:00Z"}')
    begun.write_text("")
    cut.write_text('{"user.')
    FolderBackend(tmp_path).repair(STACK)
    assert sorted(folder.iterdir()) == [held]
    assert FolderBackend(tmp_path).lock_holders(STACK) == (LockHolder("root", "node-7", 7, "2026-01-01T00:00:00Z"),)
    assert FolderBackend(tmp_path).lock_holders(f"{STACK}0") == ()


def test_files_that_cannot_be_read_are_a_clear_error(tmp_path: Path) -> None:
    locks, states = tmp_path / ".pulumi/locks/organization/plimsoll" / STACK, tmp_path / STACKS
    (locks / "a.json").mkdir(parents=True)  # instead of a file of another account: root may read that
    (states / f"{STACK}.json").mkdir(parents=True)
    backend = FolderBackend(tmp_path)
    for read in (backend.repair, backend.lock_holders, backend.read):
        with pytest.raises(BackendUnreachableError, match=str(tmp_path)):
            read(STACK)


def test_a_lock_file_with_other_content_has_unknown_holders(tmp_path: Path) -> None:
    lock = tmp_path / ".pulumi/locks/organization/plimsoll" / STACK / "a.json"
    lock.parent.mkdir(parents=True)
    for content in ('{"pid": 7}', "[]", "7", "{"):
        lock.write_text(content)
        assert FolderBackend(tmp_path).lock_holders(STACK) is None
