"""A rule: what it requires, the remedy, and the check itself, in Python and where possible in CEL."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, NamedTuple

from plimsoll.labels import GROUP
from plimsoll.model.meta import Declared, Finding, Severity
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest


class Family(StrEnum):
    MODE = "mode"
    QUEUES = "queues"
    SHARES = "gpu-shares"
    CLAIMS = "claims"
    PODS = "trigger-and-reservation-pods"
    BUDGETS = "budgets"
    NODE_POOLS = "node-pools"
    SUPPLY_CHAIN = "supply-chain"
    EXEMPTIONS = "exemptions"


class Fault(NamedTuple):
    """A field that breaks a rule."""

    field: str
    message: str
    """Names the field, its value and what to change; the object's name is prepended."""


class NoOptions(Declared):
    """Options of a rule without options."""


class Needs(Enum):
    """What a rule must know in addition to the object."""

    NOTHING = "nothing"
    MODE = "mode"
    """The provisioning mode, which options of the rule may set."""
    ENVIRONMENT = "environment"


Check = Callable[[Manifest, PolicyContext, Any], Iterator[Fault]]
"""The faults of one object; the last argument is the rule's options."""
CheckAll = Callable[[Sequence[Manifest], PolicyContext, Any], Iterator[Finding]]
"""The findings about all objects together."""


class Resources(NamedTuple):
    """Resources of an API group, in the plural, and subresources, as in admission rules."""

    group: str
    plurals: tuple[str, ...]
    operations: tuple[str, ...] = ("CREATE", "UPDATE")


class Subject(Enum):
    """The objects that one ValidatingAdmissionPolicy checks."""

    WORKSPACES = (Resources(GROUP, ("workspaces",)),)
    KAITO = (Resources("kaito.sh", ("workspaces", "inferencesets")),)
    PODS = (
        Resources("", ("pods", "pods/ephemeralcontainers", "replicationcontrollers")),
        Resources("apps", ("deployments", "statefulsets", "daemonsets", "replicasets")),
        Resources("batch", ("jobs", "cronjobs")),
    )
    CLAIMS = (Resources("resource.k8s.io", ("resourceclaims", "resourceclaimtemplates")),)
    NODE_POOLS = (Resources("karpenter.sh", ("nodepools",)),)
    NODE_CLAIMS = (Resources("karpenter.sh", ("nodeclaims",)),)
    QUEUE_DELETIONS = (Resources("scheduling.run.ai", ("queues",), ("DELETE",)),)

    @property
    def variable(self) -> str:
        """The CEL variable that contains the object: `oldObject` for a deletion."""
        return "oldObject" if all(each.operations == ("DELETE",) for each in self.value) else "object"


@dataclass(frozen=True)
class Cel:
    """The rule in a ValidatingAdmissionPolicy, on `object` (`oldObject` for a deletion); `params` is the Environment.

    `variables` may use those before them. `holds` is true for an object that complies with the rule. Rules on the same
    subject may share a variable's name only if its expression is the same.
    """

    subjects: tuple[Subject, ...]
    holds: str
    variables: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None
    """A CEL expression; absent: the rule's summary and remedy."""


@dataclass(frozen=True)
class Rule:
    id: str
    family: Family
    summary: str
    """What the rule requires, as one sentence."""
    remedy: str
    """What to change if an object breaks the rule."""
    reads: tuple[str, ...]
    """Kinds that it reads, for documentation and output; a rule on pods that reads `Pod` alone reads no template."""
    check: Check | None = None
    """None if the rule is about all objects together."""
    check_all: CheckAll | None = None
    """Absent, as is `check`, for rules on queues, which `plimsoll.policy.rules.queue_tree` checks together."""
    severity: Severity | None = Severity.ERROR
    """None: off if no setting names the rule; `error` if one does without a severity."""
    options: type[Declared] = NoOptions
    cel: Cel | None = None
    needs: Needs = Needs.NOTHING
    loop: bool = True
    """Whether the controller withholds a planned object that breaks the rule."""
