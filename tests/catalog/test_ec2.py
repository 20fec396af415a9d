"""AWS's instance types from the EC2 API, and the cache of its answers."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.cluster.catalog import Catalog
from plimsoll.observe.aws import AwsError
from plimsoll.observe.ec2 import MAX_AGE, describe_types, ec2_types
from tests.catalog.aws import Requests, a_device, an_item

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


pytestmark = pytest.mark.usefixtures("aws")


def test_types_with_gpus_and_the_memory_of_one(tmp_path: Path) -> None:
    found = {each.name: each for each in ec2_types(tmp_path, NOW, "eu-west-1").types}
    assert "m5.large" not in found
    p5 = found["p5.48xlarge"]
    assert (p5.cloud, p5.gpus, p5.gpu_memory_mib, p5.product) == ("aws", 8, 81920, "NVIDIA H100")
    assert (p5.vcpus, p5.memory_mib, p5.source) == (192, 2097152, "EC2 in eu-west-1")


def test_names_and_memory_of_the_api_do_not_replace_those_of_labels(tmp_path: Path) -> None:
    found = {each.name: each for each in ec2_types(tmp_path, NOW, "eu-west-1").types}
    merged = Catalog.builtin().with_types(found.values())
    assert merged.differences == ()
    assert (live := merged.lookup("g6.xlarge")) is not None
    assert (live.gpu_memory_mib, live.gpu_product) == (23034, "NVIDIA-L4")
    assert (found["g6.xlarge"].gpu_memory_mib, found["g6.xlarge"].gpu_product) == (22888, None)
    assert live.source == "table and EC2 in eu-west-1"


def test_another_gpu_of_the_api_contradicts_the_table() -> None:
    other = describe_types(answers([an_item("g6.xlarge", a_device(name="A10G"))]), "r", NOW).types
    assert [each.live.name for each in Catalog.builtin().with_types(other).differences] == ["g6.xlarge"]


@pytest.mark.parametrize(
    ("network", "pods"),
    [
        ({"MaximumNetworkInterfaces": 4, "Ipv4AddressesPerInterface": 15}, 58),
        # Of several network cards, only the interfaces of the default one serve pods.
        (
            {
                "MaximumNetworkInterfaces": 64,
                "Ipv4AddressesPerInterface": 50,
                "DefaultNetworkCardIndex": 0,
                "NetworkCards": [{"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 1},
                                 {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 2}],
            },
            100,
        ),
        ({"MaximumNetworkInterfaces": 4}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_pods_have_the_addresses_of_the_network_interfaces(network: dict[str, Any], pods: int | None) -> None:
    [found] = describe_types(answers([an_item("p.large", a_device()) | {"NetworkInfo": network}]), "r", NOW).types
    assert found.max_pods == pods


def test_each_region_is_requested_and_cached_separately(tmp_path: Path, requests: Requests) -> None:
    for _ in range(2):
        for region in ("us-east-1", "eu-west-1"):
            found = ec2_types(tmp_path, NOW, region)
            assert {each.source for each in found.types} == {f"EC2 in {region}"}
    assert requests.regions == ["us-east-1", "eu-west-1"]


def test_the_default_region_is_that_of_the_aws_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert ec2_types(tmp_path, NOW).region == "eu-west-1"
    assert requests.regions == ["eu-west-1"]


def test_an_answer_is_cached_until_it_is_too_old(tmp_path: Path, requests: Requests) -> None:
    first = ec2_types(tmp_path / "new" / "folder", NOW, "eu-west-1")
    assert ec2_types(tmp_path / "new" / "folder", NOW + MAX_AGE, "eu-west-1") == first
    assert len(requests.regions) == 1
    later = ec2_types(tmp_path / "new" / "folder", NOW + MAX_AGE + timedelta(seconds=1), "eu-west-1")
    assert len(requests.regions) == 2
    assert later.fetched_at > first.fetched_at
    assert [file.name for file in (tmp_path / "new" / "folder").iterdir()] == ["instance-types-eu-west-1.json"]


def test_an_answer_from_the_future_is_requested_again(tmp_path: Path, requests: Requests) -> None:
    ec2_types(tmp_path, NOW, "eu-west-1")
    ec2_types(tmp_path, NOW - timedelta(days=1), "eu-west-1")
    assert len(requests.regions) == 2


def test_an_old_answer_is_used_with_a_warning_if_the_api_fails(tmp_path: Path, requests: Requests) -> None:
    first = ec2_types(tmp_path, NOW, "eu-west-1")
    requests.failure = EndpointConnectionError(endpoint_url="https://ec2")
    later = ec2_types(tmp_path, NOW + timedelta(days=90), "eu-west-1")
    assert later.types == first.types
    assert "types as of 2026-05-01 12:00 UTC" in later.warnings[0]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"region": "eu-west-1"}', b"\xff"])
def test_a_damaged_cache_file_is_requested_again(tmp_path: Path, content: bytes, requests: Requests) -> None:
    good = ec2_types(tmp_path, NOW, "eu-west-1")
    [file] = tmp_path.iterdir()
    file.write_bytes(content)
    assert ec2_types(tmp_path, NOW, "eu-west-1") == good
    assert len(requests.regions) == 2


def test_a_cache_file_with_impossible_gpus_is_ignored(tmp_path: Path, requests: Requests) -> None:
    ec2_types(tmp_path, NOW, "eu-west-1")
    [file] = tmp_path.iterdir()
    file.write_text(file.read_text().replace('"gpus":8', '"gpus":-8'))
    assert all(each.gpus > 0 for each in ec2_types(tmp_path, NOW, "eu-west-1").types)
    assert len(requests.regions) == 2


def test_no_answer_and_no_cache_is_an_error(tmp_path: Path, requests: Requests) -> None:
    requests.failure = EndpointConnectionError(endpoint_url="https://ec2")
    with pytest.raises(AwsError, match="EC2 API in eu-west-1"):
        ec2_types(tmp_path, NOW, "eu-west-1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("region", ["", "../../etc", "europe", "eu-west-1/x"])
def test_an_invalid_region_is_refused(tmp_path: Path, region: str, requests: Requests) -> None:
    with pytest.raises(AwsError, match="region"):
        ec2_types(tmp_path, NOW, region)
    assert requests.regions == []


def test_a_missing_profile_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(AwsError, match="nobody"):
        ec2_types(tmp_path, NOW, "eu-west-1")


def answers(*pages: list[dict[str, Any]]) -> Any:
    """An EC2 client that answers with these pages, in this order."""
    client = boto3.client("ec2", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
    stub = Stubber(client)
    for number, items in enumerate(pages):
        families = [{"Name": "instance-type", "Values": ["g*", "p*"]}]
        expected = {"MaxResults": 100, "Filters": families} | ({"NextToken": str(number)} if number else {})
        more = {} if number == len(pages) - 1 else {"NextToken": str(number + 1)}
        stub.add_response("describe_instance_types", {"InstanceTypes": items, **more}, expected)
    stub.activate()
    return client


def test_every_page_is_read() -> None:
    client = answers(
        [an_item("a.large", a_device())], [{"InstanceType": "p0.large"}], [an_item("b.large", a_device(2))]
    )
    found = describe_types(client, "eu-west-1", NOW)
    assert [(each.name, each.gpus) for each in found.types] == [("a.large", 1), ("b.large", 2)]


def test_a_part_of_a_gpu_counts_as_one_with_the_memory_of_the_part() -> None:
    part = a_device(0, 5722, LogicalGpuCount=1, GpuPartitionSize=0.25)
    [found] = describe_types(answers([an_item("g6f.2xlarge", part)]), "eu-west-1", NOW).types
    assert (found.gpus, found.gpu_memory_mib) == (1, 5722)


def test_types_that_cannot_be_read_are_left_out_and_named() -> None:
    items = [
        an_item("mixed.large", a_device(), a_device(name="T4")),
        {"InstanceType": "bare.large", "GpuInfo": {"TotalGpuMemoryInMiB": 1}},
        an_item("none.large", a_device(0)),
        an_item("unknown.large", a_device(1, 0)),
        an_item("good.large", a_device()),
    ]
    found = describe_types(answers(items), "eu-west-1", NOW)
    assert [each.name for each in found.types] == ["good.large"]
    left_out = [warning.split(":")[0] for warning in found.warnings]
    assert left_out == ["mixed.large", "bare.large", "none.large", "unknown.large"]


def test_a_missing_permission_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = boto3.client("ec2", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
    stub = Stubber(client)
    stub.add_client_error("describe_instance_types", "UnauthorizedOperation", "You are not authorized")
    stub.activate()
    monkeypatch.setattr(boto3.Session, "client", lambda *_, **__: client)
    with pytest.raises(AwsError) as error:
        ec2_types(tmp_path, NOW, "eu-west-1")
    assert "UnauthorizedOperation: You are not authorized" in error.value.message
    assert "ec2:DescribeInstanceTypes" in str(error.value.hint)


def test_the_command_lists_the_types_of_the_region(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments = ["estimate", "phi-4", "--aws-region", "eu-west-1", "--cloud", "aws", "--output", "json"]
    answer = json.loads(CliRunner().invoke(app, arguments).stdout)
    sources = {each["instance_type"]: each["source"] for each in answer["candidates"]}
    assert sources["p5.48xlarge"] == "table and EC2 in eu-west-1"
    assert sources["p4d.24xlarge"] == "table"
    assert requests.regions == ["eu-west-1"]
