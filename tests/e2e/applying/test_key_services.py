"""A stack whose secrets are encrypted with a key of AWS KMS (moto), without a passphrase, also on another host."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
import yaml

from plimsoll.apply import ApplySettings
from plimsoll.apply.engine import CapacityStack, Engine, check_passphrase, engine_environment, find_pulumi
from plimsoll.apply.state import State
from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part
from tests.e2e.cluster.aws import KEYS, REGION, serving_aws

pytestmark = pytest.mark.e2e

STACK = "capacity-prod-0"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a key."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)
    with serving_aws() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", endpoint)
        client = boto3.client("kms", endpoint_url=endpoint, region_name=REGION)
        key_id = client.create_key()["KeyMetadata"]["KeyId"]
        yield f"awskms:///{key_id}?region={REGION}"


def settings(key: str, folder: Path, host: str) -> ApplySettings:
    Installation(missing_programs(find_programs(["pulumi"]))).run()
    return ApplySettings(
        environment="prod",
        work_folder=folder / host,
        backend=f"file://{folder / 'state'}",
        secrets_provider=key,
        pulumi=part("pulumi").cached / "pulumi",
        pulumi_home=folder / "pulumi",
    )


def stack_of(given: ApplySettings) -> CapacityStack:
    given.work_folder.mkdir(parents=True)
    environment = engine_environment(given, "here_1_a")
    engine = Engine(*find_pulumi(given.pulumi))
    return CapacityStack(STACK, given.work_folder / STACK, engine, environment, given.secrets_provider)


def secret(plain: str) -> dict[str, Any]:
    """A secret in the form in which the engine imports it; it is encrypted in the state."""
    return {
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
        "plaintext": orjson.dumps(plain).decode(),
    }


def test_secrets_go_through_the_key_and_another_host_reads_them(key: str, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    here = settings(key, tmp_path, "here")
    check_passphrase(here)
    first = stack_of(here)
    first.init()
    provider = {
        "type": "cloud",
        "state": {"url": key, "encryptedkey": _encrypted_key(here.work_folder / STACK / f"Pulumi.{STACK}.yaml")},
    }
    urn = f"urn:pulumi:{STACK}::plimsoll::pulumi:pulumi:Stack::plimsoll-{STACK}"
    resource = {"urn": urn, "type": "pulumi:pulumi:Stack", "custom": False, "outputs": {"token": secret("open sesame")}}
    manifest = {"time": "2026-01-01T00:00:00Z", "magic": "", "version": ""}
    first.replace_state({"manifest": manifest, "secrets_providers": provider, "resources": [resource]})
    text = (tmp_path / "state" / ".pulumi" / "stacks" / "plimsoll" / f"{STACK}.json").read_bytes()
    assert b"open sesame" not in text
    state = State.read(STACK, text, None)
    assert state.secrets["secretsprovider"] == key
    assert state.secrets["encryptedkey"]

    second = stack_of(settings(key, tmp_path, "there"))
    second.remember_secrets(state.secrets)
    shown = second._command(["stack", "export", "--show-secrets", "--stack", STACK])
    assert "open sesame" in shown


def _encrypted_key(path: Path) -> str:
    return str(yaml.safe_load(path.read_text())["encryptedkey"])
