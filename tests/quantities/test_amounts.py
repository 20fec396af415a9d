"""Amounts that quantities stand for, where Kubernetes and Python differ."""

from decimal import Decimal

import pytest

from plimsoll.quantity import amount_in, parse_bytes, parse_cpu_milli, parse_devices, parse_quantity

MOST = 2**63 - 1


@pytest.mark.parametrize("text", ["1e30", "1e100", "1e999999999", "9223372036854775808", 1e300])
def test_an_amount_beyond_64_bits_counts_as_the_largest(text: str | float) -> None:
    assert [parse(text) for parse in (parse_devices, parse_bytes, parse_cpu_milli)] == [MOST] * 3


def test_an_exponent_of_any_length_is_read() -> None:
    assert parse_bytes("1e-100") == 1
    assert parse_quantity("0e500") == 0
    assert parse_quantity("12E+2") == Decimal(1200)


@pytest.mark.parametrize("text", [" 8", "8 ", "8\n", "٣", "1e", "1e1.5", "1_000"])
def test_what_kubernetes_refuses_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a Kubernetes quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("amounts", "found"),
    [({}, 0), ({"cpu": "2"}, 2000), ({"cpu": "250m"}, 250), ({"cpu": "two"}, 0), ({"gpu": "2"}, 0)],
)
def test_an_amount_that_is_not_there_or_cannot_be_read_is_none(amounts: dict[str, str], found: int) -> None:
    assert amount_in(amounts, "cpu", parse_cpu_milli) == found
    assert amount_in(amounts, "pods", parse_devices, 110) == 110
