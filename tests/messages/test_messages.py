"""Plimsoll's messages in one golden file, so that a changed sentence is a line of its diff.

`PLIMSOLL_UPDATE_GOLDEN=1 pytest tests/messages` rewrites the file. Other tests assert reasons and names.
"""

from pathlib import Path
from typing import Any, Final

import pytest

from plimsoll.cli.shared import FAILED
from plimsoll.model import Reason
from plimsoll.policy import RULES
from plimsoll.report import ConditionReason, EventReason
from tests.golden import assert_golden
from tests.messages import commands, components, conditions, estimates, events, queues, rules, verdicts

NO_GPU: Final = 3
"""Exit code of a probe that finds none."""
GOLDEN: Final = Path(__file__).parent / "messages.yaml"

pytestmark = pytest.mark.xdist_group("messages")
"""In one process, they are made once."""


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return {
        "verdicts": verdicts.messages(),
        "conditions": conditions.messages(),
        "events": events.messages(),
        "queues": queues.messages(),
        "estimates": estimates.messages(),
        "policies": rules.messages(),
        "components": components.messages(),
        "commands": commands.messages(tmp_path_factory.mktemp("commands")),
    }


def test_messages_are_those_of_the_golden_file(messages: dict[str, dict[str, Any]]) -> None:
    assert_golden(GOLDEN, [{part: found} for part, found in messages.items()])


def test_every_reason_of_a_verdict_has_a_message(messages: dict[str, dict[str, Any]]) -> None:
    # A fault of Plimsoll has no case of its own: tests/validating/test_internal_errors.py makes one.
    assert messages["verdicts"].keys() == {each.value for each in Reason} - {Reason.INTERNAL_ERROR.value}


def test_every_reason_of_a_condition_has_a_message() -> None:
    assert conditions.reasons() >= {each.value for each in ConditionReason}


def test_every_reason_of_an_event_has_a_message(messages: dict[str, dict[str, Any]]) -> None:
    assert {each["reason"] for each in messages["events"].values()} == {each.value for each in EventReason}


def test_every_rule_has_a_finding(messages: dict[str, dict[str, Any]]) -> None:
    assert [name for name in RULES if not messages["policies"][name]["findings"]] == []


def test_every_wrong_command_ends_with_an_error_and_no_traceback(messages: dict[str, dict[str, Any]]) -> None:
    for command, done in messages["commands"].items():
        no_gpu = command.startswith("probe --print --root")
        assert done["exit code"] == (NO_GPU if no_gpu else FAILED), command
        assert done["error"][0].startswith("error: "), command
        assert not any("Traceback" in line or "internal error" in line for line in done["error"]), command
