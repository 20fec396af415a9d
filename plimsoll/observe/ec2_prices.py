"""On-demand prices of AWS's GPU instance types, from the AWS Price List API, for one region.

Needs the permission `pricing:GetProducts`. The attributes of a product and the form of its terms:
https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-service-price-list-file.html
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from plimsoll.observe.aws import CONFIG, AwsError, error_text, explained, region_of, session

_SERVED_IN: Final = "us-east-1"
_SERVED_IN_CHINA: Final = "cn-northwest-1"
"""The API has few endpoints; each has the prices of all regions of its partition."""
_FAMILIES: Final = ("g", "p")
"""As in `plimsoll.observe.ec2`."""
_FILTERS: Final = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
"""Selects, of the prices of a type, that of an on-demand instance as Karpenter launches it."""
_PAGE: Final = 100


class Ec2Prices(NamedTuple):
    """Price of one instance for an hour, by instance type."""

    region: str
    currency: str
    """USD, in China CNY."""
    prices: Mapping[str, float]


def ec2_prices(region: str | None = None) -> Ec2Prices:
    """The on-demand prices of a region (argument, else the AWS configuration). Raises AwsError."""
    aws = session()
    name = region_of(aws, region)
    served_in = _SERVED_IN_CHINA if name.startswith("cn-") else _SERVED_IN
    try:
        client = aws.client("pricing", region_name=served_in, config=CONFIG)
        found = dict(_prices(_products(client, name)))
    except (BotoCoreError, ClientError) as error:
        raise AwsError(
            f"the AWS Price List did not list the prices in {name}: {error_text(error)}",
            explained(error, "pricing:GetProducts", "set your own prices with --from"),
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AwsError(f"the AWS Price List answered in an unknown format: {error!r}") from None
    if not found:
        raise AwsError(f"the AWS Price List has no GPU instance types in {name}", "check the region's name")
    currencies = sorted({currency for currency, _ in found.values()})
    if len(currencies) > 1:
        raise AwsError(f"the AWS Price List has prices in {' and '.join(currencies)} in {name}")
    return Ec2Prices(name, currencies[0], {each: found[each][1] for each in sorted(found)})


def _products(client: Any, region: str) -> Iterator[Mapping[str, Any]]:
    wanted = {"regionCode": region, **_FILTERS}
    pages = client.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2",
        Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
        PaginationConfig={"PageSize": _PAGE},
    )
    for page in pages:
        for text in page["PriceList"]:
            yield json.loads(text)


def _prices(products: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, float]]]:
    """(instance type, (currency, price)) of each product with a price per hour."""
    for product in products:
        name = str(product["product"]["attributes"].get("instanceType", ""))
        if not name.startswith(_FAMILIES):
            continue
        for term in (product.get("terms", {}).get("OnDemand") or {}).values():
            for dimension in term["priceDimensions"].values():
                for currency, amount in dimension["pricePerUnit"].items():
                    # Products with a price of 0 cannot be rented alone.
                    if dimension["unit"] == "Hrs" and float(amount) > 0:
                        yield name, (currency, float(amount))
