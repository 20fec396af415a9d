"""Withholding: a planned object that breaks a rule is not applied, and the rest of the plan is."""

from datetime import UTC, datetime

from plimsoll.model import Change, ObjectKey, Plan, Snapshot, Withheld
from plimsoll.model.api import Policies
from plimsoll.model.meta import Finding, Severity
from plimsoll.policy.checking import Checker
from plimsoll.policy.rule_set import RULES, InvalidPoliciesError
from plimsoll.policy.world import World


def withhold(plan: Plan, snapshot: Snapshot, now: datetime) -> Plan:
    """The plan without the creations and updates that break a rule of severity error.

    By the settings of the Environment, on the day of `now`. Warnings, and exemptions that have ended, are among the
    plan's warnings. Settings that fit no rule are, too, and then every rule holds as it is.
    """
    spec = snapshot.environment.spec
    world, day = World.of(spec.manifest()), now.astimezone(UTC).date()
    withheld: dict[ObjectKey, Withheld] = {}
    warnings: list[str] = []
    try:
        checker = Checker(world, spec.policies, day)
    except InvalidPoliciesError as error:
        warnings.append(f"Environment {snapshot.environment.name}: {error.message}: the rules hold as they are")
        checker = Checker(world, Policies(), day)
    warnings += (finding.message for finding in checker.expired())

    def kept(changes: tuple[Change, ...]) -> tuple[Change, ...]:
        return tuple(change for change in changes if not _refused(change))

    def _refused(change: Change) -> bool:
        found = [each for each in checker.broken_by(change.manifest) if RULES[each.rule].loop]
        errors = tuple(each for each in found if each.severity is Severity.ERROR)
        warnings.extend(_told(each) for each in found if each.severity is Severity.WARNING)
        if errors:
            withheld[change.key] = Withheld(key=change.key, owner=change.owner, findings=errors)
        return bool(errors)

    creations, updates = kept(plan.creations), kept(plan.updates)
    if not withheld and not warnings:
        return plan
    return plan.model_copy(
        update={
            "creations": creations,
            "updates": updates,
            # A signal is for a pod that is made.
            "signals": tuple(each for each in plan.signals if each.key not in withheld),
            "withheld": tuple(withheld[key] for key in sorted(withheld, key=str)),
            "warnings": (*plan.warnings, *warnings),
        }
    )


def _told(finding: Finding) -> str:
    return f"{finding.message} ({finding.rule})"
