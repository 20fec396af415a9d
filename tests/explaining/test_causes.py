"""Every reason has its row on the page "No node comes", which is made from the table."""

import os
from enum import StrEnum
from pathlib import Path

import pytest

from plimsoll.explaining import CLAIMS, DEMANDS, PODS, STEPS, WORKSPACES, StepReason, no_node_comes
from plimsoll.model import Reason
from plimsoll.model.api import ClaimStage, DemandPhase
from plimsoll.plan.classes import RefusalReason
from tests.golden import UPDATE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operate" / "no-node-comes.md"
FINE: tuple[StrEnum, ...] = (Reason.ACCEPTED, DemandPhase.COMPLETED, ClaimStage.READY)


@pytest.mark.parametrize(
    "reason", [*RefusalReason, *Reason, *DemandPhase, *ClaimStage, *StepReason], ids=lambda each: f"{each!r}"
)
def test_no_reason_lacks_a_row(reason: StrEnum) -> None:
    table = next(each for each in (PODS, WORKSPACES, DEMANDS, CLAIMS, STEPS) if type(reason) is type(next(iter(each))))
    assert (reason in table) == (reason not in FINE)


def test_the_page_is_the_table() -> None:
    if os.environ.get(UPDATE):
        PAGE.write_text(no_node_comes())
    assert PAGE.read_text() == no_node_comes(), f"{UPDATE}=1 pytest tests/explaining writes it anew"
