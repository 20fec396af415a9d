from collections.abc import Iterator
from functools import cache
from pathlib import Path

import boto3
import pytest
from botocore.loaders import JSONFileLoader

from tests.catalog.aws import Requests


@pytest.fixture(scope="session", autouse=True)
def botocore_reads_its_models_once() -> Iterator[None]:
    """Each session would read megabytes of EC2's API models, a third of the time of these tests."""
    read = cache(JSONFileLoader().load_file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", lambda _self, path: read(path))
        yield


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """EC2 as simulated by moto, without the user's own AWS configuration."""
    from moto import mock_aws  # half a second, which other tests need not wait for

    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with mock_aws():
        yield


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    seen = Requests()
    make = boto3.Session.client
    monkeypatch.setattr(boto3.Session, "client", lambda *given, **named: seen.watch(make(*given, **named)))
    return seen
