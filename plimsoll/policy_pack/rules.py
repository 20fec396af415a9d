"""The rules as Pulumi policies, on each resource or on the whole stack."""

import datetime
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError

from plimsoll.labels import GROUP
from plimsoll.model.api import Policies
from plimsoll.model.meta import Finding, Severity
from plimsoll.policy import (
    EXPIRED,
    KAI_GROUP,
    RULES,
    Checker,
    Manifest,
    Needs,
    PolicyContext,
    Queues,
    Rule,
    declared_policies,
    environment_of,
    is_kind,
    is_read,
    merged,
    namespace_of,
    whole,
)
from plimsoll.policy_pack.resources import manifest_of
from plimsoll.policy_pack.settings import config_schema, policies_of

IN_STACK: Final = "-in-stack"
"""Suffix of the stack policy that uses the stack's Environment, if the resource policy of the same rule uses its
configuration alone. Each has its own configuration."""

_LEVELS: Final[Mapping[Severity | None, EnforcementLevel]] = {
    Severity.ERROR: EnforcementLevel.MANDATORY,
    Severity.WARNING: EnforcementLevel.ADVISORY,
    None: EnforcementLevel.DISABLED,
}

Clock = Callable[[], datetime.date]


def today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def policies(clock: Clock = today) -> list[Policy]:
    """Every rule, as the policies that enforce it."""
    made: list[Policy] = []
    for rule in RULES.values():
        if rule.check is not None and rule.needs is not Needs.ENVIRONMENT:
            made.append(_of_resources(rule, clock))
        if rule.check is None or rule.needs is not Needs.NOTHING:
            made.append(_of_stack(rule, clock))
    return made


def check_resource(rule: Rule, clock: Clock) -> Callable[[ResourceValidationArgs, ReportViolation], None]:
    """Checks one resource; a rule that requires a mode reports nothing if the configuration does not set it."""

    def validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
        manifest = manifest_of(args.resource_type, args.props, args.name)
        if manifest is not None:
            checker = _checker(rule.id, json.dumps(args.get_config()), clock())
            for finding in checker.broken_by(manifest):
                report_violation(finding.message, args.urn)

    return validate


# The engine calls each policy for each resource, with one configuration.
@functools.lru_cache(maxsize=len(RULES))
def _checker(rule_id: str, config: str, day: datetime.date) -> Checker:
    """Checks resources by one rule; `config` is its configuration in JSON. Raises ValidationError."""
    rule = RULES[rule_id]
    # A stack has queues, so a workload with GPUs must have one.
    return Checker(PolicyContext(queues=Queues()), _only(rule, policies_of(rule, json.loads(config))), day)


def check_stack(rule: Rule, clock: Clock) -> Callable[[StackValidationArgs, ReportViolation], None]:
    """Checks all resources together, with the settings of the stack's Environment and of the configuration."""

    def validate(args: StackValidationArgs, report_violation: ReportViolation) -> None:
        manifests = {
            resource.urn: manifest
            for resource in args.resources
            if (manifest := manifest_of(resource.resource_type, resource.props, resource.name)) is not None
        }
        for urn, finding in _stack_findings(rule, manifests, args.get_config(), clock()):
            if finding.severity is Severity.WARNING and rule.severity is Severity.ERROR:
                # A policy has one level, and the Environment may have a lower one for this rule.
                print(f"warning: {rule.id}: {finding.message}")  # noqa: T201 - the engine shows it
            else:
                report_violation(finding.message, urn)

    return validate


def _stack_findings(
    rule: Rule, manifests: Mapping[str, Manifest], config: Mapping[str, Any], day: datetime.date
) -> Iterator[tuple[str | None, Finding]]:
    """By URN. Leaves out the objects with a field that the rule reads and a preview does not know, and raises
    UnknownValueError for the first of them in the end."""
    settled = [whole(each) for each in manifests.values() if _is_setting(each)]
    environment = environment_of(settled)
    settings = merged(declared_policies(environment), policies_of(rule, config))
    context = PolicyContext.of(environment, Queues.of(settled))
    checker = Checker(context, _only(rule, settings), day)

    known: dict[str, Manifest] = {}
    unknown: UnknownValueError | None = None
    for urn, manifest in manifests.items():
        try:
            if is_read(manifest):
                namespace_of(manifest)
                checker.check([manifest])
                known[urn] = manifest
        except UnknownValueError as error:
            unknown = unknown or error
    urns = list(known)
    for position, finding in checker.check(list(known.values())).findings:
        yield urns[position] if position is not None else None, finding
    if unknown is not None:
        raise unknown


def _is_setting(manifest: Manifest) -> bool:
    """Whether the other objects are checked against it."""
    return is_kind(manifest, GROUP, "Environment") or is_kind(manifest, KAI_GROUP, "Queue")


def _only(rule: Rule, settings: Policies) -> Policies:
    """With every other rule off."""
    others = {name: {"severity": "off"} for name in RULES if name != rule.id}
    exemptions = [each.manifest() for each in settings.exemptions if rule.id in (each.rule, EXPIRED)]
    # The pack runs a rule that is off by itself only where its configuration asks for it.
    rules = {**others, rule.id: settings.rules[rule.id].manifest()}
    return Policies.model_validate({"rules": rules, "exemptions": exemptions})


def _of_resources(rule: Rule, clock: Clock) -> Policy:
    return ResourceValidationPolicy(
        name=rule.id,
        description=rule.summary,
        validate=check_resource(rule, clock),
        enforcement_level=_LEVELS[rule.severity],
        config_schema=config_schema(rule),
    )


def _of_stack(rule: Rule, clock: Clock) -> Policy:
    return StackValidationPolicy(
        name=rule.id + (IN_STACK if rule.needs is Needs.MODE else ""),
        description=rule.summary,
        validate=check_stack(rule, clock),
        enforcement_level=_LEVELS[rule.severity],
        config_schema=config_schema(rule),
    )
