"""A fault of Plimsoll while one Workspace is validated is told as such, and stops no other."""

from typing import Any

import pytest

from plimsoll.model import Reason
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import ProvisionedNodes
from tests.builders import a_claim, a_node_pool, a_snapshot, a_workspace, an_environment
from tests.demand.test_tenancy import L4, NOW


def test_a_fault_is_no_fault_of_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, sound = (a_workspace(name, instance_type=L4, selector={}) for name in ("broken", "sound"))
    claim = a_claim("claim", broken, instance_type=L4)
    snapshot = a_snapshot(broken, sound, claim, a_node_pool("pool", (L4,)), environment=an_environment(nap=True))
    evaluate = ProvisionedNodes.evaluate

    def fails(self: Any, workspace: Any, *more: Any) -> Any:
        if workspace.name == "broken":
            raise TypeError("unsupported operand")
        return evaluate(self, workspace, *more)

    monkeypatch.setattr(ProvisionedNodes, "evaluate", fails)
    refused, accepted = validate(snapshot)
    assert accepted.accepted
    assert refused.reason is Reason.INTERNAL_ERROR
    assert "TypeError: unsupported operand" in refused.message
    made = plan(snapshot, (refused, accepted), NOW)
    assert not made.deletions, "what it has stays"
    assert {each.owner.name for each in made.creations} == {"sound"}
    assert any("default/broken" in warning and "by a fault of Plimsoll" in warning for warning in made.warnings)
