"""CatalogSettings: where an environment's instance types are known from, beside the built-in table and the cluster."""

from typing import Annotated, Final

from pydantic import Field

from plimsoll.model.meta import Declared

MOST_PRICES: Final = 1000

Price = Annotated[float, Field(ge=0, le=1_000_000_000, allow_inf_nan=False)]


class CatalogSettings(Declared):
    aws_region: str | None = Field(default=None, max_length=32, pattern=r"^[a-z]{2,}(-[a-z]+)+-[0-9]+$")
    """AWS region whose EC2 API is asked for its instance types (ec2:DescribeInstanceTypes); absent: nobody is asked."""
    prices: dict[str, Price] = Field(default_factory=dict, max_length=MOST_PRICES)
    """Price of one instance for an hour by instance type, in any one currency: what is proposed is ranked by them."""
