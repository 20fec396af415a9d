"""The rule on exemptions themselves: each ends, and says so when it has."""

import datetime
from collections.abc import Iterator
from typing import Final

from plimsoll.model.api import Policies
from plimsoll.model.meta import Finding, Severity
from plimsoll.policy.rule import Family, Rule

EXPIRED: Final = "exemption-expired"

RULES: Final = (
    Rule(
        EXPIRED,
        Family.EXEMPTIONS,
        "No exemption is past its date.",
        "Mend what it covered and remove it, or agree on another date.",
        ("the exemptions of the settings",),
        severity=Severity.WARNING,
        loop=False,
    ),
)


def expired(policies: Policies, today: datetime.date, severity: Severity) -> Iterator[Finding]:
    """One finding for each exemption that is past its date."""
    for number, each in enumerate(policies.exemptions):
        if each.until < today:
            yield Finding(
                kind="Exemption",
                namespace=each.namespace or "",
                name=each.name or each.kind or "",
                field=f"exemptions[{number}].until",
                rule=EXPIRED,
                severity=severity,
                message=f"the exemption from {each.rule} ended on {each.until} ({each.reason}): mend what it covered "
                "and remove it, or agree on another date",
            )
