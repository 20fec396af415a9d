"""Checks manifests against the rules, with their settings and exemptions."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from plimsoll.model.api import Exemption, Policies
from plimsoll.model.meta import Finding, identify
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, kind_of, name_of, namespace_of
from plimsoll.policy.rule_set import SetRule, settled
from plimsoll.policy.rules import EXPIRED, UNKNOWN_RULE, KnownQueues, expired, queue_findings


@dataclass(frozen=True)
class Exempted:
    """A finding that an exemption suppresses."""

    finding: Finding
    exemption: Exemption


@dataclass(frozen=True)
class Report:
    """What one check found."""

    findings: tuple[tuple[int | None, Finding], ...] = ()
    """Each with the position of its object; None: the finding is about the settings."""
    exempted: tuple[Exempted, ...] = ()


class Checker:
    """The rules with their settings, for the objects of one environment on one day.

    Raises InvalidPoliciesError if the settings do not match the rules.
    """

    def __init__(self, context: PolicyContext, policies: Policies, today: datetime.date) -> None:
        self._context = context
        self._policies = policies
        self._today = today
        self._rules = {name: each for name, each in settled(policies).items() if each.severity is not None}

    def check(self, manifests: Sequence[Manifest]) -> Report:
        """Every finding about the objects, each alone and all together.

        Raises InvalidObjectError if one is not a Kubernetes object.
        """
        found: list[tuple[int | None, Finding]] = []
        exempted: list[Exempted] = []
        for number, finding in (*self._of_each(manifests), *self.of_all(manifests)):
            exemption = self._exemption(finding)
            if exemption is None:
                found.append((number, finding))
            else:
                exempted.append(Exempted(finding, exemption))
        found += ((None, finding) for finding in self.expired())
        return Report(tuple(found), tuple(exempted))

    def broken_by(self, manifest: Manifest) -> Iterator[Finding]:
        """The findings about one object alone, without those that it is exempted from."""
        for each in self._rules.values():
            for finding in self._by_rule(each, manifest):
                if self._exemption(finding) is None:
                    yield finding

    def of_all(self, manifests: Sequence[Manifest]) -> Iterator[tuple[int | None, Finding]]:
        """The findings about the objects together; exemptions are not applied."""
        unknown = self._rules.get(UNKNOWN_RULE)
        known = unknown.options if unknown is not None else KnownQueues()
        assert isinstance(known, KnownQueues)
        found = [*queue_findings(manifests, self._context, known)]
        for each in self._rules.values():
            if each.rule.check_all is not None:
                found += each.rule.check_all(manifests, self._context, each.options)
        kinds = {finding.kind for finding in found}
        places = {
            (kind_of(each), namespace_of(each), name_of(each)): number
            for number, each in enumerate(manifests)
            if kind_of(each) in kinds
        }
        for finding in found:
            rule = self._rules.get(finding.rule)
            if rule is not None:
                place = places.get((finding.kind, finding.namespace, finding.name))
                yield place, replace(finding, severity=rule.severity or finding.severity)

    def expired(self) -> Iterator[Finding]:
        """One finding for each expired exemption."""
        each = self._rules.get(EXPIRED)
        if each is not None and each.severity is not None:
            yield from expired(self._policies, self._today, each.severity)

    def _of_each(self, manifests: Sequence[Manifest]) -> Iterator[tuple[int, Finding]]:
        for number, manifest in enumerate(manifests):
            for each in self._rules.values():
                for finding in self._by_rule(each, manifest):
                    yield number, finding

    def _by_rule(self, each: SetRule, manifest: Manifest) -> Iterator[Finding]:
        if each.rule.check is None or each.severity is None:
            return
        for fault in each.rule.check(manifest, self._context, each.options):
            yield Finding(
                kind=kind_of(manifest),
                namespace=namespace_of(manifest),
                name=name_of(manifest),
                field=fault.field,
                rule=each.rule.id,
                severity=each.severity,
                message=f"{identify(manifest)}: {fault.message}",
            )

    def _exemption(self, finding: Finding) -> Exemption | None:
        """The exemption in force that covers the finding."""
        for each in self._policies.exemptions:
            covers = each.covers(finding.rule, finding.kind, finding.namespace, finding.name)
            if covers and each.until >= self._today:
                return each
        return None
