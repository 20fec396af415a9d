"""Withholds planned objects that break a rule; the rest of the Plan is applied."""

from datetime import UTC, datetime
from typing import Final

from plimsoll.model import Change, ObjectKey, Plan, Snapshot, Withheld
from plimsoll.model.meta import Finding, Severity
from plimsoll.policy.checking import Checker
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.rule_set import RULES, usable

_NODES: Final = ("NodeClaim", "NodePool")


def withhold(plan: Plan, snapshot: Snapshot, now: datetime) -> Plan:
    """The Plan without the creations and updates that break a rule of severity error, and without the nodes that it
    requests for a workload that will.

    Uses the settings of the Environment, on the day of `now`. Findings of severity warning, expired exemptions and
    invalid settings are added to the Plan's warnings. Invalid settings have no effect, the others do.
    """
    spec = snapshot.environment.spec
    context, day = PolicyContext.of(spec.manifest()), now.astimezone(UTC).date()
    withheld: dict[ObjectKey, Withheld] = {}
    policies, problems = usable(spec.policies)
    warnings = [f"Environment {snapshot.environment.name}: {problem}" for problem in problems]
    checker = Checker(context, policies, day)
    warnings += (finding.message for finding in checker.expired())

    def allowed(changes: tuple[Change, ...]) -> tuple[Change, ...]:
        # A partial update has only the fields that change, so the rules cannot be checked on it.
        return tuple(change for change in changes if change.partial or not _refused(change))

    def _refused(change: Change) -> bool:
        found = [each for each in checker.broken_by(change.manifest) if RULES[each.rule].loop]
        errors = tuple(each for each in found if each.severity is Severity.ERROR)
        warnings.extend(_warning(each) for each in found if each.severity is Severity.WARNING)
        if errors:
            withheld[change.key] = Withheld(key=change.key, owner=change.owner, findings=errors)
        return bool(errors)

    creations, updates = allowed(plan.creations), allowed(plan.updates)
    changed = {each.key for each in (*plan.creations, *plan.updates)}
    useless = {
        each.owner for each in plan.dry_runs if each.key in withheld or (each.key not in changed and _refused(each))
    }

    def wanted(changes: tuple[Change, ...]) -> tuple[Change, ...]:
        return tuple(each for each in changes if each.owner not in useless or each.key.kind not in _NODES)

    if not withheld and not warnings:
        return plan
    return plan.model_copy(
        update={
            "creations": wanted(creations),
            "updates": wanted(updates),
            # Signals of pods whose creation is withheld are left out.
            "signals": tuple(each for each in plan.signals if each.key not in withheld),
            "withheld": tuple(withheld[key] for key in sorted(withheld, key=str)),
            "warnings": (*plan.warnings, *warnings),
        }
    )


def _warning(finding: Finding) -> str:
    return f"{finding.message} ({finding.rule})"
