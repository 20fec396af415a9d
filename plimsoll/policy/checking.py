"""Checking: what manifests break of the rules, as settings and exemptions have it."""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.model.base import identify
from plimsoll.model.finding import Finding, Severity
from plimsoll.model.policies import Exemption, Policies
from plimsoll.policy.fields import Manifest, kind_of, name_of, namespace_of
from plimsoll.policy.rule_set import Set, settled
from plimsoll.policy.world import World

EXPIRED: Final = "exemption-expired"


@dataclass(frozen=True)
class Exempted:
    """A finding that an exemption takes away."""

    finding: Finding
    exemption: Exemption


@dataclass(frozen=True)
class Report:
    """What one check found, with the position of the object that each finding is about."""

    findings: tuple[tuple[int | None, Finding], ...] = ()
    """None: about the settings, such as an exemption past its date."""
    exempted: tuple[Exempted, ...] = field(default=())


class Checker:
    """The rules with their settings, for the objects of one world on one day.

    Raises InvalidPoliciesError where the settings do not fit the rules.
    """

    def __init__(self, world: World, policies: Policies, today: datetime.date) -> None:
        self._world = world
        self._policies = policies
        self._today = today
        self._rules = {name: each for name, each in settled(policies).items() if each.severity is not None}

    def check(self, manifests: Sequence[Manifest]) -> Report:
        """Everything that is wrong with the objects, each by itself and all together."""
        found: list[tuple[int | None, Finding]] = []
        exempted: list[Exempted] = []
        for number, manifest in enumerate(manifests):
            for finding in self.findings(manifest):
                exemption = self.exemption(finding)
                if exemption is None:
                    found.append((number, finding))
                else:
                    exempted.append(Exempted(finding, exemption))
        found += ((None, finding) for finding in self.expired())
        return Report(tuple(found), tuple(exempted))

    def findings(self, manifest: Manifest) -> Iterator[Finding]:
        """What is wrong with one object by itself, exemptions apart."""
        for each in self._rules.values():
            yield from self._by_rule(each, manifest)

    def _by_rule(self, each: Set, manifest: Manifest) -> Iterator[Finding]:
        if each.rule.check is None or each.severity is None:
            return
        for fault in each.rule.check(manifest, self._world, each.options):
            yield Finding(
                kind=kind_of(manifest),
                namespace=namespace_of(manifest),
                name=name_of(manifest),
                field=fault.field,
                rule=each.rule.id,
                severity=each.severity,
                message=f"{identify(manifest)}: {fault.message}",
            )

    def exemption(self, finding: Finding) -> Exemption | None:
        """The exemption in force that takes the finding away."""
        for each in self._policies.exemptions:
            covers = each.covers(finding.rule, finding.kind, finding.namespace, finding.name)
            if covers and each.until >= self._today:
                return each
        return None

    def expired(self) -> Iterator[Finding]:
        """One finding for each exemption that is past its date."""
        for number, each in enumerate(self._policies.exemptions):
            if each.until < self._today:
                yield Finding(
                    kind="Exemption",
                    namespace=each.namespace or "",
                    name=each.name or each.kind or "",
                    field=f"exemptions[{number}].until",
                    rule=EXPIRED,
                    severity=Severity.WARNING,
                    message=f"the exemption from {each.rule} ended on {each.until} ({each.reason}): mend what it "
                    "covered and remove it, or agree on another date",
                )


def mandatory(findings: Iterable[Finding]) -> list[Finding]:
    """Those that refuse an object."""
    return [each for each in findings if each.severity is Severity.ERROR]
