"""Finding: what a check of manifests finds wrong, in the one format that all checks print."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is. Every one of them, whatever its severity, makes a check end with exit code 2."""

    ERROR = "error"
    """The object is refused, or does not do what it says."""
    WARNING = "warning"
    """The object works, and some of what it says has no effect or is a trap."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One rule that one field of one object breaks."""

    kind: str
    namespace: str
    """Empty where the kind has none."""
    name: str
    field: str
    """Path of the field as the manifest writes it, `spec.resources.gpu.limit`; empty where it is the whole object."""
    rule: str
    """Stable name of the rule, in kebab-case: `queue-cycle`."""
    severity: Severity
    message: str
    """What is wrong and what to change, for people."""

    @property
    def subject(self) -> str:
        """`Kind namespace/name`"""
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"

    def as_json(self) -> dict[str, str]:
        """The seven fields, as `--output json` prints them."""
        fields = asdict(self)
        order = ("rule", "severity", "kind", "namespace", "name", "field", "message")
        return {name: str(fields[name]) for name in order}


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, by object, field and rule: whatever order the manifests came in."""
    return tuple(sorted(set(findings)))
