"""The defaults on the page of the Environment are those of the model."""

import re
from typing import Any

import pytest

from plimsoll.model.api import EnvironmentSpec, ModelHub
from tests.pages import CHECKOUT

_, FIELDS, DEMAND = re.split(
    r"\n## (?:Fields|Demand)\n", (CHECKOUT / "docs" / "reference" / "environment.md").read_text()
)
ROW = re.compile(r"^\| `([\w.]+)` \| (`[^|]+`|[\d,]+) \|", re.MULTILINE)
ROWS = [*ROW.findall(FIELDS), *((f"demand.{field}", default) for field, default in ROW.findall(DEMAND))]
"""Fields whose default is printed as a value."""
SPEC: dict[str, Any] = EnvironmentSpec(model_hub=ModelHub()).model_dump(mode="json", by_alias=True)
SPEC["nodeClaims"]["taints"] = [
    f"{each['key']}={each['value']}:{each['effect']}" for each in SPEC["nodeClaims"]["taints"]
]


@pytest.mark.parametrize(("field", "default"), ROWS)
def test_a_printed_default_is_that_of_the_model(field: str, default: str) -> None:
    found: Any = SPEC
    for step in field.split("."):
        found = found[step]
    printed = re.findall(r"`([^`]+)`", default) or [default.replace(",", "")]
    defaults = found if isinstance(found, list) else [found]
    assert [f"{each:g}" if isinstance(each, float) else str(each) for each in defaults] == printed


def test_most_fields_have_a_printed_default() -> None:
    assert len(ROWS) > 25
