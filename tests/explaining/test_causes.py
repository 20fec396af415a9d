"""Every reason has its row on the page "No node comes", which is made from the table."""

import ast
import importlib
import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from plimsoll.explaining import (
    CLAIMS,
    CONDITIONS,
    DEMANDS,
    EVENTS,
    NODES,
    POD_CONDITIONS,
    PODS,
    STEPS,
    WORKSPACES,
    no_node_comes,
)
from tests.golden import UPDATE

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "operate" / "no-node-comes.md"
ENDINGS = ("Reason", "Phase", "Stage", "State", "Failed")
"""Names of enums that say why, or how far, something is."""
OTHERS = ("plimsoll.explaining.chain.State", "plimsoll.cli.controller.status.ControllerState")
"""These say whether a step passed, and whether the controller runs."""
TABLES: dict[str, Mapping[Any, object]] = {
    "RefusalReason": PODS,
    "Reason": WORKSPACES,
    "DemandPhase": DEMANDS,
    "ClaimStage": CLAIMS,
    "StepReason": STEPS,
    "ConditionReason": CONDITIONS,
    "Failed": CONDITIONS,
    "EventReason": EVENTS,
    "PodState": EVENTS,
    "UnscheduledReason": POD_CONDITIONS,
    "SignalReason": POD_CONDITIONS,
    "DiscrepancyReason": NODES,
}
FINE = {
    "Reason": {"Accepted"},
    "DemandPhase": {"Completed"},
    "ClaimStage": {"Ready"},
    "ConditionReason": {"Ready", "NotNeeded"},
    "EventReason": {"Accepted", "CapacityCreated", "CapacityUpdated", "CapacityDeleted", "DemandCompleted"},
}
"""What is as it should be needs no row."""


def enums() -> Iterator[type[StrEnum]]:
    """Every enum of reasons in the product's source, by its name."""
    for file in sorted((CHECKOUT / "plimsoll").rglob("*.py")):
        module = ".".join(file.relative_to(CHECKOUT).with_suffix("").parts)
        for node in ast.parse(file.read_text()).body:
            if (
                isinstance(node, ast.ClassDef)
                and any(isinstance(base, ast.Name) and base.id == "StrEnum" for base in node.bases)
                and node.name.endswith(ENDINGS)
                and f"{module}.{node.name}" not in OTHERS
            ):
                yield getattr(importlib.import_module(module), node.name)


ENUMS = tuple(enums())


def test_each_enum_of_reasons_has_a_table() -> None:
    assert sorted(each.__name__ for each in ENUMS) == sorted(TABLES)


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: enum.__name__)
def test_no_reason_lacks_a_row(enum: type[StrEnum]) -> None:
    name = enum.__name__
    assert {each.value for each in enum} - set(TABLES[name]) == FINE.get(name, set())


@pytest.mark.parametrize("table", {id(each): each for each in TABLES.values()}.values(), ids=min)
def test_no_row_is_of_a_reason_that_is_none(table: Mapping[Any, object]) -> None:
    reasons = {each.value for enum in ENUMS if TABLES[enum.__name__] is table for each in enum}
    assert set(table) <= reasons


def test_the_page_is_the_table() -> None:
    if os.environ.get(UPDATE):
        PAGE.write_text(no_node_comes())
    assert PAGE.read_text() == no_node_comes(), f"{UPDATE}=1 pytest tests/explaining writes it anew"
