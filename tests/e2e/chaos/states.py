"""The states of a chaos run, in a folder or in a bucket, as files that can be copied, damaged and put back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import boto3
from botocore.exceptions import ClientError

from tests.e2e.cluster.aws import KEYS, REGION


class States(Protocol):
    url: str

    def names(self, below: str = "") -> list[str]: ...

    def read(self, name: str) -> bytes: ...

    def write(self, name: str, content: bytes) -> None: ...

    def remove(self, name: str) -> None: ...


class FolderStates:
    def __init__(self, folder: Path) -> None:
        self.url = f"file://{folder}"
        self._folder = folder / ".pulumi"

    def names(self, below: str = "") -> list[str]:
        found = (self._folder / below).rglob("*")
        return sorted(str(path.relative_to(self._folder)) for path in found if path.is_file())

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


class BucketStates:
    def __init__(self, url: str, endpoint: str, bucket: str) -> None:
        self.url = url
        self._bucket, self._root = bucket, ".pulumi/"
        key, secret = KEYS.values()
        self._client: Any = boto3.client(
            "s3", endpoint_url=endpoint, region_name=REGION, aws_access_key_id=key, aws_secret_access_key=secret
        )

    def names(self, below: str = "") -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._root + below)
        keys = (each["Key"] for page in pages for each in page.get("Contents", ()))
        return sorted(key.removeprefix(self._root) for key in keys)

    def read(self, name: str) -> bytes:
        content: bytes = self._client.get_object(Bucket=self._bucket, Key=self._root + name)["Body"].read()
        return content

    def write(self, name: str, content: bytes) -> None:
        self._client.put_object(Bucket=self._bucket, Key=self._root + name, Body=content)

    def remove(self, name: str) -> None:
        self._client.delete_object(Bucket=self._bucket, Key=self._root + name)


def checkpoints(states: States) -> list[str]:
    return [name for name in states.names("stacks") if name.endswith(".json")]


def copy_of(states: States) -> dict[str, bytes]:
    """All files, those of a running engine as they are now. One that is being replaced is left out."""
    found = {}
    for name in states.names():
        try:
            found[name] = states.read(name)
        except (FileNotFoundError, ClientError):
            continue
    return found


def put_back(states: States, copy: Mapping[str, bytes]) -> None:
    for name in set(states.names()) - copy.keys():
        states.remove(name)
    for name, content in copy.items():
        states.write(name, content)
