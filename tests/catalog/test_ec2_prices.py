"""Prices from the AWS Price List, and the command that prints them for an Environment.

moto does not simulate the Price List, so botocore's Stubber responds, and validates requests and responses with
botocore's model of the API.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore.stub import Stubber
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.model.api import EnvironmentSpec
from plimsoll.observe.aws import AwsError
from plimsoll.observe.ec2_prices import ec2_prices

pytestmark = pytest.mark.usefixtures("aws")

FIELDS = {
    "regionCode": "eu-west-1",
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}


def a_product(name: str, price: str, currency: str = "USD", unit: str = "Hrs") -> str:
    """A product as the API returns it: a JSON text, with a term for each way to pay."""
    dimension = {"unit": unit, "pricePerUnit": {currency: price}, "beginRange": "0", "endRange": "Inf"}
    upfront = {"unit": "Quantity", "pricePerUnit": {currency: "12000"}}
    return json.dumps(
        {
            "product": {"sku": f"SKU{name}", "attributes": {"instanceType": name, "gpu": "8"}},
            "serviceCode": "AmazonEC2",
            "terms": {
                "OnDemand": {f"SKU{name}.T": {"priceDimensions": {f"SKU{name}.T.D": dimension}}},
                "Reserved": {f"SKU{name}.R": {"priceDimensions": {f"SKU{name}.R.D": upfront}}},
            },
        }
    )


@contextmanager
def answered(*pages: list[str], region: str = "eu-west-1", error: str = "") -> Iterator[list[str | None]]:
    """The Price List responds with these pages; yields the region of each client."""
    regions: list[str | None] = []
    make = boto3.Session.client

    def client(session: boto3.Session, service: str, **given: Any) -> Any:
        regions.append(given["region_name"])
        made = make(session, service, **given)  # type: ignore[call-overload]
        stub = Stubber(made)
        if error:
            stub.add_client_error("get_products", error, "not allowed")
        for number, page in enumerate(pages):
            filters = [
                {"Type": "TERM_MATCH", "Field": field, "Value": value}
                for field, value in (FIELDS | {"regionCode": region}).items()
            ]
            asked = {"ServiceCode": "AmazonEC2", "Filters": filters, "MaxResults": 100}
            more = {} if number == len(pages) - 1 else {"NextToken": str(number + 1)}
            stub.add_response(
                "get_products", {"PriceList": page, **more}, asked | ({"NextToken": str(number)} if number else {})
            )
        stub.activate()
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boto3.Session, "client", client)
        yield regions


def test_gpu_types_by_the_hour_on_demand_from_every_page() -> None:
    first = [a_product("p5.48xlarge", "60.5400000000"), a_product("m5.large", "0.1070000000")]
    second = [a_product("g6.xlarge", "0.8982000000"), a_product("g6f.large", "0.0000000000")]
    with answered(first, second) as regions:
        found = ec2_prices("eu-west-1")
    assert tuple(found) == ("eu-west-1", "USD", {"g6.xlarge": 0.8982, "p5.48xlarge": 60.54})
    assert list(found.prices) == ["g6.xlarge", "p5.48xlarge"]
    assert regions == ["us-east-1"], "where the API is served"


def test_prices_of_chinese_regions_are_requested_in_china() -> None:
    with answered([a_product("p3.2xlarge", "22.5", "CNY")], region="cn-north-1") as regions:
        assert ec2_prices("cn-north-1").currency == "CNY"
    assert regions == ["cn-northwest-1"]


@pytest.mark.parametrize(
    ("pages", "error", "message"),
    [
        ([], "AccessDeniedException", "AccessDeniedException: not allowed"),
        ([[]], "", "no GPU instance types in eu-west-1"),
        ([["{"]], "", "an unknown format"),
        ([['{"product": []}']], "", "an unknown format"),
        ([[a_product("g6.xlarge", "cheap")]], "", "an unknown format"),
        ([[a_product("g6.xlarge", "1"), a_product("g5.xlarge", "1", "EUR")]], "", "in EUR and USD"),
    ],
)
def test_an_unusable_answer_is_an_error_without_a_traceback(pages: list[list[str]], error: str, message: str) -> None:
    with answered(*pages, error=error), pytest.raises(AwsError, match=message):
        ec2_prices("eu-west-1")


def test_an_invalid_region_is_refused() -> None:
    with pytest.raises(AwsError, match="'europe' is not an AWS region"):
        ec2_prices("europe")


def test_the_command_prints_prices_for_an_environment(tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("name,price_per_hour\ng6.xlarge,0.5\nStandard_NC24ads_A100_v4,3.67\n")
    listed = [a_product("g6.xlarge", "0.8982"), a_product("p5.48xlarge", "60.54"), a_product("p9.large", "1")]
    with answered(listed):
        done = CliRunner().invoke(app, ["prices", "--aws-region", "eu-west-1", "--from", str(own), "--output", "yaml"])
    assert done.exit_code == 0
    spec = EnvironmentSpec.model_validate(yaml.safe_load(done.stdout))
    assert spec.catalog.prices == {"g6.xlarge": 0.5, "p5.48xlarge": 60.54, "Standard_NC24ads_A100_v4": 3.67}
    assert "2 of 3 instance types in eu-west-1, on demand, in USD" in done.stderr
    with answered(listed):
        done = CliRunner().invoke(app, ["prices", "--aws-region", "eu-west-1", "--all", "--output", "json"])
    assert json.loads(done.stdout)["catalog"]["prices"]["p9.large"] == 1


def test_a_source_must_be_given() -> None:
    done = CliRunner().invoke(app, ["prices"])
    assert "no source is given" in str(done.exception)
