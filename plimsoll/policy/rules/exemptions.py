"""The rule on exemptions: each has an end date, and an expired exemption is reported."""

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
        "No exemption is expired.",
        "Fix the objects that it covers and remove it, or set a later date.",
        ("the exemptions of the settings",),
        severity=Severity.WARNING,
        loop=False,
    ),
)


def expired(policies: Policies, today: datetime.date, severity: Severity) -> Iterator[Finding]:
    """One finding for each expired exemption."""
    for number, each in enumerate(policies.exemptions):
        if each.until < today:
            yield Finding(
                kind="Exemption",
                namespace=each.namespace or "",
                name=each.name or each.kind or "",
                field=f"exemptions[{number}].until",
                rule=EXPIRED,
                severity=severity,
                message=f"the exemption from {each.rule} expired on {each.until} ({each.reason}): fix the "
                "objects that it covers and remove it, or set a later date",
            )
