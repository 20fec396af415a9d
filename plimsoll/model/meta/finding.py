"""Finding: a problem that a check of manifests finds, in the one format that all checks print."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding. Findings of each severity make a check end with exit code 2."""

    ERROR = "error"
    """The object is rejected, or does not do what it declares."""
    WARNING = "warning"
    """The object works, but some of its fields have no effect or an unexpected one."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A rule that one field of one object breaks."""

    kind: str
    namespace: str
    """Empty for cluster-scoped kinds."""
    name: str
    field: str
    """Path of the field in the manifest, `spec.resources.gpu.limit`; empty for the whole object."""
    rule: str
    """Stable name of the rule, in kebab-case: `queue-cycle`."""
    severity: Severity
    message: str
    """What is wrong, and what to change."""

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
    """The findings without duplicates, by object, field and rule; independent of the order of the manifests."""
    return tuple(sorted(set(findings)))
