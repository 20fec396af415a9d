"""Backends of states: a folder or an S3 bucket, read without a process, and any other backend through the CLI."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from plimsoll.apply.errors import (
    ApplyError,
    BackendUnreachableError,
    LockHolder,
    StateChangedError,
    StateDamagedError,
    StateFolderFullError,
)
from plimsoll.apply.settings import PROJECT
from plimsoll.apply.state.state import State

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_STACKS: Final = f".pulumi/stacks/{PROJECT}/"
_HISTORY: Final = f".pulumi/history/{PROJECT}/"
_LOCKS: Final = ".pulumi/locks/"
"""Where the engine stores checkpoints, history and locks below the root of a folder or bucket."""
_DAMAGED: Final = ".damaged-"
"""Follows the name of a checkpoint that was set aside; the engine does not take it for a stack."""
_ROOM: Final = 4 * 1024 * 1024
"""Bytes that must be free in addition to the states, for a lock, a history entry and the engine's log."""


class SetAside(NamedTuple):
    """What became of a damaged state."""

    damaged: str
    """Where it is kept."""
    backup: str
    """The backup that took its place; empty if none can be read: the stack is new then."""


class Backend:
    """Names and states of the project's stacks. Every method may raise BackendUnreachableError."""

    def __init__(self) -> None:
        self._parsed: dict[str, State] = {}
        """By stack: as last read, with a tag. One of 5,000 resources takes 0.4 s."""

    def make(self) -> None:
        """Creates the folder of the states if it is missing; for backends other than a folder it does nothing."""

    def stacks(self, prefix: str = "") -> list[str]:
        """Names of the stacks that begin with `prefix`. Other clusters may use the same backend."""
        raise NotImplementedError

    def read(self, stack: str) -> State | None:
        """The state of a stack; None if the stack does not exist."""
        raise NotImplementedError

    def _state(self, stack: str, tag: str, content: Callable[[], bytes]) -> State:
        """The state with this tag; the same value while it does not change."""
        known = self._parsed.get(stack)
        if known is None or known.tag != tag:
            known = self._parsed[stack] = State.read(stack, content(), tag)
        return known

    def tag(self, stack: str) -> str | None:
        """The current tag of the state; None if the backend has no tags."""
        return None

    def prune(self, stack: str, keep: int) -> None:
        """Removes all but the newest `keep` entries of the stack's history. Pulumi Cloud has its own rules."""

    def repair(self, stack: str) -> None:
        """Removes incomplete files of a killed engine, which no engine can read. Nothing may be writing."""

    def set_aside(self, stack: str) -> SetAside | None:
        """Keeps a damaged state under another name, and puts the newest backup that can be read in its place. Nothing
        may be writing; S3 checks it, and StateChangedError is raised where the state has changed since it was read.
        None if the backend cannot, such as one whose service keeps the versions of a state."""
        return None

    def lock_holders(self, stack: str) -> tuple[LockHolder, ...] | None:
        """Who holds the stack's locks; None if the backend does not tell."""
        return None

    def check_room(self) -> None:
        """Raises StateFolderFullError if there is no space for the next states."""


def open_backend(url: str, export: Callable[[str], bytes], names: Callable[[], list[str]]) -> Backend:
    """Opens a backend. `export` and `names` call the CLI, for backends other than folders and S3."""
    scheme = urlsplit(url).scheme
    if scheme == "file":
        return FolderBackend(_folder(url))
    if scheme == "s3":
        return S3Backend(url)
    return ExportingBackend(export, names)


def _folder(url: str) -> Path:
    parts = urlsplit(url)
    path = unquote(parts.path)
    return Path.home() / path.lstrip("/") if parts.netloc == "~" else Path(path)


