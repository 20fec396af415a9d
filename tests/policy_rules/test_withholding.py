"""The controller does not apply a planned object that violates a rule, reports it, and applies the rest."""

from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.model import Change, Plan, Signal, SignalReason
from plimsoll.model.api import WorkspaceRef
from plimsoll.policy import withhold
from tests.builders import a_snapshot, an_environment
from tests.policy_rules.manifests import ASKED, Manifest, a_deployment, a_node_pool, a_pod, a_trigger, with_path

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
OWNER = WorkspaceRef(namespace="research", name="ws", uid="1")
OTHER = WorkspaceRef(namespace="research", name="other", uid="2")


def creation(manifest: Manifest) -> Change:
    return Change(manifest=manifest, owner=OWNER, reason="a")


def withheld(plan: Plan, now: datetime = NOW, **policies: Any) -> Plan:
    policies["rules"] = {**ASKED, **policies.get("rules", {})}
    return withhold(plan, a_snapshot(environment=an_environment(policies=policies)), now)


GOOD = creation(a_deployment(a_pod()))
BAD = creation(with_path(a_deployment(a_pod(image="own:latest")), metadata__name="bad"))


def test_a_plan_without_violations_is_not_changed() -> None:
    plan = Plan(creations=(GOOD, creation(a_node_pool()), creation(a_trigger())))
    assert withheld(plan) is plan


def test_an_object_that_violates_a_rule_is_withheld_and_the_rest_is_applied() -> None:
    changed = Change(manifest=a_node_pool(spec__disruption__consolidateAfter="0s"), owner=OWNER, reason="a")
    plan = withheld(Plan(creations=(BAD, GOOD), updates=(changed,)))
    assert (plan.creations, plan.updates) == ((GOOD,), ())
    assert [(str(each.key), [one.rule for one in each.findings]) for each in plan.withheld] == [
        ("Deployment research/bad", ["image-tag-pinned"]),
        ("NodePool gpu", ["node-pool-consolidation"]),
    ]
    assert "(image-tag-pinned)" in str(plan.withheld[0])


def test_no_node_is_requested_for_a_workload_that_would_violate_a_rule() -> None:
    """The workload is created when its nodes are Ready."""
    pool = a_node_pool()
    others = creation(with_path(pool, metadata__name="others")).model_copy(update={"owner": OTHER})
    plan = withheld(Plan(creations=(creation(pool), others), dry_runs=(BAD,)))
    assert plan.creations == (others,)
    assert [str(each.key) for each in plan.withheld] == ["Deployment research/bad"]
    plan = withheld(Plan(creations=(creation(pool),), dry_runs=(GOOD,)))
    assert (len(plan.creations), plan.withheld) == (1, ())
    plan = withheld(Plan(creations=(creation(pool),), updates=(BAD,), dry_runs=(BAD,)))
    assert (plan.creations, plan.updates, len(plan.withheld)) == ((), (), 1)


def test_a_warning_and_a_rule_that_is_off_withhold_nothing() -> None:
    plan = withheld(Plan(creations=(BAD,)), rules={"image-tag-pinned": {"severity": "warning"}})
    assert (plan.creations, plan.withheld) == ((BAD,), ())
    assert [warning.endswith("(image-tag-pinned)") for warning in plan.warnings] == [True]
    plan = withheld(Plan(creations=(BAD,)), rules={"image-tag-pinned": {"severity": "off"}})
    assert (plan.creations, plan.warnings) == ((BAD,), ())


def test_an_exemption_holds_until_the_end_of_its_last_day() -> None:
    exemption = {"rule": "image-tag-pinned", "name": "bad", "reason": "moves", "until": NOW.date().isoformat()}
    assert withheld(Plan(creations=(BAD,)), exemptions=[exemption]).creations == (BAD,)
    after = withheld(Plan(creations=(BAD,)), NOW + timedelta(days=1), exemptions=[exemption])
    assert after.creations == ()
    [warning] = after.warnings
    assert warning.startswith("the exemption from image-tag-pinned ")


def test_there_is_no_signal_for_a_withheld_pod() -> None:
    trigger = creation(a_trigger(spec__activeDeadlineSeconds=None))
    signal = Signal(key=trigger.key, uid="", reason=SignalReason.UNSCHEDULABLE, message="a")
    assert withheld(Plan(creations=(trigger,), signals=(signal,))).signals == ()


def test_settings_of_an_unknown_rule_are_reported_and_stop_nothing() -> None:
    wrong = creation(a_node_pool(spec__disruption__consolidateAfter="0s"))
    plan = withheld(Plan(creations=(wrong, GOOD)), rules={"no-such-rule": {}})
    assert plan.creations == (GOOD,)
    assert ["there is no rule 'no-such-rule'" in warning for warning in plan.warnings] == [True]


def test_an_invalid_option_leaves_the_other_settings_in_force() -> None:
    pod = creation(a_trigger(spec__containers__0__image="a"))
    rules = {"image-tag-pinned": {"severity": "error"}, "image-digest": {"options": {"required": "yes"}}}
    plan = withheld(Plan(creations=(pod, GOOD)), rules=rules)
    assert [finding.rule for each in plan.withheld for finding in each.findings] == ["image-tag-pinned"]
    assert ["image-digest" in warning and "required" in warning for warning in plan.warnings] == [True]
