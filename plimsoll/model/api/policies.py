"""Policies: settings of the policy rules, in an Environment or a configuration file."""

import datetime
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from plimsoll.model.meta import Described, FreeForm

NAMES_NO_OBJECTS: Final = "names no objects: set kind, namespace or name, or set the rule's severity to 'off'"
Pattern = Annotated[str, Field(min_length=1, max_length=253)]
"""A name, or a prefix followed by `*`."""


class RuleSetting(Described):
    """Severity and options of one policy rule."""

    severity: Literal["error", "warning", "off"] | None = None
    """Absent: that of the rule. `warning` is reported and refuses nothing; `off` disables the rule."""
    options: FreeForm = Field(default_factory=dict)
    """Options of the rule, as shown by `plimsoll policy list`."""


class Exemption(Described):
    """Objects that are exempt from a rule, for a reason and until a date. At least one of kind, namespace and name is
    required."""

    rule: str = Field(min_length=1, max_length=63)
    kind: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    namespace: Pattern | None = None
    name: Pattern | None = None
    reason: str = Field(min_length=1, max_length=500)
    until: datetime.date
    """The last day, in UTC."""

    @model_validator(mode="after")
    def _names_objects(self) -> "Exemption":
        if self.kind is None and self.namespace is None and self.name is None:
            raise ValueError(NAMES_NO_OBJECTS)
        return self

    def covers(self, rule: str, kind: str, namespace: str, name: str) -> bool:
        """Whether it covers that rule and object, whatever the date."""
        return (
            rule == self.rule
            and self.kind in (None, kind)
            and _matches(self.namespace, namespace)
            and _matches(self.name, name)
        )


class Policies(Described):
    """The policy rules of the cluster."""

    admission: Literal["deny", "audit", "off"] = "audit"
    """What the cluster does with an object that breaks a rule of severity error: reject it, warn and write an audit
    annotation, or admit it. Rules of severity warning only warn."""
    rules: dict[str, RuleSetting] = Field(default_factory=dict)
    """By the rule's name."""
    exemptions: tuple[Exemption, ...] = Field(default=(), max_length=200)


def _matches(pattern: str | None, text: str) -> bool:
    if pattern is None:
        return True
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern
