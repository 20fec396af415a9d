"""Prices from a CSV file."""

from pathlib import Path

import pytest

from plimsoll.observe.files import InvalidPriceListError, read_prices


def test_prices_by_name_and_other_columns_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_bytes(b"\xef\xbb\xbfname,region,price_per_hour\r\ng6.xlarge,eu,0.8\r\np5.48xlarge,eu,98\r\n")
    assert read_prices(file) == {"g6.xlarge": 0.8, "p5.48xlarge": 98}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column name and price_per_hour"),
        ("name\ng6.xlarge\n", "no column price_per_hour"),
        ("name,price_per_hour\ng6.xlarge,cheap\n", "line 2: g6.xlarge: 'cheap'"),
        ("name,price_per_hour\ng6.xlarge,1\ng6.2xlarge,-1\n", "line 3: g6.2xlarge: '-1'"),
        ("name,price_per_hour\ng6.xlarge,nan\n", "line 2"),
        ("name,price_per_hour\ng6.xlarge,inf\n", "line 2"),
        ("name,price_per_hour\ng6.xlarge\n", "line 2"),
        ("name,price_per_hour\n,1\n", "no name"),
        ("name,price_per_hour\na,1\na,2\n", "line 3: a occurs twice"),
    ],
)
def test_a_bad_list_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(text)
    with pytest.raises(InvalidPriceListError, match=message):
        read_prices(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidPriceListError, match=r"prices\.csv: No such file"):
        read_prices(tmp_path / "prices.csv")