class FolderBackend(Backend):
    """A folder (`file://`)."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def make(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BackendUnreachableError(
                f"the backend's folder {self._folder}: {error.strerror}", "set a writable folder with --backend"
            ) from None

    def stacks(self, prefix: str = "") -> list[str]:
        try:
            with _reaching(self._folder):
                paths = list((self._folder / _STACKS).iterdir())
        except FileNotFoundError:
            return []
        return sorted(path.stem for path in paths if path.name.startswith(prefix) and path.suffix == ".json")

    def read(self, stack: str) -> State | None:
        path = self._path(stack)
        try:
            with _reaching(path):
                return self._state(stack, _stat_tag(path.stat()), path.read_bytes)
        except FileNotFoundError:
            return None

    def tag(self, stack: str) -> str | None:
        try:
            return _stat_tag(self._path(stack).stat())
        except OSError:
            return "missing"

    def prune(self, stack: str, keep: int) -> None:
        folder = self._folder / _HISTORY / stack
        with _reaching(folder):
            names = (path.name for path in folder.glob("*")) if folder.is_dir() else ()
            for name in _outdated(names, keep):
                (folder / name).unlink(missing_ok=True)

    def repair(self, stack: str) -> None:
        """Removes truncated files. The engine stores the attributes of a file in a second file; if that is truncated,
        the engine cannot read the state, but without it, it can. It also takes a truncated lock, left by a kill or a
        full disk, for a lock that it cannot read."""
        for path in (*(self._folder / _STACKS).glob(f"{stack}.json*.attrs"), *self._locks(stack)):
            with contextlib.suppress(FileNotFoundError), _reaching(path):
                if not _is_json(path.read_bytes()):
                    path.unlink()

    def set_aside(self, stack: str) -> SetAside:
        path, history = self._path(stack), self._folder / _HISTORY / stack
        damaged = path.with_name(f"{path.name}{_DAMAGED}{time.time_ns()}")
        with _reaching(path):
            names = [each.name for each in history.glob("*")] if history.is_dir() else []
            backups = [*(history / name for name in _checkpoints(names)), path.with_name(f"{path.name}.bak")]
            backup, content = _newest_readable(stack, ((each, partial(_content, each)) for each in backups))
            path.rename(damaged)
            if content:
                fresh = path.with_name(f"{path.name}.restored")
                fresh.write_bytes(content)
                fresh.replace(path)
        return SetAside(str(damaged), backup)

    def lock_holders(self, stack: str) -> tuple[LockHolder, ...] | None:
        locks = []
        for path in self._locks(stack):
            # Released meanwhile, or attributes of a lock.
            with contextlib.suppress(FileNotFoundError), _reaching(path):
                locks += [path.read_bytes()] if path.suffix == ".json" else []
        return _holders(locks)

    def check_room(self) -> None:
        with _reaching(self._folder):
            states = sum(path.stat().st_size for path in (self._folder / _STACKS).glob("*.json"))
            free = shutil.disk_usage(self._folder).free
        if free < _ROOM + 3 * states:
            raise StateFolderFullError(
                f"{self._folder}: {free >> 20} MiB of free disk is not enough for the states of the capacity stacks",
                f"free {(_ROOM + 3 * states) >> 20} MiB of disk, or move the backend; nothing was changed",
            )

    def _locks(self, stack: str) -> Iterator[Path]:
        return (self._folder / _LOCKS).glob(f"**/{stack}/*")

    def _path(self, stack: str) -> Path:
        return self._folder / _STACKS / f"{stack}.json"


class S3Backend(Backend):
    """An S3 bucket: `s3://bucket[/prefix][?region=&endpoint=&profile=&s3ForcePathStyle=true]`. It is never full and has
    no incomplete files."""

    def __init__(self, url: str) -> None:
        super().__init__()
        parts = urlsplit(url)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        self._bucket = parts.netloc
        prefix = parts.path.strip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._client: S3Client = self._call(lambda: _s3_client(query))

    def stacks(self, prefix: str = "") -> list[str]:
        names = (key.rpartition("/")[2] for key in self._keys(_STACKS + prefix))
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))

    def read(self, stack: str) -> State | None:
        found = self._object(self._key(stack))
        return None if found is None else self._state(stack, found[1], lambda: found[0])

    def tag(self, stack: str) -> str | None:
        try:
            return str(self._call(lambda: self._client.head_object(Bucket=self._bucket, Key=self._key(stack)))["ETag"])
        except KeyError:
            return "missing"

    def prune(self, stack: str, keep: int) -> None:
        folder = f"{_HISTORY}{stack}/"
        for name in _outdated((key.rpartition("/")[2] for key in self._keys(folder)), keep):
            key = f"{self._prefix}{folder}{name}"
            self._call(partial(self._client.delete_object, Bucket=self._bucket, Key=key))

    def set_aside(self, stack: str) -> SetAside:
        bucket, key, folder = self._bucket, self._key(stack), f"{_HISTORY}{stack}/"
        damaged = f"{key}{_DAMAGED}{time.time_ns()}"
        there = self._object(key)
        if there is None or _is_readable(stack, there[0]):
            raise self._changed()
        names = [each.rpartition("/")[2] for each in self._keys(folder)]
        backups = [*(f"{self._prefix}{folder}{name}" for name in _checkpoints(names)), f"{key}.bak"]
        backup, content = _newest_readable(stack, ((each, partial(self._content, each)) for each in backups))
        self._call(lambda: self._client.put_object(Bucket=bucket, Key=damaged, Body=there[0]))
        try:
            if content:
                self._call(lambda: self._client.put_object(Bucket=bucket, Key=key, Body=content, IfMatch=there[1]))
            else:
                self._call(lambda: self._client.delete_object(Bucket=bucket, Key=key, IfMatch=there[1]))
        except KeyError:
            raise self._changed() from None
        return SetAside(damaged, backup)

    def lock_holders(self, stack: str) -> tuple[LockHolder, ...] | None:
        found = (self._object(key) for key in self._keys(_LOCKS) if f"/{stack}/" in key)
        return _holders(each[0] for each in found if each is not None)

    def _object(self, key: str) -> tuple[bytes, str] | None:
        """Content and ETag; None if the object does not exist."""

        def read() -> tuple[bytes, str]:
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            return answer["Body"].read(), answer["ETag"]

        try:
            content: tuple[bytes, str] = self._call(read)
        except KeyError:
            return None
        return content

    def _content(self, key: str) -> bytes:
        found = self._object(key)
        return b"" if found is None else found[0]

    def _key(self, stack: str) -> str:
        return f"{self._prefix}{_STACKS}{stack}.json"

    def _keys(self, folder: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix + folder
        )
        keys: list[str] = self._call(lambda: [item["Key"] for page in pages for item in page.get("Contents", [])])
        return keys

    def _call(self, request: Callable[[], Any]) -> Any:
        """The response to a request. Raises KeyError if the object does not exist, StateChangedError if its ETag is
        another one, or BackendUnreachableError."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return request()
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code")
            if code in ("NoSuchKey", "404"):
                raise KeyError from None
            # The second: two such requests at the same time.
            if code in ("PreconditionFailed", "ConditionalRequestConflict"):
                raise self._changed() from None
            raise _unreachable(self._bucket, error) from None
        except (BotoCoreError, ValueError) as error:  # ValueError: of an endpoint that is no URL
            raise _unreachable(self._bucket, error) from None

    def _changed(self) -> ApplyError:
        return StateChangedError(
            f"the backend's bucket {self._bucket}: another process has just changed the state; it was left",
            "run `pulumi stack history` to see which process changes it",
        )


