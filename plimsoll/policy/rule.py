"""A rule: what it asks, what to do where it is broken, and the check itself, in Python and where possible in CEL."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, NamedTuple

from plimsoll.labels import GROUP
from plimsoll.model.meta import Declared, Finding, Severity
from plimsoll.policy.fields import Manifest
from plimsoll.policy.world import World


class Family(StrEnum):
    MODE = "mode"
    QUEUES = "queues"
    SHARES = "gpu-shares"
    PODS = "trigger-and-reservation-pods"
    BUDGETS = "budgets"
    NODE_POOLS = "node-pools"
    SUPPLY_CHAIN = "supply-chain"
    EXEMPTIONS = "exemptions"


class Fault(NamedTuple):
    """A field that breaks a rule."""

    field: str
    message: str
    """Names the field, its value and what to change; the object's name is put before it."""


class NoOptions(Declared):
    """Of a rule that takes none."""


class Needs(Enum):
    """What a rule must know beside the object to be judged."""

    NOTHING = "nothing"
    MODE = "mode"
    """Which options of the rule may name."""
    ENVIRONMENT = "environment"


Check = Callable[[Manifest, World, Any], Iterator[Fault]]
"""The faults of one object; the last argument is the rule's options."""
CheckAll = Callable[[Sequence[Manifest], World, Any], Iterator[Finding]]
"""The findings of objects as a whole."""


class Resources(NamedTuple):
    """Resources of an API group, in the plural, as admission rules name them."""

    group: str
    plurals: tuple[str, ...]
    operations: tuple[str, ...] = ("CREATE", "UPDATE")


class Subject(Enum):
    """What one ValidatingAdmissionPolicy is about."""

    WORKSPACES = (Resources(GROUP, ("workspaces",)),)
    KAITO = (Resources("kaito.sh", ("workspaces", "inferencesets")),)
    PODS = (
        Resources("", ("pods",)),
        Resources("apps", ("deployments", "statefulsets", "daemonsets")),
        Resources("batch", ("jobs",)),
    )
    NODE_POOLS = (Resources("karpenter.sh", ("nodepools",)),)
    NODE_CLAIMS = (Resources("karpenter.sh", ("nodeclaims",)),)
    QUEUE_DELETIONS = (Resources("scheduling.run.ai", ("queues",), ("DELETE",)),)

    @property
    def judged(self) -> str:
        """The variable in CEL that holds the object: one that is deleted has only been."""
        return "oldObject" if all(each.operations == ("DELETE",) for each in self.value) else "object"


@dataclass(frozen=True)
class Cel:
    """The rule as a ValidatingAdmissionPolicy says it, about `object` (`oldObject` where it is deleted), with `params`
    the Environment.

    `variables` may name those before them. `holds` is true of an object that keeps the rule. Variables of rules on the
    same subject may have the same name where they are the same.
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
    """What must be so, as one sentence."""
    remedy: str
    """What to change where it is not."""
    reads: tuple[str, ...]
    """Kinds that it looks at, for people."""
    check: Check | None = None
    """None where the rule is about all objects together."""
    check_all: CheckAll | None = None
    """Absent beside `check` also of rules on queues, which are checked at once: `plimsoll.policy.queue_tree`."""
    severity: Severity | None = Severity.ERROR
    """None: off where no setting names the rule; `error` where one does and names no severity."""
    options: type[Declared] = NoOptions
    cel: Cel | None = None
    needs: Needs = Needs.NOTHING
    loop: bool = True
    """Whether the loop refuses a planned object that breaks it."""
