"""CatalogSettings: sources of an environment's instance types, besides the built-in table and the cluster."""

from typing import Annotated, Final

from pydantic import Field

from plimsoll.model.meta import Described

MOST_PRICES: Final = 1000

Price = Annotated[float, Field(ge=0, le=1_000_000_000, allow_inf_nan=False)]


class CatalogSettings(Described):
    """Where instance types and their prices come from."""

    aws_region: str | None = Field(default=None, max_length=32, pattern=r"^[a-z]{2,}(-[a-z]+)+-[0-9]+$")
    """AWS region whose EC2 API is queried for instance types (ec2:DescribeInstanceTypes); absent: none is queried."""
    prices: dict[str, Price] = Field(default_factory=dict, max_length=MOST_PRICES)
    """Price of one instance per hour by instance type, in any one currency; suggestions are sorted by it."""
    currency: str | None = Field(default=None, pattern=r"^[A-Z]{3}$")
    """Currency of `prices`, such as USD; built-in list prices are shown beside them only if it is theirs."""
    discount_percent: float = Field(default=0.0, ge=0, le=100, allow_inf_nan=False)
    """How much less than built-in list prices is paid, in percent; `prices` are what is paid."""
