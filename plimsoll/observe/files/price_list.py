"""Price lists: CSV files with the columns `name` and `price_per_hour`."""

import csv
import math
from pathlib import Path

from plimsoll.errors import PlimsollError

COLUMNS = {"name", "price_per_hour"}


class InvalidPriceListError(PlimsollError):
    """A price list is invalid; the message names file and line."""


def read_prices(file: Path) -> dict[str, float]:
    """Hourly price of one instance, by instance type. Further columns are ignored.

    Raises InvalidPriceListError.
    """
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InvalidPriceListError(f"{file}: {reason}", "use a CSV file with name and price_per_hour") from None
    rows = csv.DictReader(text.splitlines())
    missing = COLUMNS - set(rows.fieldnames or ())
    if missing:
        raise InvalidPriceListError(
            f"{file}: no column {' and '.join(sorted(missing))}", "write name,price_per_hour as the first line"
        )
    prices: dict[str, float] = {}
    for row in rows:
        name, given = (row["name"] or "").strip(), (row["price_per_hour"] or "").strip()
        try:
            price = float(given)
        except ValueError:
            price = math.nan
        if not name or not 0 <= price < math.inf:
            raise InvalidPriceListError(
                f"{file}, line {rows.line_num}: {name or '(no name)'}: {given!r} is not a price of at least 0"
            )
        if name in prices:
            raise InvalidPriceListError(f"{file}, line {rows.line_num}: {name} occurs twice")
        prices[name] = price
    return prices
