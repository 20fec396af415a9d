"""The same with the states in an S3 bucket (moto's server)."""

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from plimsoll.apply import ApplySettings, BackendUnreachableError
from plimsoll.apply.state import S3Backend
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.applying.capacity import a_claim, a_writer, creating, names, settings_for
from tests.e2e.cluster.aws import KEYS, REGION, bucket_url, serving_bucket

pytestmark = pytest.mark.e2e
BUCKET = "states"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with serving_bucket(BUCKET) as url:
        yield url


@pytest.fixture
def settings(claims_sandbox: Sandbox, tmp_path: Path, endpoint: str) -> ApplySettings:
    return settings_for(
        claims_sandbox, tmp_path, backend=bucket_url(endpoint, f"{BUCKET}/plimsoll"), history=2, shards=2
    )


def keys(endpoint: str) -> list[str]:
    listed = boto3.client("s3", endpoint_url=endpoint, region_name=REGION).list_objects_v2(Bucket=BUCKET)
    return [each["Key"] for each in listed.get("Contents", [])]


def histories(endpoint: str) -> list[str]:
    return [key for key in keys(endpoint) if key.endswith(".history.json")]


def test_states_are_in_the_bucket_and_another_host_continues_with_them(
    settings: ApplySettings, endpoint: str, tmp_path: Path
) -> None:
    with a_writer(settings) as writer:
        ever: set[str] = set()
        for index in range(8):
            await_condition(lambda: writer.pre_started)
            ever.update(histories(endpoint))
            outcome = writer.apply(creating(a_claim(f"bucket-{index}", workspace=f"ws-{index}")))
            assert [timing.pre_started for timing in outcome.timings] == [True]
        await_condition(lambda: writer.pre_started)
        backend = S3Backend(settings.backend_url)
        assert [holder.pid for stack in backend.stacks() for holder in backend.lock_holders(stack) or ()] == [
            *writer.engines
        ]
    assert [backend.lock_holders(stack) for stack in backend.stacks()] == [()] * settings.shards
    assert any(key.startswith("plimsoll/.pulumi/stacks/plimsoll/capacity-") for key in keys(endpoint))
    kept = histories(endpoint)
    ever.update(kept)
    assert len(ever) >= 8, "one for each update"
    for stack in {key.rpartition("-")[0] for key in ever}:
        of_stack = sorted(key for key in ever if key.startswith(f"{stack}-"))
        there = [key for key in of_stack if key in kept]
        assert there == of_stack[-len(there) :], "the newest"
        assert 2 <= len(there) <= 3 < len(of_stack), "those kept, and the last update"

    elsewhere = settings.model_copy(update={"work_folder": tmp_path / "other host"})
    with a_writer(elsewhere) as writer:
        assert sorted(each.key.name for each in writer.resources()) == [f"bucket-{index}" for index in range(8)]
        assert names(writer.apply(creating(a_claim("bucket-5"))).created) == ["bucket-5"]
        writer.drain()
    assert not [key for key in keys(endpoint) if "/stacks/" in key and key.endswith(".json")]


def test_a_missing_bucket_is_an_error(settings: ApplySettings, endpoint: str) -> None:
    with (
        pytest.raises(BackendUnreachableError, match="nobucket"),
        a_writer(settings.model_copy(update={"backend": bucket_url(endpoint, "nobucket/plimsoll")})),
    ):
        pass