def _s3_client(query: dict[str, str]) -> "S3Client":
    # Imported on first use: it takes half a second and 40 MB.
    import boto3
    from botocore.config import Config

    # As the engine reads them: https://gocloud.dev/howto/blob/#s3
    by_path = "true" in (query.get("s3ForcePathStyle"), query.get("use_path_style"))
    plain = "true" in (query.get("disableSSL"), query.get("disable_https"))
    style: Any = {"addressing_style": "path"} if by_path else {}
    endpoint = query.get("endpoint")
    if endpoint is not None and "://" not in endpoint:
        endpoint = f"{'http' if plain else 'https'}://{endpoint}"
    session = boto3.Session(profile_name=query.get("profile"))
    return session.client(
        "s3",
        region_name=query.get("region"),
        endpoint_url=endpoint,
        use_ssl=not plain,
        config=Config(s3=style, connect_timeout=5, read_timeout=30, retries={"mode": "standard", "max_attempts": 4}),
    )


def _unreachable(bucket: str, error: Exception) -> ApplyError:
    return BackendUnreachableError(
        f"the backend's bucket {bucket}: {error}", "check its name, endpoint and credentials"
    )


class ExportingBackend(Backend):
    """Any other backend, with a process of the CLI for each request. It has no tags and keeps its own history."""

    def __init__(self, export: Callable[[str], bytes], names: Callable[[], list[str]]) -> None:
        super().__init__()
        self._export = export
        self._names = names

    def stacks(self, prefix: str = "") -> list[str]:
        return sorted(name for name in self._names() if name.startswith(prefix))

    def read(self, stack: str) -> State | None:
        return State.read(stack, self._export(stack), None) if stack in self._names() else None


@contextlib.contextmanager
def _reaching(path: Path) -> Iterator[None]:
    """Converts an OSError, except FileNotFoundError, into BackendUnreachableError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BackendUnreachableError(
            f"the backend's {error.filename or path}: {error.strerror}",
            "give this account the right to read and write it, or set another folder with --backend",
        ) from None


def _holders(locks: Iterable[bytes]) -> tuple[LockHolder, ...] | None:
    """The holders in the engine's lock files; None if a file says something else."""
    try:
        found = [orjson.loads(lock) for lock in locks]
        return tuple(LockHolder(each["username"], each["hostname"], each["pid"], each["timestamp"]) for each in found)
    except (ValueError, TypeError, KeyError):
        return None


def _checkpoints(names: Iterable[str]) -> list[str]:
    """The checkpoints among the files of a stack's history, the newest first."""
    return sorted((name for name in names if name.endswith(".checkpoint.json")), reverse=True)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _is_readable(stack: str, content: bytes) -> bool:
    try:
        return bool(State.read(stack, content, None).stack)
    except StateDamagedError:
        return False


def _newest_readable(stack: str, backups: Iterable[tuple[object, Callable[[], bytes]]]) -> tuple[str, bytes]:
    """The first backup that is a state with resources: its name and content; both empty if there is none."""
    for name, read in backups:
        with contextlib.suppress(StateDamagedError):
            content = read()
            if State.read(stack, content, None).deployment:
                return str(name), content
    return "", b""


def _is_json(content: bytes) -> bool:
    try:
        orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return True


def _stat_tag(stat: os.stat_result) -> str:
    return f"{stat.st_ino}-{stat.st_mtime_ns}-{stat.st_size}"


def _outdated(names: Iterable[str], keep: int) -> list[str]:
    """The history files except those of the newest `keep` updates:
    `<stack>-<nanoseconds>.{history,checkpoint}.json`."""
    by_update: dict[int, list[str]] = {}
    for name in names:
        stamp = name.partition(".")[0].rpartition("-")[2]
        if stamp.isdecimal():
            by_update.setdefault(int(stamp), []).append(name)
    return [name for stamp in sorted(by_update, reverse=True)[keep:] for name in by_update[stamp]]
