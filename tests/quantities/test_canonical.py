"""Quantities as Kubernetes writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.quantity import canonical_quantity, parse_quantity


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (8, "8"),
        ("8", "8"),
        (0, "0"),
        ("0Gi", "0"),
        ("0.5", "500m"),
        (0.1, "100m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("100000k", "100M"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("2048", "2048"),
        ("1024Ei", "1024Ei"),
        ("1e3", "1e3"),
        ("12E6", "12e6"),
        ("1500e-3", "1500e-3"),
        ("2e0", "2"),
        ("3E", "3E"),
        ("0.3n", "1n"),
        ("-2048Ki", "-2Mi"),
        ("+5", "5"),
    ],
)
def test_canonical_forms_are_those_of_apimachinery(given: str | float, written: str) -> None:
    assert canonical_quantity(given) == written


@given(
    number=st.decimals(min_value=-(10**6), max_value=10**6, places=3),
    suffix=st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3", "E-2", "E"]),
)
def test_the_canonical_form_has_the_same_value_and_is_stable(number: object, suffix: str) -> None:
    text = f"{number}{suffix}"
    written = canonical_quantity(text)
    assert parse_quantity(written) == parse_quantity(text)
    assert canonical_quantity(written) == written


@pytest.mark.parametrize("text", ["", "many", "1Kb", "--1", "1 Gi"])
def test_invalid_quantities_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a Kubernetes quantity"):
        canonical_quantity(text)
